"""VSE+2AD Table C-2 (appendix C, Table 2): fixed weights in the place of AdPool's balance, COCO 5K."""

from __future__ import annotations

from pipeline.report import emphasis, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Results
from pipeline.report.published import PublishedRow
from pipeline.report.table import Table
from pipeline.report.tables.vse2ad_analysis import BLOCKS, DIRECTIONS, SETTING, region_bigru

LAYOUT = Layout(("obj", "emb"), BLOCKS, DIRECTIONS, ranks=(1, 5), labels_above="Weights")
CAPTION = (
    "Fixed and random weights of token-level (obj) and embedding-level (emb) pooling against those that "
    f"AdPool learns, after Table C-2 of VSE+2AD. RSUM is over R@1, R@5 and R@10. {SETTING}"
)
RECIPES = {
    "vse2ad-w25": ("0.25", "0.75"),
    "vse2ad-w50": ("0.5", "0.5"),
    "vse2ad-w75": ("0.75", "0.25"),
    "vse2ad-random": ("random", "random"),
    "vse2ad": ("AdPool", "AdPool"),
}


def build(results: Results, delta: bool) -> Table:
    """Published rows, and the measured ones of `RECIPES`."""
    rows, doubts = published_entries(published.load("vse2ad_tableC2"), _published, LAYOUT.shown())
    place = region_bigru(RECIPES.get)
    draft = Draft("vse2ad_tableC2", CAPTION, LAYOUT, rows, doubts, emphasis.best_of_columns, place)
    return compose(draft, results.systems, delta)


def _published(row: PublishedRow) -> Place:
    labels = (row["weight_obj"], row["weight_emb"])
    return Place(labels, system=labels)

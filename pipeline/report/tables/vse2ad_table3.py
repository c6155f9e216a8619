"""VSE+2AD Table 3: what each part of AdPool and AdOpt contributes, COCO 5K."""

from __future__ import annotations

from pipeline.report import emphasis, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Results
from pipeline.report.published import PublishedRow
from pipeline.report.table import Table
from pipeline.report.tables.vse2ad_analysis import BLOCKS, DIRECTIONS, SETTING, region_bigru

LAYOUT = Layout(("Method",), BLOCKS, DIRECTIONS)
CAPTION = (
    "VSE+2AD without its token-level pooling, its embedding-level pooling, AdPool as a whole (mean "
    "pooling instead) and AdOpt (hardest-negative triplet loss instead), after Table 3 of VSE+2AD. "
    f"{SETTING}"
)
RECIPES = {
    "vse2ad": "VSE+2AD",
    "vse2ad-notok": "−tok AdPool",
    "vse2ad-noemb": "−emb AdPool",
    "vse2ad-noadpool": "−AdPool",
    "vse2ad-noadopt": "−AdOpt",
}


def build(results: Results, delta: bool) -> Table:
    """Published rows, and the measured ones of `RECIPES`."""
    rows, doubts = published_entries(published.load("vse2ad_table3"), _published, LAYOUT.shown())
    place = region_bigru(lambda recipe: (RECIPES[recipe],) if recipe in RECIPES else None)
    draft = Draft("vse2ad_table3", CAPTION, LAYOUT, rows, doubts, emphasis.best_of_columns, place)
    return compose(draft, results.systems, delta)


def _published(row: PublishedRow) -> Place:
    labels = ("VSE+2AD" if row["ablation"] == "full" else row["ablation"].replace("-", "−", 1),)
    return Place(labels, system=labels)

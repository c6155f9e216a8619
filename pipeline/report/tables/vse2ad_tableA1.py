"""VSE+2AD Table A.1-1 (appendix A.1, Table 1): learned aggregators against pooling chosen by hand, COCO
5K."""

from __future__ import annotations

from pipeline.report import emphasis, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Results
from pipeline.report.published import PublishedRow
from pipeline.report.table import Table
from pipeline.report.tables.vse2ad_analysis import BLOCKS, DIRECTIONS, SETTING, aggregator, region_bigru

LAYOUT = Layout(("Aggregator",), BLOCKS, DIRECTIONS, ranks=(1, 5))
CAPTION = (
    "Learned aggregators against poolings chosen by hand (Manual: the mean of the 5 largest for images, "
    f"the mean for text), after Table A.1-1 of VSE+2AD. RSUM is over R@1, R@5 and R@10. {SETTING}"
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and the measured ones of VSE+2AD with another aggregator than AdPool."""
    rows, doubts = published_entries(published.load("vse2ad_tableA1"), _published, LAYOUT.shown())
    place = region_bigru(lambda recipe: None if recipe == "vse2ad" else aggregator(recipe))
    draft = Draft("vse2ad_tableA1", CAPTION, LAYOUT, rows, doubts, emphasis.best_of_columns, place)
    return compose(draft, results.systems, delta)


def _published(row: PublishedRow) -> Place:
    labels = (row["aggregator"],)
    return Place(labels, system=labels)

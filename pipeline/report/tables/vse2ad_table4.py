"""VSE+2AD Table 4: AdPool against other aggregators, with their speed, COCO 5K."""

from __future__ import annotations

from pipeline.report import emphasis, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Results
from pipeline.report.published import PublishedRow
from pipeline.report.table import Table
from pipeline.report.tables.vse2ad_analysis import BLOCKS, DIRECTIONS, SETTING, aggregator, region_bigru

LAYOUT = Layout(("Aggregator",), BLOCKS, DIRECTIONS, ranks=(1, 5), ratio="#OIPs")
CAPTION = (
    "Aggregators in the place of AdPool, after Table 4 of VSE+2AD. #OIPs: items a second as a multiple of"
    f" the slowest, more is faster. RSUM is over R@1, R@5 and R@10. {SETTING}"
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and every measured recipe that departs from vse2ad in its aggregator alone."""
    rows, doubts = published_entries(published.load("vse2ad_table4"), _published, LAYOUT.shown())
    place, timed = region_bigru(aggregator), (results.throughput, results.method)
    draft = Draft("vse2ad_table4", CAPTION, LAYOUT, rows, doubts, emphasis.best_of_columns, place, *timed)
    return compose(draft, results.systems, delta)


def _published(row: PublishedRow) -> Place:
    labels = (row["aggregator"],)
    return Place(labels, system=labels)

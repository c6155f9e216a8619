"""VSE+2AD Table 2: all three visual features against pre-trained vision-language models, COCO 5K."""

from __future__ import annotations

from pipeline.report import emphasis, names, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Measured, Results
from pipeline.report.table import Table
from pipeline.report.tables.vse2ad_analysis import BLOCKS, DIRECTIONS

LAYOUT = Layout(("Method",), BLOCKS, DIRECTIONS, ranks=(1, 5), ratio="#OIPs")
CAPTION = (
    "Against pre-trained vision-language models on COCO 5K in percent, after Table 2 of VSE+2AD. #OIPs: "
    "operations a second as a multiple of the slowest, more is faster. VSE+2AD averages region, grid and "
    "patch; its text encoder is BERT unless named. RSUM is over R@1, R@5 and R@10. Bold is the best of a "
    "column; published and measured rows do not compete."
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and every measured system with RGP that is no variant of a paper's recipe."""
    rows, doubts = published_entries(
        published.load("vse2ad_table2"),
        lambda row: Place((row["method"],), system=row["method"]),
        LAYOUT.shown(),
    )
    draft = Draft(
        "vse2ad_table2",
        CAPTION,
        LAYOUT,
        rows,
        doubts,
        emphasis.best_of_columns,
        _measured,
        results.throughput,
        results.method,
    )
    return compose(draft, results.systems, delta)


def _measured(system: Measured) -> Place | None:
    origin = system.origin
    if origin.visual != "RGP" or names.is_variant(origin.recipe):
        return None
    method = names.method(origin.recipe)
    if origin.text == "bert":
        return Place((method,), system=names.published_method(origin.recipe))
    return Place((f"{method} ({names.encoder(origin.text)})",))

"""VSE+2AD Table 2: all three visual features against pre-trained vision-language models, COCO 5K."""

from __future__ import annotations

from pipeline.report import names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns
from pipeline.report.tables.vse2ad_tables_3_4_A1_C2 import BLOCKS, DIRECTIONS


def _published(row: PublishedRow) -> RowHeader:
    return RowHeader((row["method"],), identity=row["method"])


def _measured(system: MeasuredSystem) -> RowHeader | None:
    """Every system with RGP that is no variant of a paper's recipe."""
    origin = system.origin
    if origin.visual != "RGP" or names.is_variant(origin.recipe):
        return None
    method = names.method(origin.recipe)
    if origin.text == "bert":
        return RowHeader((method,), identity=names.published_method(origin.recipe))
    return RowHeader((f"{method} ({names.encoder(origin.text)})",))


TABLE = RetrievalTable(
    "vse2ad_table2",
    "Against pre-trained vision-language models on COCO 5K in percent, after Table 2 of VSE+2AD. #OIPs: "
    "operations a second as a multiple of the slowest, more is faster. VSE+2AD averages region, grid and "
    "patch; its text encoder is BERT unless named. RSUM is over R@1, R@5 and R@10. Bold is the best of a "
    "column; published and measured rows do not compete.",
    TableColumns(("Method",), BLOCKS, DIRECTIONS, metrics=("r1", "r5"), ratio="#OIPs"),
    _measured, _published, timed="retrieval",
)

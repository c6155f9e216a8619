"""VSE+2AD Table 2: all three visual features against pre-trained vision-language models, COCO 5K.

Measured rows have no #OIPs: the paper's 1.0× is ALIGN, which is not timed here.
"""

from __future__ import annotations

from pipeline.report import names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns
from pipeline.report.tables.vse2ad_tables_3_4_A1_C2 import BLOCKS, DATA, DIRECTIONS, RSUM_OF_ALL


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
    "Against pre-trained vision-language models on {data} in percent, after Table 2 of VSE+2AD. VSE+2AD: ensemble of "
    "region, grid and patch features.",
    TableColumns(("Method",), BLOCKS, DIRECTIONS, metrics=("r1", "r5"), ratio="#OIPs"),
    _measured, _published, DATA, (RSUM_OF_ALL, ("#OIPs", "#OIPs: operations a second as a multiple of ALIGN's.")),
    zero_shot=True,
)

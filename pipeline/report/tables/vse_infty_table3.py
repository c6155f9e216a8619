"""VSE∞ Table 3: against vision-language BERTs, COCO 5K."""

from __future__ import annotations

from pipeline.report import names, networks
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns
from pipeline.report.tables.vse_infty_tables_2_9_10 import DIRECTIONS

CAPTION = "Embeddings with BERT and vision-language BERTs on {data} in percent, after Table 3 of VSE∞."
LEGEND = (("Pretrain", "Pretrain: on pairs of images and text beyond COCO."), ("(R", "R: region, G: grid features."),
          ("*", "*: two models averaged."))


def _published(row: PublishedRow) -> RowHeader:
    if row["pretrain"] == "1":
        return RowHeader((row["method"], "✓", row["backbone"]), "Vision-language BERTs")
    method = f"{row['method']} ({'+'.join(row['visual_feature'])})" + "*" * (row["ensemble"] == "1")
    return RowHeader((method, "✗", row["backbone"]), "Embeddings", identity=(method, row["backbone"]))


def _measured(system: MeasuredSystem) -> RowHeader | None:
    """Every system with BERT that is no variant of a paper's recipe."""
    origin = system.origin
    if origin.text != "bert" or names.is_variant(origin.recipe):
        return None
    named = (names.method(origin.recipe, origin.visual), names.published_method(origin.recipe))
    method, published = (f"{name} ({'+'.join(origin.visual)})" for name in named)
    network = networks.backbone(system)
    return RowHeader((method, "✗", network), "Embeddings", identity=(published, network))


TABLE = RetrievalTable(
    "vse_infty_table3", CAPTION,
    TableColumns(("Method", "Pretrain", "CNN"), (("coco_5k", "COCO 5K Test"),), DIRECTIONS, metrics=("r1", "r5"),
                 rsum=False),
    _measured, _published, "COCO 5K", LEGEND, zero_shot=True,
)

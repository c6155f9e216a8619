"""VSE∞ Table 5: COCO 5K by CxC (Crisscrossed Captions), across and within images and captions."""

from __future__ import annotations

from pipeline.report import names, networks
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns

TASKS = (("i2t", "I → T"), ("t2i", "T → I"), ("t2t", "T → T"), ("i2i", "I → I"))


def _published(row: PublishedRow) -> RowHeader:
    """Show the image network of the paper's own rows."""
    network = row["backbone"]
    name = f"{row['method']} ({network})" if network else row["method"]
    identity = (row["method"], row["visual_feature"], network, row["text_encoder"]) if network else None
    return RowHeader((name,), identity=identity)


def _measured(system: MeasuredSystem) -> RowHeader | None:
    """Show every system that is no variant of a paper's recipe and was measured by CxC."""
    origin = system.origin
    if origin.benchmark != "coco_5k_cxc" or names.is_variant(origin.recipe):
        return None
    method, network = names.method(origin.recipe, origin.visual), networks.backbone(system)
    return RowHeader((f"{method} ({names.features(origin.visual)}, {names.encoder(origin.text)})",),
                     identity=(names.published_method(origin.recipe), origin.visual, network, origin.text))


TABLE = RetrievalTable(
    "vse_infty_table5",
    "Retrieval on {data} in percent, after Table 5 of VSE∞. I: image, T: caption.",
    TableColumns(("Method",), (("coco_5k_cxc", ""),), TASKS, ("r1", "r5"), rsum=False),
    _measured, _published, "COCO 5K with Crisscrossed Captions (CxC)",
)

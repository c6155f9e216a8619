"""VSE∞ Tables 4a and 4b: video–text retrieval on MSR-VTT and VATEX."""

from __future__ import annotations

from pipeline.features import FEATURES
from pipeline.report import names, networks
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns

CAPTION = "Video–text retrieval on {data} in percent, after Table"
DIRECTIONS = (("i2t", "VIDEO → TEXT"), ("t2i", "TEXT → VIDEO"))
VIDEO = "-video"
"""Ending of the recipes of this table that others build on; behind it `_` and what is varied."""
OF_CLIPS = ("hgr", "hgr_infty")
"""Recipes for clips alone, and their variants behind `-`."""
NETWORKS = {"IN-R152": "ResNet-152 on ImageNet", "I3D": "I3D on Kinetics", networks.OTHER: "Other networks"}


def _published(row: PublishedRow) -> RowHeader:
    backbone = row["backbone"]
    return RowHeader((row["method"],), NETWORKS.get(backbone, backbone), identity=(row["method"], backbone))


def _measured(system: MeasuredSystem) -> RowHeader | None:
    """Every system on frames."""
    origin = system.origin
    if origin.visual != FEATURES["frame"].letter:
        return None
    network, (base, _, varied) = networks.backbone(system), origin.recipe.partition(VIDEO)
    if VIDEO not in origin.recipe and base.partition("-")[0] not in OF_CLIPS:
        method = f"{names.method(base, origin.visual)}, trained as on photographs"
    else:
        method = names.method(f"{base}-{varied.removeprefix('_')}" if varied else base, origin.visual)
    return RowHeader((method,), NETWORKS.get(network, network), identity=(method, network))


def _table(letter: str, dataset: str) -> RetrievalTable:
    title = names.DATASETS[dataset]
    columns = TableColumns(("Method",), ((dataset, title),), DIRECTIONS)
    return RetrievalTable(f"vse_infty_table4{letter}", f"{CAPTION} 4 ({letter}) of VSE∞.", columns, _measured,
                          _published, title)


TABLE4A, TABLE4B = _table("a", "msrvtt"), _table("b", "vatex")

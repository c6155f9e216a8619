"""VSE∞ Tables 2, 9 and 10 (appendix B.2): embeddings by image network and text encoder."""

from __future__ import annotations

from pipeline.report import emphasis, names, networks
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns

DIRECTIONS = (("i2t", "IMG → TEXT"), ("t2i", "TEXT → IMG"))
LABELS = ("Method", "Feature Type")
BACKBONES = {
    "IN-R152": "ResNet-152 on ImageNet",
    "BUTD": "BUTD (Faster R-CNN, ResNet-101, on ImageNet and Visual Genome)",
    "WSL": "WSL (ResNeXt-101 on Instagram)",
    networks.OTHER: "Other image networks",
}
CAPTION = "Visual-semantic embeddings by image network and text encoder on {data} in percent, after Table"
LEGEND = (("*", "*: two models averaged."),)
BOTH = TableColumns(LABELS, (("coco_1k_5fold", "COCO 5-fold 1K Test"), ("f30k_1k", "Flickr30K 1K Test")), DIRECTIONS)


def _published(row: PublishedRow) -> RowHeader:
    """Only the authors' own runs, printed as `Our: ...`, are compared with measured ones."""
    visual, backbone, text = row["visual_feature"], row["backbone"], row["text_encoder"]
    star = "*" if row["ensemble"] == "1" else ""
    own = row["method"].startswith("Our: ")
    identity = (row["method"].removeprefix("Our: ") + star, visual, backbone, text) if own else None
    return RowHeader((row["method"] + star, names.features(visual)), _section(backbone, text), identity=identity)


def _measured(system: MeasuredSystem) -> RowHeader | None:
    """Every system that is no variant of a paper's recipe."""
    origin = system.origin
    if names.is_variant(origin.recipe):
        return None
    method, network = names.method(origin.recipe, origin.visual), networks.backbone(system)
    identity = (names.published_method(origin.recipe), origin.visual, network, origin.text)
    return RowHeader((method, names.features(origin.visual)), _section(network, origin.text), identity=identity)


def _section(backbone: str, text: str) -> str:
    return f"{BACKBONES.get(backbone, backbone)} + {names.encoder(text)}"


TABLE2 = RetrievalTable("vse_infty_table2", f"{CAPTION} 2 of VSE∞.", BOTH, _measured, _published, "COCO and Flickr30K",
                        LEGEND, emphasis.two_best_sums)
TABLE9 = RetrievalTable("vse_infty_table9", f"{CAPTION} 9 of VSE∞.", BOTH, _measured, _published, "COCO and Flickr30K",
                        LEGEND, emphasis.two_best_sums)
TABLE10 = RetrievalTable("vse_infty_table10", f"{CAPTION} 10 of VSE∞.",
                         TableColumns(LABELS, (("coco_5k", "COCO 5K Test"),), DIRECTIONS), _measured, _published,
                         "COCO 5K", LEGEND, emphasis.two_best_sums)

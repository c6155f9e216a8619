"""What VSE∞'s tables of results have in common: their headings, sections by network and text encoder, and
systems."""

from __future__ import annotations

from pipeline.report import names, networks
from pipeline.report.entries import Place
from pipeline.report.measured import Measured
from pipeline.report.published import PublishedRow

DIRECTIONS = (("i2t", "IMG → TEXT"), ("t2i", "TEXT → IMG"))
LABELS = ("Method", "Feature Type")
BACKBONES = {
    "IN-R152": "ResNet-152 on ImageNet",
    "BUTD": "BUTD (Faster R-CNN, ResNet-101, on ImageNet and Visual Genome)",
    "WSL": "WSL (ResNeXt-101 on Instagram)",
    networks.OTHER: "Other image networks",
}
BOLD = (
    "Bold in red is the best RSUM of a test set, in black the second best; "
    "published and measured rows do not compete. *: two models averaged."
)


def published_place(row: PublishedRow) -> Place:
    """By network and text encoder. The authors' own runs, printed as `Our: ...`, can be compared with
    measured ones."""
    visual, backbone, text = row["visual_feature"], row["backbone"], row["text_encoder"]
    star = "*" if row["ensemble"] == "1" else ""
    own = row["method"].startswith("Our: ")
    system = (row["method"].removeprefix("Our: ") + star, visual, backbone, text) if own else None
    return Place((row["method"] + star, names.features(visual)), _section(backbone, text), system=system)


def measured_place(system: Measured) -> Place | None:
    """Every system that is no variant of a paper's recipe."""
    origin = system.origin
    if names.is_variant(origin.recipe):
        return None
    method, network = names.method(origin.recipe, origin.visual), networks.backbone(system)
    identity = (names.published_method(origin.recipe), origin.visual, network, origin.text)
    return Place((method, names.features(origin.visual)), _section(network, origin.text), system=identity)


def _section(backbone: str, text: str) -> str:
    return f"{BACKBONES.get(backbone, backbone)} + {names.encoder(text)}"

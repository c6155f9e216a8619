"""Which networks a measured system rests on, in the papers' names, and what stands in where it is not theirs.

A network is known by the names it was loaded under, not by words in them: its architecture and its weights' name in
manifests/weights.yaml. What is trusted: that the files behind those names without a SHA-256 are what they are called;
that features imported under a name of `IMPORTED` are what the user calls them; that a published head which fits all
names and shapes of the released code has that code's network. A file of weights that the user names by its path is a
stand-in, whatever its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.files.weights import UNTRAINED, checkpoints
from pipeline.provenance.head_record import Member
from pipeline.report.measured import Measured
from pipeline.training.names import RELEASED

OTHER = "other"
STAND_IN = "†"
"""The mark of a measured row that rests on a network which is not the papers'."""
DETECTORS = ("butd-36", "butd-10-100", "butd-given")
GRIDS = {
    ("butd_resnet101", "butd-resnet101"): "BUTD",
    ("resnext101_32x8d.fb_wsl_ig1b_ft_in1k", "resnext101-wsl"): "WSL",
    ("resnet152.tv_in1k", "resnet152-in1k"): "IN-R152",
}
"""Network and weights' name -> the papers' network."""
PAPERS = {
    **{
        ("region", engine, "", weights): "BUTD"
        for engine in DETECTORS
        for weights in ("butd-36", "butd-10-100", "butd-36-milvlg", "butd-10-100-milvlg")
    },
    **{("grid", "grid", *pair): name for pair, name in GRIDS.items()},
    **{("grid", "grid", network, RELEASED): name for (network, _), name in GRIDS.items()},
    ("patch", "patch", "vit_base_patch16_224.orig_in21k_ft_in1k", "vit-base-patch16-224"): "ViT-B/16",
}
"""Feature, engine, its network where it has a choice, and weights -> the papers' network: VSE+2AD section 4.2, VSE∞
section 5.1.1 and appendix B.2."""
BUTD_BOXES = ("butd-36", "butd-36-scan", "butd-36-lxmert", "butd-36-proposals", "butd-36-regressed", "butd-10-100",
              "butd-10-100-proposals", "butd-10-100-regressed")
IMPORTED = {
    **{("region", recipe): "BUTD" for recipe in BUTD_BOXES},
    **{("grid", f"grid16-{network}"): name for (network, _), name in GRIDS.items()},
    ("patch", "patch-vit_base_patch16_224.orig_in21k_ft_in1k"): "ViT-B/16",
}
"""Feature and the name given with `pipeline import --recipe` -> the papers' network."""

BERT = checkpoints()["bert-base-uncased"]
BERT_SIZES = (12, 768, 30522)
"""Layers, width, word pieces."""


def networks(system: Measured) -> dict[str, str]:
    """Feature -> the papers' network that made it, or `OTHER`: another network, or one that is untrained."""
    return {each.feature: network(each.feature, each.features, each.image) for each in system.members}


def network(feature: str, recipe: str, image: Mapping[str, Any]) -> str:
    """The papers' network behind one feature, or `OTHER`.

    recipe: the name under which the features are reported. image: see `training.source.networks`.
    """
    engine = image.get("engine", "")
    if engine.startswith("import-"):
        return IMPORTED.get((feature, recipe), OTHER)
    return PAPERS.get((feature, engine, image.get("network", ""), image.get("weights", "")), OTHER)


def backbone(system: Measured) -> str:
    """The papers' name for all of a system's image networks, e.g. BUTD or BUTD+ViT-B/16; `OTHER` if one of them
    is not theirs."""
    names = list(dict.fromkeys(networks(system).values()))
    return OTHER if OTHER in names else "+".join(names)


def stand_ins(system: Measured) -> list[str]:
    """What made those of its features that do not come from the papers' networks, e.g. `patch (vit_tiny,
    untrained)` or `text (bert of 2 layers, 32 wide, from tiny)`."""
    return told(system.members)


def told(members: tuple[Member, ...]) -> list[str]:
    """The same of some heads, images first."""
    every = [image_stand_in(each.feature, each.features, each.image) for each in members]
    every += [text_stand_in(each.text) for each in members]
    return [said for said in dict.fromkeys(every) if said]


def image_stand_in(feature: str, recipe: str, image: Mapping[str, Any]) -> str:
    """What made one feature if that is not the papers' network, else ''. As `network`."""
    if network(feature, recipe, image) != OTHER:
        return ""
    how = "network not recorded" if not image else ""
    if image.get("engine", "").startswith("import-"):
        how = "imported"
    elif image.get("weights") == UNTRAINED:
        how = UNTRAINED
    elif "file" in image:
        how = f"weights of {image['file']}"
    return f"{feature} ({', '.join(filter(None, (recipe, how)))})"


def text_stand_in(text: Mapping[str, Any]) -> str:
    """What pretrained network reads the captions if it is not bert-base-uncased, else ''. text: see `Text.checkpoint`.

    bert-base-uncased is known by its weights' SHA-256, or by its name on the Hugging Face hub together with its sizes.
    Its sizes alone are not enough: other networks share them.
    """
    if not text:  # nothing is pretrained
        return ""
    sizes = (text.get("layers"), text.get("width"), text.get("pieces")) == BERT_SIZES
    named = str(text.get("hub")).removeprefix("google-bert/") == BERT.hub
    if sizes and (named or text.get("sha256") == BERT.sha256):
        return ""
    place = text.get("hub") or text.get("folder")
    whence = f"from {place}" if place else "checkpoint not recorded"
    size = f" of {text['layers']} layers, {text['width']} wide" if "layers" in text and "width" in text else ""
    return f"text ({text.get('kind', 'bert')}{size}, {whence})"

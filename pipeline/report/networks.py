"""Which networks made a system's features and read its captions, by the papers' names, and which are stand-ins.

A stand-in is any network that is not the papers' by architecture, weights and the feature's name, which says what is
made otherwise: fewer cells, smaller images. A network is identified by the exact names of its architecture and of its
weights in manifests/weights.yaml. Three things are trusted: that weights without a
SHA-256 there are what their name says; that features imported under a name in `IMPORTED` are what that name says; that
a published head with all names and shapes of the released code has that code's network. Weights that the user gives by
path are a stand-in, whatever the file is called.
"""

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from pipeline.files.parsing import from_yaml
from pipeline.files.weights import UNTRAINED, checkpoints
from pipeline.provenance.head_record import HeadRecord

OTHER = "other"
STAND_IN = "†"
"""The mark of a measured row with a stand-in."""
NETWORKS = from_yaml((resources.files("manifests") / "published" / "networks.yaml").read_text(encoding="utf-8"))
PAPERS = {(each["feature"], engine, each.get("network", ""), weights): each["name"]
          for each in NETWORKS for engine in each["engines"] for weights in each["weights"]}
"""(Feature, engine, its network or "", weights) -> the papers' network."""
IMPORTED = {(each["feature"], features): each["name"] for each in NETWORKS for features in each["features"]}
"""(Feature, name of the features) -> the papers' network."""
GIVEN = "butd-given"
FINETUNED = "-finetuned"

BERT = checkpoints()["bert-base-uncased"]
BERT_SIZES = (12, 768, 30522)
"""Layers, width, size of the vocabulary."""


def network(feature: str, recipe: str, image: Mapping[str, Any]) -> str:
    """The papers' name of the network behind one feature, or `OTHER`."""
    engine = image.get("engine", "")
    if engine.startswith("import-"):
        return IMPORTED.get((feature, recipe), OTHER)
    name = recipe.removesuffix(FINETUNED)
    if (feature, name) not in IMPORTED and name != GIVEN:
        return OTHER
    return PAPERS.get((feature, engine, image.get("network", ""), image.get("weights", "")), OTHER)


def backbone(members: Iterable[HeadRecord]) -> str:
    """All image networks of a system's heads, such as BUTD+ViT-B/16; `OTHER` if one of them is a stand-in."""
    names = dict.fromkeys(network(each.feature, each.features, each.image) for each in members if not each.encoder)
    return OTHER if OTHER in names else "+".join(names)


def stand_ins(members: Iterable[HeadRecord]) -> list[str]:
    """The stand-ins of several heads, each once, images first: `patch (vit_tiny, untrained)`.

    A dual encoder stands for itself.
    """
    heads = [member for member in members if not member.encoder]
    described = [image_stand_in(head.feature, head.features, head.image) for head in heads]
    described += [text_stand_in(head.text) for head in heads]
    return [text for text in dict.fromkeys(described) if text]


def image_stand_in(feature: str, recipe: str, image: Mapping[str, Any]) -> str:
    """The stand-in behind one feature, by its card in manifests/weights.yaml; "" for the papers' network."""
    if network(feature, recipe, image) != OTHER:
        return ""
    how = "network not recorded" if not image else ""
    if image.get("engine", "").startswith("import-"):
        how = "imported"
    elif image.get("weights") == UNTRAINED and not recipe.endswith(f"-{UNTRAINED}"):
        how = UNTRAINED
    elif "file" in image:
        how = f"weights of {image['file']}"
    card = checkpoints().get(str(image.get("weights"))) if image.get("engine") == "patch" else None
    called = card.title if card else recipe  # DINOv2's tokens and the like have names of their own
    besides = recipe.removeprefix(f"patch-{image.get('network')}").strip("-") if card else ""
    return f"{feature} ({', '.join(filter(None, (called, '' if besides == recipe else besides, how)))})"


def text_stand_in(text: Mapping[str, Any]) -> str:
    """The stand-in that reads the captions; "" for bert-base-uncased and for nothing pretrained.

    bert-base-uncased is identified by the SHA-256 of its weights, or by its name on the Hugging Face hub together with
    its sizes. Its sizes alone are not enough: other networks share them.
    """
    if not text:
        return ""
    sizes = (text.get("layers"), text.get("width"), text.get("pieces")) == BERT_SIZES
    named = str(text.get("hub")).removeprefix("google-bert/") == BERT.hub
    if sizes and (named or text.get("sha256") == BERT.sha256):
        return ""
    place = text.get("hub") or text.get("folder")
    origin = f"from {place}" if place else "checkpoint not recorded"
    size = f" of {text['layers']} layers, {text['width']} wide" if "layers" in text and "width" in text else ""
    return f"text ({text.get('kind', 'bert')}{size}, {origin})"

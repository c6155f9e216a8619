"""The papers' names of recipes, features, encoders, data sets and networks, and which networks are
stand-ins.

A stand-in is any network that differs from the papers' in architecture, weights or the feature's
name; this name says if cells are fewer or images smaller. A network is identified by the exact
names of its architecture and of its weights in manifests/weights.yaml. Three things are trusted:
that weights without a SHA-256 there are what their name says; that features imported under a name
in `IMPORTED` are what that name says; that a published head with all names and shapes of the
released code has that code's network. Weights given by path are a stand-in, whatever the file's
name is.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.files.weights import UNTRAINED, checkpoints
from pipeline.foundation.settings.features import FEATURES
from pipeline.foundation.settings.kinds import TABLES
from pipeline.foundation.settings.recipe import Variation
from pipeline.judge.systems.scores.made import FINE_TUNED, ZERO_SHOT, Ensemble, Made, Member
from pipeline.judge.tables import published

NAMES: dict[str, dict[str, Any]] = from_yaml(published.text("names.yaml"))
METHODS = NAMES["methods"]
FINETUNED = NAMES["finetuned"]
# Method -> its recipes that vary one part of it, and what each varies.
VARIANTS: dict[str, dict[str, str]] = NAMES["variants"]
# The recipe and the text encoder that an ensemble shows if its members differ in them.
SEVERAL = {"recipe": "several recipes", "text": "several text encoders"}
TITLES = {feature.letter: feature.title for feature in FEATURES.values()}


def method(recipe: str, visual: str = "") -> str:
    """The name of a method as measured rows print it: "VSE+2AD, fine-tuned", or the recipe's own.

    On R alone no network is fine-tuned, so the name does not say it.
    """
    variant = _variant(recipe)
    if variant:
        return variant
    if recipe in FINETUNED and visual != "R":
        return f"{published_method(recipe)}, fine-tuned"
    return published_method(recipe)


def _variant(recipe: str) -> str:
    """The name of a recipe that varies one part of a method: "VSE∞, GPO pooling"; "" for others."""
    for paper, recipes in VARIANTS.items():
        if recipe in recipes:
            return f"{METHODS[paper]}, {recipes[recipe]}"
    paper, pooling = pooled(recipe)
    if not pooling:
        return ""
    pooling_title = TABLES["poolings"].title(pooling, in_words=True)
    return f"{METHODS[paper]}, {pooling_title} pooling"


def pooled(recipe: str) -> tuple[str, str]:
    """The method and the pooling of a recipe called METHOD-POOLING; ("", "") for others."""
    paper, _, pooling = recipe.partition("-")
    if paper in METHODS and pooling in TABLES["poolings"]:
        return paper, pooling
    return "", ""


def title(made_from: Made) -> str:
    """The name of a scored system: "VSE∞, max–max pooling, Region, BiGRU, seed 0"."""
    letters = made_from.letters
    if not letters:
        return ", ".join((of_others(made_from.members), *steps(made_from)))
    title_parts = [
        method(made_from.recipe or SEVERAL["recipe"], letters),
        features(letters),
        encoder(made_from.text or SEVERAL["text"]),
    ]
    if made_from.seed is not None:
        title_parts.append(f"seed {made_from.seed}")
    return ", ".join((*title_parts, *steps(made_from)))


def steps(made_from: Made) -> tuple[str, ...]:
    """The names of the steps from the heads' scores, without the papers' mean: ("csls (bank
    test)",).
    """
    step_names = []
    origin = made_from.origin
    if isinstance(origin, Ensemble) and origin.is_own:
        step_names.append(f"ensemble {origin.name} ({origin.fusion.method})")
    for step in made_from.steps:
        settings = ", ".join(f"{key} {value}" for key, value in step.items() if key != "name")
        step_names.append(f"{step['name']} ({settings})" if settings else str(step["name"]))
    return tuple(step_names)


def dual_encoder(name: str, encoder: Mapping[str, Any]) -> str:
    """The name of a dual encoder: "CLIP ViT-B/32, zero-shot", and its prompt if it has one."""
    return f"{encoder.get('title') or name}, {usage(encoder)}"


def of_others(members: Iterable[Member]) -> str:
    """The name of a system of others' making: the titles of its dual encoders and given scores."""
    titles = []
    for member in members:
        if member.given:
            titles.append(member.given.title)
        elif not member.is_head:
            titles.append(dual_encoder(member.head, member.encoder or {}))
    return " + ".join(titles)


def usage(encoder: Mapping[str, Any]) -> str:
    """How a dual encoder is used: "zero-shot" or "fine-tuned on Flickr8k", and its prompt if it has
    one.
    """
    how_trained = ZERO_SHOT
    if encoder.get("tuned_on"):
        how_trained = f"{FINE_TUNED} on {dataset(encoder['tuned_on'])}"
    prompt = (encoder.get("usage") or {}).get("prompt", "{}")
    if prompt == "{}":
        return how_trained
    return f"{how_trained}, prompt “{prompt}”"


def published_method(recipe: str) -> str:
    """The name of a method as the papers print it, which do not say whether it is fine-tuned."""
    return str(METHODS.get(FINETUNED.get(recipe, recipe), recipe))


def encoder(text: str) -> str:
    """The name of a text encoder: "BiGRU" for bigru."""
    return TABLES["texts"].title(text)


def dataset(name: str) -> str:
    """The name of a data set: "MS-COCO" for coco."""
    return str(NAMES["datasets"].get(name, name))


def features(visual: str) -> str:
    """The names of visual features: "Region+Grid" for RG."""
    return "+".join(TITLES[letter] for letter in visual)


def is_variant(recipe: str, settings: Mapping[str, Any]) -> bool:
    """Whether a recipe varies one part of a paper's method; such recipes have tables of their
    own.
    """
    if _variant(recipe):
        return True
    languages = tuple(settings.get("languages") or ())
    noise = (settings.get("noise") or {}).get("share", 0.0)
    variation = Variation(languages=languages, noise=noise)
    return variation != Variation() and recipe in map(variation.name, METHODS)


OTHER = "other"
# The mark of a measured row with a stand-in.
STAND_IN = "†"
NETWORKS = from_yaml(published.text("networks.yaml"))


def _papers() -> dict[tuple[str, str, str, str], str]:
    network_names = {}
    for paper_network in NETWORKS:
        network = paper_network.get("network", "")
        for engine in paper_network["engines"]:
            for weights in paper_network["weights"]:
                network_names[paper_network["feature"], engine, network, weights] = paper_network[
                    "name"
                ]
    return network_names


def _imported() -> dict[tuple[str, str], str]:
    network_names = {}
    for paper_network in NETWORKS:
        for features in paper_network["features"]:
            network_names[paper_network["feature"], features] = paper_network["name"]
    return network_names


# (Feature, engine, its network or "", weights) -> the papers' network.
PAPERS = _papers()
# (Feature, name of the features) -> the papers' network.
IMPORTED = _imported()
BERT = checkpoints()["bert-base-uncased"]
# Layers, width, size of the vocabulary.
BERT_SIZES = (12, 768, 30522)


def network(feature: str, recipe: str, image: Mapping[str, Any]) -> str:
    """The papers' name of the network behind one feature, or `OTHER`."""
    if "format" in image:
        return IMPORTED.get((feature, recipe), OTHER)
    name = image.get("name", recipe)
    if "precision" in image:
        return OTHER
    if (feature, name) not in IMPORTED and name != "butd-given":
        return OTHER
    made_by = (image.get("engine", ""), image.get("network", ""), image.get("weights", ""))
    return PAPERS.get((feature, *made_by), OTHER)


def backbone(members: Iterable[Member]) -> str:
    """All image networks of a system's heads, such as BUTD+ViT-B/16; `OTHER` if one of them is a
    stand-in.
    """
    networks: dict[str, None] = {}
    for member in members:
        if member.is_head:
            networks[network(member.feature, member.features, member.image)] = None
    return OTHER if OTHER in networks else "+".join(networks)


def stand_ins(members: Iterable[Member]) -> list[str]:
    """The stand-ins of several heads, each once, images first: `patch (vit_tiny, untrained)`."""
    heads = [member for member in members if member.is_head]
    stand_in_networks = [image_stand_in(head.feature, head.features, head.image) for head in heads]
    stand_in_networks += [text_stand_in(head.text) for head in heads]
    return [stand_in for stand_in in dict.fromkeys(stand_in_networks) if stand_in]


def image_stand_in(feature: str, recipe: str, image: Mapping[str, Any]) -> str:
    """The stand-in behind one feature, by its card in manifests/weights.yaml; "" for the papers'
    network.
    """
    if network(feature, recipe, image) != OTHER:
        return ""
    origin_of_weights = "" if image else "network not recorded"
    if "format" in image:
        origin_of_weights = "imported"
    elif image.get("weights") == UNTRAINED:
        origin_of_weights = UNTRAINED
    elif "place" in image:
        origin_of_weights = f"weights of {Path(image['place']).name}"
    name = image.get("name", recipe)
    network_names = [name]
    weights_card = checkpoints().get(str(image.get("weights")))
    if weights_card and image.get("engine") == "patch":
        network_names = [weights_card.title]
        # DINOv2's tokens and the like have names of their own.
        if name != f"patch-{image.get('network')}":
            network_names.append(name)
    network_description = filter(None, (*network_names, origin_of_weights, image.get("precision")))
    return f"{feature} ({', '.join(network_description)})"


def text_stand_in(text: Mapping[str, Any]) -> str:
    """The stand-in that reads the captions; "" for bert-base-uncased and for nothing pretrained.

    bert-base-uncased is identified by the SHA-256 of its weights, or by its name on the Hugging
    Face hub together with its sizes. Its sizes alone are not enough: other networks share them.
    """
    if not text:
        return ""
    encoder_sizes = (text.get("layers"), text.get("width"), text.get("pieces"))
    is_named_bert = str(text.get("hub")).removeprefix("google-bert/") == BERT.hub
    if encoder_sizes == BERT_SIZES and (is_named_bert or text.get("sha256") == BERT.sha256):
        return ""
    checkpoint = text.get("hub") or text.get("folder") or text.get("place")
    origin = f"from {checkpoint}" if checkpoint else "checkpoint not recorded"
    encoder_kind = text.get("kind") or text.get("engine", "bert")
    encoder_size = ""
    if "layers" in text and "width" in text:
        encoder_size = f" of {text['layers']} layers, {text['width']} wide"
    return f"text ({encoder_kind}{encoder_size}, {origin})"

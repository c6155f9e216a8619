"""What the papers call the recipes, features and encoders that are named otherwise here."""

from __future__ import annotations

from pipeline.features import FEATURES

FINETUNED = "_finetuned"
"""Ending of the recipes that train grid and patch networks too, as the papers do for rows with such features."""

METHODS = {"vse2ad": "VSE+2AD", "vse_infty": "VSE∞", "vse_pp": "VSE++"}
ENCODERS = {"bigru": "BiGRU", "bert": "BERT"}
DATASETS = {
    "coco": "MS-COCO",
    "flickr30k": "Flickr30K",
    "flickr8k": "Flickr8K",
    "sample": "the sample of rendered scenes",
}
TITLES = {feature.letter: feature.title for feature in FEATURES.values()}


def method(recipe: str, visual: str = "") -> str:
    """VSE+2AD for vse2ad, and for vse2ad_finetuned with a word that says so; one that is in no paper keeps its name.

    visual: R, G, RG …, where it is known: of regions alone nothing is fine-tuned, and nothing said.
    """
    plain = published_method(recipe)
    return f"{plain}, fine-tuned" if recipe.endswith(FINETUNED) and plain != recipe and visual != "R" else plain


def published_method(recipe: str) -> str:
    """The papers' name for a method, fine-tuned or not: their own rows do not say it."""
    return METHODS.get(recipe.removesuffix(FINETUNED), recipe)


def encoder(text: str) -> str:
    """BiGRU for bigru."""
    return ENCODERS.get(text, text)


def features(visual: str) -> str:
    """Region+Grid for RG."""
    return "+".join(TITLES[letter] for letter in visual)


def is_variant(recipe: str) -> bool:
    """Whether a recipe departs from a paper's in one part: vse2ad-notok, vse2ad-gpo. Such belong into tables
    of their own."""
    return any(recipe.startswith(f"{paper}-") for paper in METHODS)

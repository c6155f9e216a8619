"""What the papers call the recipes, features and encoders that are named otherwise here."""

from __future__ import annotations

METHODS = {"vse2ad": "VSE+2AD", "vse_infty": "VSE∞", "vse_pp": "VSE++"}
ENCODERS = {"bigru": "BiGRU", "bert": "BERT"}
DATASETS = {
    "coco": "MS-COCO",
    "flickr30k": "Flickr30K",
    "flickr8k": "Flickr8K",
    "sample": "the sample of rendered scenes",
}
FEATURES = {"R": "Region", "G": "Grid", "P": "Patch"}


def method(recipe: str) -> str:
    """VSE+2AD for vse2ad; a recipe that is in no paper keeps its own name."""
    return METHODS.get(recipe, recipe)


def encoder(text: str) -> str:
    """BiGRU for bigru."""
    return ENCODERS.get(text, text)


def features(visual: str) -> str:
    """Region+Grid for RG."""
    return "+".join(FEATURES[letter] for letter in visual)


def is_variant(recipe: str) -> bool:
    """Whether a recipe departs from a paper's in one part: vse2ad-notok, vse2ad-gpo. Such belong into tables
    of their own."""
    return any(recipe.startswith(f"{paper}-") for paper in METHODS)

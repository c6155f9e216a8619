"""The papers' names of recipes, features, encoders and data sets."""

from __future__ import annotations

from pipeline.features import FEATURES

FINETUNED = "_finetuned"
"""Ending of recipes that also train the networks of grid and patch features, as the papers do."""

METHODS = {"vse2ad": "VSE+2AD", "vse_infty": "VSE∞", "vse_pp": "VSE++"}
ENCODERS = {"bigru": "BiGRU", "bert": "BERT"}
DATASETS = {
    "coco": "MS-COCO",
    "flickr30k": "Flickr30K",
    "flickr8k": "Flickr8K",
    "multi30k": "Multi30K",
    "sample": "the sample of rendered scenes",
}
TITLES = {feature.letter: feature.title for feature in FEATURES.values()}


def method(recipe: str, visual: str = "") -> str:
    """The name of a method as measured rows print it.

    Args:
        recipe: A recipe's name.
        visual: The letters of its features, e.g. RG; "" where they are unknown. On R alone no network is fine-tuned, so
            the name does not say it.

    Returns:
        "VSE+2AD" for vse2ad, "VSE+2AD, fine-tuned" for vse2ad_finetuned, the recipe's own name if no paper has it.
    """
    plain = published_method(recipe)
    return f"{plain}, fine-tuned" if recipe.endswith(FINETUNED) and plain != recipe and visual != "R" else plain


def published_method(recipe: str) -> str:
    """The name of a method as the papers print it, which do not say whether it is fine-tuned.

    Args:
        recipe: A recipe's name.

    Returns:
        For example "VSE+2AD" for vse2ad and for vse2ad_finetuned.
    """
    return METHODS.get(recipe.removesuffix(FINETUNED), recipe)


def encoder(text: str) -> str:
    """The name of a text encoder.

    Args:
        text: Its name here.

    Returns:
        For example "BiGRU" for bigru.
    """
    return ENCODERS.get(text, text)


def features(visual: str) -> str:
    """The names of visual features.

    Args:
        visual: Their letters.

    Returns:
        For example "Region+Grid" for RG.
    """
    return "+".join(TITLES[letter] for letter in visual)


def is_variant(recipe: str) -> bool:
    """Whether a recipe varies one part of a paper's method; such recipes have tables of their own.

    Args:
        recipe: A recipe's name.

    Returns:
        True for e.g. vse2ad-notok and vse2ad-gpo.
    """
    return any(recipe.startswith(f"{paper}-") for paper in METHODS)

"""The visual features and the papers' ensembles of them. A new feature is one entry in `FEATURES`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """One visual feature of an image: a set of items.

    Attributes:
        letter: How the papers abbreviate it. An ensemble is named by the letters of its features.
        title: As a heading or an axis names it.
        projection: From items to the joint space, a name in `pipeline.heads.projection.PROJECTIONS`.
        trainable: Whether its network can be trained with the head, from the images. The papers never train a detector.
    """

    letter: str
    title: str
    projection: str
    trainable: bool


FEATURES = {
    "region": Feature("R", "Region", projection="residual", trainable=False),
    "grid": Feature("G", "Grid", projection="linear", trainable=True),
    "patch": Feature("P", "Patch", projection="linear", trainable=True),
}

ENSEMBLES: dict[str, tuple[str, ...]] = {
    "R": ("region",),
    "RG": ("region", "grid"),
    "RGP": ("region", "grid", "patch"),
}
"""Ensemble -> the features whose heads it averages (VSE+2AD section 4.3), from the smallest to the largest."""


def letters(features: tuple[str, ...]) -> str:
    """The letters of features in the order of `FEATURES`: what their ensemble is called.

    Args:
        features: Names in `FEATURES`, in any order.

    Returns:
        For example "RG" for grid and region.
    """
    return "".join(feature.letter for name, feature in FEATURES.items() if name in features)

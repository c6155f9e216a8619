"""The visual features, and what ensembles of them are called. A new feature is one entry in
`FEATURES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.foundation.files.gallery_file import Kind


@dataclass(frozen=True)
class Feature:
    """One visual feature of an image or clip: a set of items."""

    # How the papers abbreviate it. An ensemble is named by the letters of its features.
    letter: str
    title: str  # Its name in headings and on axes
    # How items are projected to the joint space, a name in `PROJECTIONS` of `pipeline.make.heads`.
    projection: str
    # Whether its network can be trained with the head, from the images. The papers never train a
    # detector.
    trainable: bool
    kind: Kind = "image"  # What it is extracted from


FEATURES = {
    "region": Feature("R", "Region", projection="residual", trainable=False),
    "grid": Feature("G", "Grid", projection="linear", trainable=True),
    "patch": Feature("P", "Patch", projection="linear", trainable=True),
    "detector": Feature("D", "Detector", projection="residual", trainable=False),
    "frame": Feature("F", "Frame", projection="linear", trainable=False, kind="video"),
}


def of_ensemble(name: str) -> tuple[str, ...]:
    """The features whose heads an ensemble "RG" averages (VSE+2AD section 4.3); () if none have
    these letters.
    """
    named = tuple(feature for feature, known in FEATURES.items() if known.letter in name)
    if letters(named) != name:
        return ()
    return named


def letters(features: tuple[str, ...]) -> str:
    """The letters of features in the order of `FEATURES`, what their ensemble is called: "RG" for
    grid and region.
    """
    return "".join(feature.letter for name, feature in FEATURES.items() if name in features)

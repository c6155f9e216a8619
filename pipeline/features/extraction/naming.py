"""The name of a feature in stores, heads and tables: it says every setting that makes another feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.files.weights import UNTRAINED, checkpoints

PROPOSALS = 300  # of the region proposal network, as in Caffe's test settings
SIDES = (600, 1000)  # pixels, short and long, in the same place
SQUARE = 512  # pixels a side of grids and windows; a ViT's name holds its own


def feature_name(engine: str, reported_as: str, settings: Mapping[str, Any], precision: str, weights: str) -> str:
    """The engine's own name, and what is not usual: `butd-36-proposals-rpn45`, `pyramid36-...-384px-bf16`."""
    return "-".join([reported_as, *_sizes(engine, reported_as, settings), *_weights(engine, settings, weights),
                     *([] if precision == "fp32" else [precision])])


def _sizes(engine: str, reported_as: str, settings: Mapping[str, Any]) -> list[str]:
    found = []
    proposals, side = settings.get("proposals", PROPOSALS), settings.get("image_size")
    if proposals != PROPOSALS:
        found.append(f"rpn{proposals}")
    if side is not None and (f"_{side}" not in reported_as if engine == "patch" else side != SQUARE):
        found.append(f"{side}px")
    sides = (settings.get("short_side", SIDES[0]), settings.get("long_side", SIDES[1]))
    told = "-".join(f"{each}px" for each in sides)
    return found if sides == SIDES or reported_as.endswith(told) else [*found, told]


def _weights(engine: str, settings: Mapping[str, Any], digest: str) -> list[str]:
    """Weights are usual where a card in manifests/weights.yaml has them for this network."""
    name = settings.get("weights")
    if name == UNTRAINED:
        return [UNTRAINED]
    if name is not None and name not in checkpoints():
        return [f"weights{digest[:8]}"]
    return [name] if engine.startswith("butd-") and name not in (None, engine, "butd-36") else []

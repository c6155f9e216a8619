"""Load published weights into the network: the port's pickles, and detectron2's own `.pth`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pipeline.foundation.files import restricted_pickle, weights
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.make.features.extractors import base
from pipeline.make.features.extractors.butd.geometry import RATIOS, SCALES
from pipeline.make.features.extractors.butd.options import DETECTRON2

if TYPE_CHECKING:
    from pipeline.make.features.extractors.butd.network import FasterRCNN

RPN = "proposal_generator.rpn_head"
HEAD = "roi_heads.box_predictor"
NAMES = {"cls_embed": "cls_embedding", "attr_linear1": "fc_attr", "attr_linear2": "attr_score"}
TITLE = "BUTD with attributes"
NONE_FIRST = ("cls_score", "cls_embedding", "attr_score")


def is_caffe(state: Mapping[str, torch.Tensor]) -> bool:
    """Recognise Caffe's conventions by a choice between two classes for each anchor."""
    objectness = state.get(f"{RPN}.objectness_logits.bias")
    return objectness is not None and objectness.shape == (2 * len(RATIOS) * len(SCALES),)


def to_detectron2(
    state: Mapping[str, torch.Tensor], delta_weights: tuple[float, ...]
) -> dict[str, torch.Tensor]:
    """Convert a state dict to detectron2's conventions."""
    renamed = {}
    for name, value in state.items():
        for theirs, ours in NAMES.items():
            name = name.replace(f"{HEAD}.{theirs}.", f"{HEAD}.{ours}.")
        renamed[name] = value
    for part in ("weight", "bias"):
        for layer in NONE_FIRST:
            name = f"{HEAD}.{layer}.{part}"
            if name in renamed:
                renamed[name] = renamed[name].roll(-1, dims=0)
        name = f"{HEAD}.bbox_pred.{part}"
        deltas = renamed[name].unflatten(0, (-1, 4))[1:]
        weights = torch.tensor(delta_weights).view(4, *[1] * (deltas.ndim - 2))
        renamed[name] = (deltas * weights).flatten(0, 1)
        # The probability of one of two classes is the sigmoid of the difference of their logits.
        name = f"{RPN}.objectness_logits.{part}"
        none, some = renamed[name].chunk(2)
        renamed[name] = _by_scale(some - none)
        name = f"{RPN}.anchor_deltas.{part}"
        corrections = renamed[name].unflatten(0, (-1, 4))
        renamed[name] = _by_scale(corrections).flatten(0, 1)
    return renamed


def _by_scale(anchors: torch.Tensor) -> torch.Tensor:
    """Reorder rows of anchors: from ratio by ratio, and scales within a ratio, to scale by
    scale.
    """
    return anchors.unflatten(0, (len(RATIOS), len(SCALES))).transpose(0, 1).flatten(0, 1)


def load(name: str) -> FasterRCNN:
    """Build the network with weights: a name in manifests/weights.yaml, a file, or "untrained"
    (seed 0).
    """
    with refusing(ImportError, _lacking):
        from pipeline.make.features.extractors.butd.network import DELTA_WEIGHTS, FasterRCNN

    def read(path: Path) -> dict[str, torch.Tensor]:
        state = read_state(path)
        if is_caffe(state):
            return to_detectron2(state, DELTA_WEIGHTS)
        return state

    return base.with_weights(FasterRCNN, name, read, TITLE)


def _lacking(error: ImportError) -> str:
    return (
        f"butd needs detectron2, which cannot be used here ({error}); with torch installed, run: "
        f"{DETECTRON2}"
    )


def read_state(path: Path) -> dict[str, torch.Tensor]:
    """Read a state dict."""
    if path.suffix != ".pkl":
        return weights.read(path)
    tree: Any = restricted_pickle.load(path)
    state = tree.get("model", tree) if isinstance(tree, Mapping) else None
    if not isinstance(state, Mapping) or not all(map(_is_array, state.items())):
        raise InputError(f"{path}: expected a dict of arrays, by itself or under 'model'")
    return {name: torch.from_numpy(np.array(value)) for name, value in state.items()}


def _is_array(entry: tuple[Any, Any]) -> bool:
    name, value = entry
    return isinstance(name, str) and isinstance(value, np.ndarray)

"""Convert weights with Caffe's order of classes and anchors (bottom-up-attention.pytorch) to detectron2's order.

The conventions are those of its code (github.com/MILVLG/bottom-up-attention.pytorch, `bua/caffe/modeling`): the class
"none" comes first and has box corrections too, deltas are unweighted, and objectness is a choice between two classes.
The order of its anchors is not written there. As nothing else was reordered, and its settings name anchors as Caffe
does, Caffe's order is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pipeline.extractors.butd.geometry import RATIOS, SCALES

RPN, HEAD = "proposal_generator.rpn_head", "roi_heads.box_predictor"
NAMES = {"cls_embed": "cls_embedding", "attr_linear1": "fc_attr", "attr_linear2": "attr_score"}
NONE_FIRST = ("cls_score", "cls_embedding", "attr_score")


def is_caffe(state: Mapping[str, torch.Tensor]) -> bool:
    """Recognise Caffe's conventions by a choice between two classes for each anchor."""
    objectness = state.get(f"{RPN}.objectness_logits.bias")
    return objectness is not None and objectness.shape == (2 * len(RATIOS) * len(SCALES),)


def to_detectron2(state: Mapping[str, torch.Tensor], delta_weights: tuple[float, ...]) -> dict[str, torch.Tensor]:
    """Convert a state dict to detectron2's conventions."""
    renamed = {_name(name): value for name, value in state.items()}
    for part in ("weight", "bias"):
        for layer in NONE_FIRST:
            name = f"{HEAD}.{layer}.{part}"
            if name in renamed:
                renamed[name] = renamed[name].roll(-1, dims=0)
        deltas = renamed[f"{HEAD}.bbox_pred.{part}"].unflatten(0, (-1, 4))[1:]
        weights = torch.tensor(delta_weights).view(4, *[1] * (deltas.ndim - 2))
        renamed[f"{HEAD}.bbox_pred.{part}"] = (deltas * weights).flatten(0, 1)
        # The probability of one of two classes is the sigmoid of the difference of their logits.
        none, some = renamed[f"{RPN}.objectness_logits.{part}"].chunk(2)
        renamed[f"{RPN}.objectness_logits.{part}"] = _by_scale(some - none)
        corrections = renamed[f"{RPN}.anchor_deltas.{part}"].unflatten(0, (-1, 4))
        renamed[f"{RPN}.anchor_deltas.{part}"] = _by_scale(corrections).flatten(0, 1)
    return renamed


def _name(name: str) -> str:
    for theirs, ours in NAMES.items():
        name = name.replace(f"{HEAD}.{theirs}.", f"{HEAD}.{ours}.")
    return name


def _by_scale(anchors: torch.Tensor) -> torch.Tensor:
    """Rows of anchors, ratio by ratio and in each scale by scale, the other way round."""
    return anchors.unflatten(0, (len(RATIOS), len(SCALES))).transpose(0, 1).flatten(0, 1)

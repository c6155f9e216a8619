"""Boxes in Caffe's convention: the corners x1 y1 x2 y2 belong to the box, so its width is x2 - x1 + 1.

In detectron2 widths are x2 - x1 and anchors lie half a cell further up and left. The weights were trained with Caffe's
convention, which is therefore used here.
"""

from __future__ import annotations

import math

import torch
from torchvision.ops import nms

STRIDE = 16  # of the map that boxes are proposed on: feat_stride of Caffe's test.prototxt
RATIOS = (0.5, 1.0, 2.0)  # height over width: lib/rpn/generate_anchors.py
SCALES = (4, 8, 16, 32)  # times STRIDE: test.prototxt
# The port's limit, a 16 px box grown to 1000 px; Caffe has none, and may overflow.
LARGEST_GROWTH = math.log(1000 / 16)


def cell_anchors() -> torch.Tensor:
    """List the anchors of the map's first cell: float32 [12, 4], by scale, then by ratio.

    The order is detectron2's, which the channels of the port's weights have; the boxes are those of Caffe's
    `generate_anchors.py`: centred on pixel 7.5 of the cell, sides rounded to whole pixels at scale 1.
    """
    boxes = []
    for scale in SCALES:
        for ratio in RATIOS:
            width = round(math.sqrt(STRIDE * STRIDE / ratio))
            height = round(width * ratio)
            centre, half_w, half_h = (STRIDE - 1) / 2, (width * scale - 1) / 2, (height * scale - 1) / 2
            boxes.append([centre - half_w, centre - half_h, centre + half_w, centre + half_h])
    return torch.tensor(boxes)


def anchors(rows: int, columns: int) -> torch.Tensor:
    """List the anchors of a map: float32 [rows * columns * 12, 4], by row, column and anchor."""
    y, x = torch.meshgrid(torch.arange(rows) * STRIDE, torch.arange(columns) * STRIDE, indexing="ij")
    shifts = torch.stack([x, y, x, y], dim=-1).view(-1, 1, 4)
    return (shifts + cell_anchors()).view(-1, 4)


def move(boxes: torch.Tensor, deltas: torch.Tensor) -> torch.Tensor:
    """Apply a network's corrections [..., 4], dx dy dw dh, to boxes [..., 4] (Girshick et al. 2014, appendix C).

    As in Caffe's `bbox_transform_inv`, the far corner is the centre plus half the width, without subtracting the pixel
    again.
    """
    sizes = boxes[..., 2:] - boxes[..., :2] + 1
    centres = boxes[..., :2] + sizes / 2 + deltas[..., :2] * sizes
    halves = deltas[..., 2:].clamp(max=LARGEST_GROWTH).exp() * sizes / 2
    return torch.cat([centres - halves, centres + halves], dim=-1)


def clip(boxes: torch.Tensor, width: int, height: int) -> torch.Tensor:
    """Move every corner of boxes [..., 4] onto a pixel of the image."""
    last = boxes.new_tensor([width - 1, height - 1] * 2)
    return torch.minimum(boxes.clamp(min=0), last)


def overlaps(boxes: torch.Tensor) -> torch.Tensor:
    """Compute the intersection over union of every pair of boxes [R, 4]: [R, R]."""
    near = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    far = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (far - near + 1).clamp(min=0).prod(dim=-1)
    areas = (boxes[:, 2:] - boxes[:, :2] + 1).prod(dim=-1)
    return shared / (areas[:, None] + areas[None, :] - shared)


def suppress(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Choose the boxes that overlap no better one by more than the threshold (non-maximum suppression)."""
    inclusive = boxes + boxes.new_tensor([0, 0, 1, 1])  # torchvision's widths are x2 - x1
    return nms(inclusive, scores, threshold)

"""Which boxes are proposed and which become items, in Caffe's convention.

The corners x1 y1 x2 y2 belong to the box, so its width is x2 - x1 + 1.

In detectron2 widths are x2 - x1 and anchors are half a cell further up and left. The weights were
trained with Caffe's convention, which is therefore used here.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torchvision.ops import nms

from pipeline.make.features.extractors.butd.options import PROPOSALS

STRIDE = 16  # of the map that boxes are proposed on: feat_stride of Caffe's test.prototxt
RATIOS = (0.5, 1.0, 2.0)  # height over width: lib/rpn/generate_anchors.py
SCALES = (4, 8, 16, 32)  # times STRIDE: test.prototxt
# The port's limit, a 16 px box grown to 1000 px; Caffe has none, and may overflow.
LARGEST_GROWTH = math.log(1000 / 16)


def cell_anchors() -> torch.Tensor:
    """List the anchors of the map's first cell: float32 [12, 4], by scale, then by ratio."""
    # The order is detectron2's, which the channels of the port's weights have; the boxes are those
    # of Caffe's `generate_anchors.py`: centred on pixel 7.5 of the cell, sides rounded to whole
    # pixels at scale 1.
    centre = (STRIDE - 1) / 2
    boxes = []
    for scale in SCALES:
        for ratio in RATIOS:
            area = STRIDE * STRIDE
            width = round(math.sqrt(area / ratio))
            height = round(width * ratio)
            across = (width * scale - 1) / 2
            down = (height * scale - 1) / 2
            near = [centre - across, centre - down]
            far = [centre + across, centre + down]
            boxes.append(near + far)
    return torch.tensor(boxes)


def anchors(rows: int, columns: int) -> torch.Tensor:
    """List the anchors of a map: float32 [rows * columns * 12, 4], by row, column and anchor."""
    down = torch.arange(rows) * STRIDE
    across = torch.arange(columns) * STRIDE
    y, x = torch.meshgrid(down, across, indexing="ij")
    shifts = torch.stack([x, y, x, y], dim=-1)
    boxes = shifts.view(-1, 1, 4) + cell_anchors()
    return boxes.view(-1, 4)


def move(boxes: torch.Tensor, deltas: torch.Tensor) -> torch.Tensor:
    """Apply a network's corrections [..., 4], dx dy dw dh, to boxes [..., 4] (Girshick et al. 2014,
    appendix C).
    """
    # As in Caffe's `bbox_transform_inv`, the far corner is the centre plus half the width, without
    # subtracting the pixel again.
    near = boxes[..., :2]
    sizes = boxes[..., 2:] - near + 1
    shifts = deltas[..., :2] * sizes
    centres = near + sizes / 2 + shifts
    growth = deltas[..., 2:].clamp(max=LARGEST_GROWTH)
    halves = growth.exp() * sizes / 2
    return torch.cat([centres - halves, centres + halves], dim=-1)


def clip(boxes: torch.Tensor, width: int, height: int) -> torch.Tensor:
    """Move every corner of boxes [..., 4] onto a pixel of the image."""
    last = boxes.new_tensor([width - 1, height - 1] * 2)
    return torch.minimum(boxes.clamp(min=0), last)


def overlaps(boxes: torch.Tensor) -> torch.Tensor:
    """Compute the intersection over union of every pair of boxes [R, 4]: [R, R]."""
    near = boxes[:, :2]
    far = boxes[:, 2:]
    areas = (far - near + 1).prod(dim=-1)
    shared_near = torch.maximum(near[:, None], near)
    shared_far = torch.minimum(far[:, None], far)
    shared = (shared_far - shared_near + 1).clamp(min=0).prod(dim=-1)
    united = areas[:, None] + areas - shared
    return shared / united


def suppress(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Choose the boxes that overlap no better one by more than the threshold (non-maximum
    suppression).
    """
    inclusive = boxes + boxes.new_tensor([0, 0, 1, 1])  # torchvision's widths are x2 - x1
    return nms(inclusive, scores, threshold)


# TEST.RPN_* of Caffe's lib/fast_rcnn/config.py.
MIN_SIZE = 16  # pixels of the image as it came, a side
BEFORE_NMS = 6000
PROPOSAL_OVERLAP = 0.7


def propose(
    objectness: torch.Tensor,
    deltas: torch.Tensor,
    width: int,
    height: int,
    scale: float,
    most: int = PROPOSALS,
) -> torch.Tensor:
    """Select the best proposals of one image: [n, 4] in pixels of the network's input, best first,
    n from 1 to `most`.

    `objectness` is [12, h, w], `deltas` [48, h, w], four for each anchor; `scale` is the factor
    from the image to the input. If no box is MIN_SIZE wide and high, the whole image is the only
    proposal.
    """
    count, rows, columns = objectness.shape
    scores = objectness.permute(1, 2, 0).reshape(-1)
    of_anchors = deltas.view(count, 4, rows, columns)
    corrections = of_anchors.permute(2, 3, 0, 1).reshape(-1, 4)
    moved = move(anchors(rows, columns).to(deltas), corrections)
    boxes = clip(moved, width, height)
    sides = boxes[:, 2:] - boxes[:, :2] + 1
    large = (sides >= MIN_SIZE * scale).all(dim=1)
    boxes = boxes[large]
    scores = scores[large]
    if not len(boxes):
        return deltas.new_tensor([[0, 0, width - 1, height - 1]])
    order = scores.argsort(descending=True, stable=True)
    best = order[:BEFORE_NMS]
    boxes = boxes[best]
    rows_left = suppress(boxes, scores[best], PROPOSAL_OVERLAP)
    return boxes[rows_left[:most]]


CONFIDENCE = 0.2  # conf_thresh of generate_tsv.py
THRESHOLD = 0.3  # TEST.NMS of lib/fast_rcnn/config.py
# The port tries these until enough boxes are left. Its list ends at 0.9, so it may return too few.
RISING = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Proposals:
    """The R proposed boxes of an image, as the network classifies and corrects them."""

    boxes: torch.Tensor  # [R, 4] in pixels of the network's input
    scores: torch.Tensor  # [R, C], probabilities of the object classes without the background
    deltas: torch.Tensor  # [R, C, 4], corrections for each class
    size: tuple[int, int]  # width and height of the network's input
    scale: float  # the factor from the image to the input


# From proposals and the fewest and most to select: rows [n] of the proposals, and boxes [n, 4].
Rule = Callable[[Proposals, int, int], tuple[torch.Tensor, torch.Tensor]]


def by_proposals(proposals: Proposals, fewest: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The original's rule: suppress the proposals class by class, then keep by the best remaining
    score.
    """
    # Overlaps are measured in the image, not in the network's input: Caffe's extra pixel weighs
    # more there.
    in_image = proposals.boxes / proposals.scale
    is_left = survivors(in_image, proposals.scores, THRESHOLD)
    confidence = (proposals.scores * is_left).amax(dim=1)
    rows = keep(confidence, fewest, most)
    return rows, proposals.boxes[rows]


def by_regressed(proposals: Proposals, fewest: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The port's rule: correct each proposal for its best class, then suppress across classes."""
    # The threshold rises until at least `fewest` boxes remain. The port keeps the best `most` of
    # them; here, if `fewest` is less than `most`, boxes beyond `fewest` must reach CONFIDENCE.
    best, label = proposals.scores.max(dim=1)
    proposal = torch.arange(len(best), device=best.device)
    moved = move(proposals.boxes, proposals.deltas[proposal, label])
    boxes = clip(moved, *proposals.size)
    left = rising(suppress, boxes, best, fewest, RISING)
    rows = left[keep(best[left], fewest, most)]
    return rows, boxes[rows]


RULES: dict[str, Rule] = {"proposals": by_proposals, "regressed": by_regressed}


def survivors(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Suppress boxes [R, 4] greedily, in every class at once: bool [R, C], True where a box
    survives in a class.
    """
    apart = (overlaps(boxes) <= threshold).fill_diagonal_(True)
    left = torch.ones_like(scores.T, dtype=torch.bool, memory_format=torch.contiguous_format)
    classes = torch.arange(len(left), device=left.device)
    ranked = scores.argsort(dim=0, descending=True, stable=True)
    for box in ranked:  # [C], each class's next one
        # Of two that overlap and are both left, the other is worse: a better one would have taken
        # this away.
        is_gone = ~left[classes, box, None]
        left &= apart[box] | is_gone
    return left.T


def rising(
    suppress: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor],
    boxes: torch.Tensor,
    scores: torch.Tensor,
    fewest: int,
    thresholds: Iterable[float],
) -> torch.Tensor:
    """Suppress boxes [R, 4] at the first of some rising thresholds that leaves `fewest`: their
    rows, best first.
    """
    rows = scores.new_empty(0, dtype=torch.int64)
    for threshold in thresholds:
        rows = suppress(boxes, scores, threshold)
        if len(rows) >= fewest:
            break
    return rows


def keep(
    confidence: torch.Tensor, fewest: int, most: int, least: float = CONFIDENCE
) -> torch.Tensor:
    """Choose rows, best first: those whose confidence is at least `least`, at least `fewest` and at
    most `most`.
    """
    order = confidence.argsort(descending=True, stable=True)
    confident = int((confidence >= least).sum())
    count = min(max(confident, fewest), most)
    return order[:count]

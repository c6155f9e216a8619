"""Select the proposals that become items, and their boxes. Two rules are in use, with different features.

`proposals` is the original's (Caffe's `tools/generate_tsv.py`), `regressed` the port's
(`demo/detectron2_mscoco_proposal_maxnms.py`). In both an item's feature is its proposal's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from pipeline.extractors.butd.geometry import clip, move, overlaps, suppress

CONFIDENCE = 0.2  # conf_thresh of generate_tsv.py
THRESHOLD = 0.3  # TEST.NMS of lib/fast_rcnn/config.py
# The port goes through these until enough boxes are left; its list ends at 0.9, and with it may the count.
RISING = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Selected = tuple[torch.Tensor, torch.Tensor]  # rows [n] of the proposals, boxes [n, 4]
Rule = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, tuple[int, int], float, int, int], Selected]


def by_proposals(boxes: torch.Tensor, scores: torch.Tensor, deltas: torch.Tensor, size: tuple[int, int],
                 scale: float, fewest: int, most: int) -> Selected:
    """The original's rule: suppress the proposals class by class, then keep by the best remaining score.

    Boxes [R, 4] are in pixels of the network's input, scores [R, C] probabilities of the object classes without the
    background, deltas [R, C, 4] corrections for each class. The result: rows [n] of the proposals, and boxes [n, 4].
    Overlaps are measured in the image, not in the network's input: Caffe's extra pixel weighs more there.
    """
    confidence = (scores * survivors(boxes / scale, scores, THRESHOLD)).amax(dim=1)
    rows = keep(confidence, fewest, most)
    return rows, boxes[rows]


def by_regressed(boxes: torch.Tensor, scores: torch.Tensor, deltas: torch.Tensor, size: tuple[int, int],
                 scale: float, fewest: int, most: int) -> Selected:
    """The port's rule: correct each proposal for its best class, then suppress across classes, see `by_proposals`.

    The threshold rises until at least `fewest` boxes remain. The port keeps the best `most` of them; here, if `fewest`
    is less than `most`, boxes beyond `fewest` must reach CONFIDENCE.
    """
    best, label = scores.max(dim=1)
    moved = clip(move(boxes, deltas[torch.arange(len(boxes), device=boxes.device), label]), *size)
    for threshold in RISING:
        left = suppress(moved, best, threshold)
        if len(left) >= fewest:
            break
    rows = left[keep(best[left], fewest, most)]
    return rows, moved[rows]


RULES: dict[str, Rule] = {"proposals": by_proposals, "regressed": by_regressed}


def survivors(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Suppress boxes [R, 4] greedily, in every class at once: bool [R, C], True where a box survives in a class."""
    apart = (overlaps(boxes) <= threshold).fill_diagonal_(True)
    there = torch.ones_like(scores.T, dtype=torch.bool, memory_format=torch.contiguous_format)
    classes = torch.arange(len(there), device=there.device)
    for box in scores.argsort(dim=0, descending=True, stable=True):  # box: [C], each class's next one
        # Of two that overlap and are both there, the other is worse: a better one would have taken this away.
        there &= apart[box] | ~there[classes, box, None]
    return there.T


def keep(confidence: torch.Tensor, fewest: int, most: int) -> torch.Tensor:
    """Choose the items."""
    order = confidence.argsort(descending=True, stable=True)
    enough = int((confidence >= CONFIDENCE).sum())
    return order[:min(max(enough, fewest), most)]

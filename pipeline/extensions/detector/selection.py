"""Which of a detector's boxes become items: one rule for every detector.

1. A query has one box, one class, the one with the largest logit, and that class's score
  (`Found.of_logits`).
2. Boxes are cut off at the photograph's edges, and those without area are left out. Of the others
  the `CONSIDERED`
   best are compared; of equal scores the earlier query is better.
3. From the best to the worst, a box that overlaps a better one by more than `overlap` is left out,
  whatever their classes. Where fewer than `min_boxes` are left, the limit rises by tenths until
  there are as many, or all.
4. Those that score at least `confidence` are taken, but at least `min_boxes` and at most
  `max_boxes`, best first.
   Given boxes without scores are all taken, in their order.
5. With `whole_image` the whole photograph comes before them. It is the only item where no box is
  left.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torchvision.ops import nms

from pipeline.extensions.detector.options import DetectorOptions
from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors.butd.geometry import keep, rising

CONSIDERED = 1000
WHOLE = -1  # the query and the class of the whole photograph


@dataclass(frozen=True)
class Found:
    """What a detector gives for one photograph, a row for each of Q queries, before any is left
    out.
    """

    # Float32 [Q, 4], x1 y1 x2 y2 in pixels of the photograph, which may be outside it.
    boxes: torch.Tensor
    scores: torch.Tensor  # float32 [Q], 0 to 1
    labels: torch.Tensor  # int64 [Q]
    queries: torch.Tensor | None = None  # float32 [Q, d], from which boxes were scored
    maps: list[FeatureMap] = field(default_factory=list)
    ranked: bool = True  # false of given boxes without scores

    @classmethod
    def of_logits(
        cls,
        logits: torch.Tensor,
        boxes: torch.Tensor,
        size: tuple[float, float],
        *,
        none_last: bool,
        queries: torch.Tensor | None = None,
        maps: list[FeatureMap] | None = None,
    ) -> "Found":
        """Read a network's output for one photograph: logits [Q, C] and boxes [Q, 4], centre and
        sides.

        Boxes are shares of `size`, the photograph's width and height in pixels. With `none_last`
        the last logit is that of "no object" in a softmax; else each is a sigmoid's.
        """
        classes = logits[:, :-1] if none_last else logits
        labels = classes.argmax(1)  # of logits: two sigmoids may both round to 1
        best = classes.gather(1, labels[:, None])[:, 0]
        scores = (best - logits.logsumexp(1)).exp() if none_last else best.sigmoid()
        centre = boxes[:, :2]
        half = boxes[:, 2:] / 2
        corners = torch.cat([centre - half, centre + half], 1)
        in_pixels = corners * boxes.new_tensor([*size, *size])
        return cls(in_pixels, scores, labels, queries, maps or [])

    @classmethod
    def of_classes(
        cls,
        scores: torch.Tensor,
        boxes: torch.Tensor,
        size: tuple[int, int],
        shown: tuple[int, int],
        padded: torch.Size,
        queries: torch.Tensor | None,
        maps: Iterable[torch.Tensor],
    ) -> "Found":
        """Read scores [Q, C] and boxes, [Q, 4] or for each class [Q, C, 4], in pixels of a
        network's input.

        size: the photograph's width and height. shown: height and width of its part of the input,
            of which `padded` is the whole shape. maps: [1, C, h, w] of the input.
        """
        best, labels = scores.float().max(1)
        if boxes.ndim == 3:
            row = torch.arange(len(boxes), device=boxes.device)
            boxes = boxes[row, labels.clamp(max=boxes.shape[1] - 1)]
        across = size[0] / shown[1]
        down = size[1] / shown[0]
        width = padded[-1]
        height = padded[-2]
        whole = (width * across, height * down)
        if queries is not None:
            queries = queries.float()
        return cls(
            boxes.float() * boxes.new_tensor([across, down, across, down]),
            best,
            labels,
            queries,
            [FeatureMap.of_input(values[0], (width, height), whole) for values in maps],
        )


@dataclass(frozen=True)
class Selected:
    """The boxes that become items, in the items' order."""

    rows: torch.Tensor  # int64 [n], of the queries; WHOLE for the whole photograph
    boxes: torch.Tensor  # float32 [n, 4], inside the photograph
    scores: torch.Tensor  # float32 [n]; 1 for the whole photograph
    labels: torch.Tensor  # int64 [n]; WHOLE for the whole photograph


def select(found: Found, size: tuple[int, int], rule: DetectorOptions) -> Selected:
    """Select a photograph's items by the rule of this module. size: its width and height in
    pixels.
    """
    if not (found.boxes.isfinite().all() and found.scores.isfinite().all()):
        raise InputError(
            "the detector gives boxes or scores that are not numbers; use precision fp32, or look "
            "whether its weights are whole"
        )
    whole = found.boxes.new_tensor([[0, 0, *size]])
    boxes = found.boxes.clamp(min=0).minimum(whole[:, 2:].repeat(1, 2))
    rows = (boxes[:, 2:] > boxes[:, :2]).all(1).nonzero()[:, 0]
    if found.ranked:
        order = found.scores[rows].argsort(descending=True, stable=True)
        rows = rows[order[:CONSIDERED]]
        limits = [min(rule.overlap + step / 10, 1) for step in range(11)]
        rows = rows[rising(nms, boxes[rows], found.scores[rows], rule.min_boxes, limits)]
        rows = rows[keep(found.scores[rows], rule.min_boxes, rule.max_boxes, rule.confidence)]
    boxes = boxes[rows]
    scores = found.scores[rows]
    labels = found.labels[rows]
    if rule.whole_image or not len(rows):
        none = rows.new_full((1,), WHOLE)
        rows = torch.cat([none, rows])
        labels = torch.cat([none, labels])
        boxes = torch.cat([whole, boxes])
        scores = torch.cat([scores.new_ones(1), scores])
    return Selected(rows, boxes, scores, labels)

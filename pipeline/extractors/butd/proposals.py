"""From the region proposal network's maps to proposals, as in Caffe's `lib/rpn/proposal_layer.py`."""

from __future__ import annotations

import torch

from pipeline.extractors.butd.geometry import anchors, clip, move, suppress

# TEST.RPN_* of Caffe's lib/fast_rcnn/config.py.
MIN_SIZE = 16  # pixels of the image as it came, a side
BEFORE_NMS = 6000
AFTER_NMS = 300
THRESHOLD = 0.7


def propose(objectness: torch.Tensor, deltas: torch.Tensor, width: int, height: int, scale: float,
            most: int = AFTER_NMS) -> torch.Tensor:
    """Select the best proposals of one image: [n, 4] in pixels of the network's input, best first, n from 1 to `most`.

    `objectness` is [12, h, w], `deltas` [48, h, w], four for each anchor; `scale` is the factor from the image to the
    input. If no box is MIN_SIZE wide and high, the whole image is the only proposal.
    """
    count, rows, columns = objectness.shape
    scores = objectness.permute(1, 2, 0).reshape(-1)
    corrections = deltas.view(count, 4, rows, columns).permute(2, 3, 0, 1).reshape(-1, 4)
    boxes = clip(move(anchors(rows, columns).to(deltas), corrections), width, height)
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= MIN_SIZE * scale).all(dim=1)
    boxes, scores = boxes[large], scores[large]
    if not len(boxes):
        return deltas.new_tensor([[0, 0, width - 1, height - 1]])
    order = scores.argsort(descending=True, stable=True)[:BEFORE_NMS]
    boxes, scores = boxes[order], scores[order]
    return boxes[suppress(boxes, scores, THRESHOLD)[:most]]

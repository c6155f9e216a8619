"""A function of the relative position, given by learned values at fixed knots, for sets of any size."""

from __future__ import annotations

import torch
from torch import Tensor


def interpolate_knots(knots: Tensor, counts: Tensor) -> Tensor:
    """Read piecewise-linear functions at the n relative positions 0, 1/(n−1), …, 1 of a set of n.

    Args:
        knots: [P, C], floating point: C functions by their values at P ≥ 2 equidistant knots over 0..1.
        counts: [U], integer ≥ 1: the sets' sizes. A set of one reads the first knot.

    Returns:
        [U, N, C] with N the greatest count; values beyond a set's size are of no meaning.
    """
    pieces = knots.shape[0] - 1
    position = torch.arange(int(counts.max()), device=knots.device, dtype=knots.dtype)
    ratio = position / (counts - 1).clamp(min=1).to(knots).unsqueeze(1)
    place = ratio.clamp(max=1.0) * pieces
    left = place.long().clamp(max=pieces - 1)
    return torch.lerp(knots[left], knots[left + 1], (place - left).unsqueeze(2))

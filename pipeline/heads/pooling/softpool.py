"""SoftPool (Stergiou et al. 2021): a baseline of VSE+2AD Table 4, and half of AdPool."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.pooling.base import Pooling, masked_softmax


class SoftPool(Pooling):
    """The items' values, weighted by their softmax over the items, per dimension. No parameters."""

    title = "SoftPool"
    paper = "Stergiou et al. 2021"

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return soft_maximum(items, valid)


def soft_maximum(items: Tensor, valid: Tensor) -> Tensor:
    """Compute Σ_i softmax_i(t_ij) t_ij over the valid items: [B, D].

    Values are taken relative to the greatest item, so that no precision is lost, also in the gradient, if all items are
    large.
    """
    valid = valid.unsqueeze(2)
    # Detached, for the result does not depend on it.
    greatest = items.detach().masked_fill(~valid, float("-inf")).amax(1, keepdim=True)
    below = items - greatest
    return (greatest + (masked_softmax(below, valid, dim=1) * below).sum(1, keepdim=True)).squeeze(1)

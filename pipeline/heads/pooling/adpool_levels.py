"""AdPool's two levels (VSE+2AD equations 3 and 4), together or alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.heads.pooling.base import masked_softmax
from pipeline.heads.pooling.cpu_sort import (
    can_sort_fast,
    gather_chunk,
    in_chunks,
    order_dtype,
    scatter_chunk,
    sort_chunk,
)
from pipeline.heads.pooling.softpool import soft_maximum
from pipeline.heads.pooling.sort import padding_of, rows, sort_descending


def token_level(items: Tensor, valid: Tensor, weight: Tensor) -> Tensor:
    """Equation 3: items [B, N, D], valid bool [B, N], W_tok [D, 1], to [B, D]. Counted as in `BothLevels`."""
    ordered = sort_descending(items, valid)
    greatest = ordered[:, :1].detach()  # the result does not depend on it
    below = ordered - greatest
    theta = masked_softmax((below @ weight).squeeze(2), valid, dim=1)
    return (greatest + theta.unsqueeze(1) @ below).squeeze(1)


def both_levels(items: Tensor, valid: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Equations 3 and 4, as (t_tok, t_emb), [B, D] each. Arguments as there; padding holds anything finite."""
    if can_sort_fast(items):
        return BothLevels.apply(items, valid, weight.squeeze(1))
    return token_level(items, valid, weight), soft_maximum(items, valid)


class BothLevels(torch.autograd.Function):
    """`both_levels` in float32 by `cpu_sort`, each chunk of samples in one go.

    A softmax does not depend on the order, so the embedding level reads the sorted items while they are in
    the cache. Both levels count from the greatest item u_1: with v_m = u_m − u_1 neither softmax changes, t_tok =
    u_1 + Σ θ_m v_m, t_emb = u_1 + Σ δ_m v_m, and nothing is lost however large the items are. The backward pass
    has the order (one byte a value up to 256 items), Σ exp(v) and Σ δ v, and computes the rest again. With g the
    gradient of t_tok, that of the sorted items is of rank two: θ_m g + s_m W_tok, where s_m = θ_m (v_m · g − Σ_k
    θ_k v_k · g) is the gradient of the logits.
    """

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        batch, slots, dim = items.shape
        token, embedding, total, below = items.new_empty(4, batch, dim)
        theta = items.new_empty(batch, slots)
        order = torch.empty(batch, dim, slots, dtype=order_dtype(slots))
        padding = padding_of(valid)

        def pool(part: slice) -> None:
            mask = rows(padding, part)
            u, order[part] = sort_chunk(items[part], mask)
            greatest, v = below_greatest(u)
            logits = weight @ v
            theta[part] = (logits if mask is None else logits.masked_fill_(mask, float("-inf"))).softmax(1)
            token[part] = greatest + (v @ theta[part].unsqueeze(2)).squeeze(2)
            delta = without(mask, v.exp())
            total[part] = delta.sum(2)
            below[part] = delta.mul_(v).sum(2) / total[part]
            embedding[part] = greatest + below[part]

        in_chunks(pool, items)
        ctx.save_for_backward(items, valid, weight, order, theta, total, below)
        return token, embedding

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_token: Tensor, of_embedding: Tensor) -> tuple[Tensor, None, Tensor]:
        items, valid, weight, order, theta, total, below = ctx.saved_tensors
        of_items, of_weight = torch.empty_like(items), torch.empty_like(total)
        padding = padding_of(valid)

        def pull_back(part: slice) -> None:
            index = order[part].long()
            _, v = below_greatest(gather_chunk(items[part], index))
            g = of_token[part]
            of_theta = (g.unsqueeze(1) @ v).squeeze(1)
            mask = rows(padding, part)
            if mask is not None:  # what stands in padding may be large enough to overflow
                of_theta.masked_fill_(mask, 0.0)
            s = theta[part] * (of_theta - (theta[part] * of_theta).sum(1, keepdim=True))
            of_weight[part] = (v @ s.unsqueeze(2)).squeeze(2)  # v for u, since Σ s = 0
            delta = without(mask, v.exp())
            # d t_emb / d t_i = δ_i (1 + v_i − Σ δ v)
            delta.mul_((of_embedding[part] / total[part]).unsqueeze(2))
            of_u = v.sub_((below[part] - 1).unsqueeze(2)).mul_(delta)
            of_u.baddbmm_(torch.stack([g, weight.expand_as(g)], 2), torch.stack([theta[part], s], 1))
            of_items[part] = scatter_chunk(of_u, index)

        in_chunks(pull_back, items)
        return of_items, None, of_weight.sum(0)


def below_greatest(u: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted items [b, D, N] as the greatest [b, D] and, in their place, what each is below it."""
    greatest = u[..., 0].clone()
    return greatest, u.sub_(greatest.unsqueeze(2))


def without(padding: Tensor | None, values: Tensor) -> Tensor:
    """Values [b, D, N], changed in place to zero where padding, bool [b, N] or None, is True."""
    return values if padding is None else values.masked_fill_(padding.unsqueeze(1), 0.0)

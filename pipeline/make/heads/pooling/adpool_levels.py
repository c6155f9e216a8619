"""AdPool's two levels (VSE+2AD equations 3 and 4), together or alone."""

from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.make.heads.pooling import cpu_sort
from pipeline.make.heads.pooling.base import masked_softmax
from pipeline.make.heads.pooling.cpu_sort import (
    Chunk,
    Chunks,
    can_sort_fast,
    read_chunk,
    write_chunk,
)
from pipeline.make.heads.pooling.mean import soft_maximum
from pipeline.make.heads.pooling.sort import sort_descending


def token_level(items: Tensor, valid: Tensor, weight: Tensor) -> Tensor:
    """Compute the token level (equation 3), [B, D], relative to the greatest item as in
    `BothLevels`.
    """
    ordered = sort_descending(items, valid)
    greatest = ordered[:, :1].detach()  # the result does not depend on it
    below = ordered - greatest
    theta = masked_softmax((below @ weight).squeeze(2), valid, dim=1)
    return (greatest + theta.unsqueeze(1) @ below).squeeze(1)


def both_levels(items: Tensor, valid: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Compute both levels (equations 3 and 4), t_tok and t_emb [B, D], of items with finite values
    in padding.
    """
    if can_sort_fast(items):
        return BothLevels.apply(items, valid, weight.squeeze(1), torch.is_grad_enabled())
    return token_level(items, valid, weight), soft_maximum(items, valid)


class BothLevels(torch.autograd.Function):
    """`both_levels` in float32 by `cpu_sort`, chunk by chunk.

    A softmax does not depend on the order, so the embedding level reads the sorted items while they
    are in the cache. Both levels are relative to the greatest item u_1: with v_m = u_m − u_1
    neither softmax changes, t_tok = u_1 + Σ θ_m v_m, t_emb = u_1 + Σ δ_m v_m, and no precision is
    lost however large the items are. The backward pass receives v, the order (one byte a value up
    to 256 items), Σ exp(v) and Σ δ v, and computes the rest again. With g the gradient of t_tok,
    that of the sorted items is of rank two: θ_m g + s_m W_tok, where s_m = θ_m (v_m · g − Σ_k θ_k
    v_k · g) is the gradient of the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, items: Tensor, valid: Tensor, weight: Tensor, kept: bool
    ) -> tuple[Tensor, Tensor]:
        batch, slots, dim = items.shape
        chunks = Chunks(valid, dim)
        token, embedding, total, below = items.new_empty(4, batch, dim)
        theta = items.new_zeros(batch, slots)

        def pool(chunk: Chunk) -> tuple[Tensor, ...]:
            part = chunk.part
            u, places = cpu_sort.sort_chunk(read_chunk(items, chunk, torch.float64))
            greatest, v = below_greatest(u)
            # If the weight needed a gradient, torch would transpose v.
            weights = (weight.detach() @ v).softmax(1)
            theta[part, : chunk.items] = weights
            token[part] = greatest + (v @ weights.unsqueeze(2)).squeeze(2)
            delta = v.exp()
            total[part] = delta.sum(2)
            below[part] = delta.mul_(v).sum(2) / total[part]
            embedding[part] = greatest + below[part]
            if not kept:
                return ()
            return v, places

        saved = chain(*chunks.each(pool))
        ctx.chunks = chunks
        ctx.items = items.shape
        ctx.save_for_backward(weight, theta, total, below, *saved)
        return chunks.in_batch(token), chunks.in_batch(embedding)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_token: Tensor, grad_embedding: Tensor
    ) -> tuple[Tensor, None, Tensor, None]:
        weight, theta, total, below, *saved = ctx.saved_tensors
        chunks: Chunks = ctx.chunks
        grad_token = grad_token[chunks.order]
        grad_delta = grad_embedding[chunks.order] / total
        grad_items = total.new_empty(ctx.items)
        grad_weight = torch.empty_like(total)

        def pull_back(chunk: Chunk) -> None:
            part = chunk.part
            v, places = saved[2 * chunk.number : 2 * chunk.number + 2]
            g = grad_token[part]
            weights = theta[part, : chunk.items]
            grad_theta = (g.unsqueeze(1) @ v).squeeze(1)
            s = weights * (grad_theta - (weights * grad_theta).sum(1, keepdim=True))
            grad_weight[part] = (v @ s.unsqueeze(2)).squeeze(2)  # v for u, since Σ s = 0
            # d t_emb / d t_i = δ_i (1 + v_i − Σ δ v)
            delta = v.exp().mul_(grad_delta[part].unsqueeze(2))
            grad_u = v.sub((below[part] - 1).unsqueeze(2)).mul_(delta)
            of_dimensions = torch.stack([g, weight.expand_as(g)], 2)
            of_items = torch.stack([weights, s], 1)
            grad_u.baddbmm_(of_dimensions, of_items)
            write_chunk(grad_items, chunk, cpu_sort.unsort_chunk(grad_u, places.long()))

        chunks.each(pull_back)
        return grad_items, None, grad_weight.sum(0), None


def below_greatest(u: Tensor) -> tuple[Tensor, Tensor]:
    """Separate sorted items [b, D, n], overwritten, into the greatest [b, D] and the differences
    from it.
    """
    greatest = u[..., 0].clone()
    return greatest, u.sub_(greatest.unsqueeze(2))

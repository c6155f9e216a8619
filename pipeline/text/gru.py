"""A GRU in either direction over captions of different lengths, averaged; made for training on a CPU.

torch's own GRU multiplies for each step and each weight once more on the way back, and adds up as many gradients of
the weights' full size. Here the steps only carry the hidden state's gradient, and one product over all words of the
batch then gives each weight's: the same equations, summed in another order. The two directions go side by side, each on
half of the threads; padding is never read; and what a step needs stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pipeline.compute.threads import side_by_side
from pipeline.text.packing import Packing

WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def read(onward: nn.GRU, rearward: nn.GRU, words: Tensor, which: Tensor, packing: Packing) -> Tensor:
    """The hidden states of two one-layer GRUs with biases, one of which reads each caption from its end, averaged.

    Under autocast to bfloat16 the products are taken in it, all else in float32.

    Args:
        onward, rearward: of width W and d hidden units.
        words: [U, W], the vectors of the batch's different words; a word is multiplied once.
        which: int64 [M], the word at each place of the packing.
        packing: which places are whose.

    Returns:
        [M, d] in the packing's order.
    """
    short = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else words.dtype
    weights = [getattr(gru, name) for gru in (onward, rearward) for name in WEIGHTS]
    states: Tensor = ReadBoth.apply(words, which, packing, short, *weights)
    return states


class ReadBoth(torch.autograd.Function):
    """`read`. short: the dtype of products."""

    @staticmethod
    def forward(ctx: Any, words: Tensor, which: Tensor, packing: Packing, short: torch.dtype, *weights: Tensor
                ) -> Tensor:
        onward, rearward = directions(packing, short, weights)
        (states, *saved), (turned, *others) = side_by_side(
            lambda part: part[0].forward(words, part[1]), (onward, which), (rearward, which[packing.turned]))
        ctx.packing, ctx.short = packing, short
        ctx.save_for_backward(words, which, *weights, *saved, *others)
        return states.add_(turned[packing.turned]).mul_(0.5)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        words, which, *tensors = ctx.saved_tensors
        turned = ctx.packing.turned
        onward, rearward = directions(ctx.packing, ctx.short, tensors[:8])
        half = gradient * 0.5
        (of_words, *of_onward), (of_turned, *of_rearward) = side_by_side(
            lambda part: part[0].backward(words, *part[1:]),
            (onward, which, half, *tensors[8:11]), (rearward, which[turned], half[turned], *tensors[11:]))
        return (of_words.add_(of_turned), None, None, None, *of_onward, *of_rearward)


def directions(packing: Packing, short: torch.dtype, weights: Sequence[Tensor]) -> tuple[Direction, Direction]:
    """Both, from the weights of the one and then of the other."""
    return Direction(packing, short, *weights[:4]), Direction(packing, short, *weights[4:])


class Direction:
    """The equations of torch.nn.GRU (Cho et al. 2014), over M packed places.

    r = σ(a_r + b_r), z = σ(a_z + b_z), n = tanh(a_n + r b_n), h = (1 - z) n + z h', of the products a [M, 3 d] with
    the word and b [M, 3 d] with the state before, h' [M, d].
    """

    def __init__(self, packing: Packing, short: torch.dtype, of_words: Tensor, of_state: Tensor, bias_words: Tensor,
                 bias_state: Tensor) -> None:
        self.steps, self.dim, self.short = packing.steps, of_state.shape[1], short
        self.of_words, self.of_state = of_words.to(short), of_state.to(short)
        self.bias_words, self.bias_state = bias_words, bias_state

    def forward(self, words: Tensor, which: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The states [M, d]; and for the way back the gates r, z, n [M, 3 d], b_n and h' [M, d]."""
        d = self.dim
        bias = torch.cat([self.bias_words[:2 * d] + self.bias_state[:2 * d], self.bias_words[2 * d:]])
        gates = (words.to(self.short) @ self.of_words.T + bias).index_select(0, which)
        states, before, inner = (words.new_empty(len(which), d) for _ in range(3))
        state = words.new_zeros(self.steps[0].stop, d)
        for step in self.steps:
            before[step] = state = state[:step.stop - step.start]
            product = state.to(self.short) @ self.of_state.T
            r, z = gates[step, :2 * d].add_(product[:, :2 * d]).sigmoid_().split(d, dim=1)
            torch.add(product[:, 2 * d:], self.bias_state[2 * d:], out=inner[step])
            candidate = gates[step, 2 * d:].addcmul_(r, inner[step]).tanh_()
            state = torch.lerp(candidate, state, z, out=states[step])
        return states, gates, inner, before

    def backward(self, words: Tensor, which: Tensor, gradient: Tensor, gates: Tensor, inner: Tensor, before: Tensor
                 ) -> tuple[Tensor, ...]:
        """The gradients by the words [U, W] and the four weights. gradient: [M, d] by the states; it is used up."""
        d = self.dim
        of_b, of_a_n = (gates.new_empty(len(which), width, dtype=self.short) for width in (3 * d, d))
        carried = gradient.new_zeros(0, d)
        for step in reversed(self.steps):
            here = gradient[step]
            here[:len(carried)] += carried
            r, z, n = gates[step].split(d, dim=1)
            of_n = torch.mul(here, 1 - z)
            of_z = (before[step] - n).mul_(of_n).mul_(z)
            of_n.addcmul_(of_n * n, n, value=-1)
            of_inner = of_n * r
            of_r = of_inner * inner[step]
            of_r.addcmul_(of_r, r, value=-1)
            of_a_n[step] = of_n
            for place, part in enumerate((of_r, of_z, of_inner)):
                of_b[step, place * d:(place + 1) * d] = part
            carried = here.mul_(z).add_(of_b[step] @ self.of_state)
        of_a = of_b.new_zeros(len(words), 3 * d)  # a_r and b_r have one gradient, a_z and b_z as well
        of_a[:, :2 * d].index_add_(0, which, of_b[:, :2 * d])
        of_a[:, 2 * d:].index_add_(0, which, of_a_n)
        products = of_a @ self.of_words, of_a.T @ words.to(self.short), of_b.T @ before.to(self.short)
        biases = of_a.sum(0, dtype=gates.dtype), of_b.sum(0, dtype=gates.dtype)
        return (*(product.to(gates.dtype) for product in products), *biases)

"""A GRU over packed captions, made for training on a CPU: padding is not read, and weights get their gradients at once.

torch's own GRU multiplies for each step and each weight once more on the way back, and adds up as many gradients of
the weights' full size. Here the steps only carry the hidden state's gradient, and one product over all words of the
batch then gives each weight's: the same equations, summed in another order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence


@torch.compiler.disable  # how many steps there are depends on the data
def read(gru: nn.GRU, words: PackedSequence) -> PackedSequence:
    """The hidden states of a one-layer, one-directional GRU with biases. words: data [M, W]. Returns data [M, d]."""
    states = words.data
    if states.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return gru(words)[0]
    return words._replace(data=Reading.apply(
        states, words.batch_sizes, gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0))


class Reading(torch.autograd.Function):
    """The equations of torch.nn.GRU (Cho et al. 2014), over packed words [M, W] and how many captions have a t-th word.

    r = σ(a_r + b_r), z = σ(a_z + b_z), n = tanh(a_n + r b_n), h = (1 - z) n + z h', of the products a [M, 3 d] with
    the word and b [M, 3 d] with the state before, h' [M, d].
    """

    @staticmethod
    def forward(ctx: Any, words: Tensor, sizes: Tensor, of_words: Tensor, of_state: Tensor,
                bias_words: Tensor, bias_state: Tensor) -> Tensor:
        d = of_state.shape[1]
        gates = torch.addmm(bias_words, words, of_words.T)
        states, before, inner = (words.new_empty(len(words), d) for _ in range(3))
        state = words.new_zeros(int(sizes[0]), d)
        for step in steps(sizes):
            before[step] = state = state[:step.stop - step.start]
            product = torch.addmm(bias_state, state, of_state.T)
            gates[step, :2 * d] += product[:, :2 * d]
            inner[step] = product[:, 2 * d:]
            gate = gates[step, :2 * d].sigmoid_()
            candidate = gates[step, 2 * d:].addcmul_(gate[:, :d], inner[step]).tanh_()
            states[step] = state = torch.lerp(candidate, state, gate[:, d:])
        ctx.save_for_backward(words, sizes, of_words, of_state, gates, before, inner)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, Tensor, Tensor, Tensor]:
        words, sizes, of_words, of_state, gates, before, inner = ctx.saved_tensors
        d = of_state.shape[1]
        r, z, n = gates.split(d, dim=1)
        # What the state's gradient is multiplied with to give those of a_n, and of b: reset, update, candidate.
        to_candidate = (1 - z) * (1 - n * n)
        factors = torch.stack([to_candidate * inner * r * (1 - r), (before - n) * z * (1 - z), to_candidate * r], dim=1)
        of_states, of_products = gradient.clone(), torch.empty_like(factors)
        carried = gradient.new_zeros(0, d)
        for step in reversed(steps(sizes)):
            here = of_states[step]
            here[:len(carried)] += carried
            torch.mul(here.unsqueeze(1), factors[step], out=of_products[step])
            carried = torch.addmm(here * z[step], of_products[step].flatten(1), of_state)
        by_state = of_products.flatten(1)
        by_words = torch.cat([by_state[:, :2 * d], of_states * to_candidate], dim=1)
        return (by_words @ of_words, None, by_words.T @ words, by_state.T @ before, by_words.sum(0), by_state.sum(0))


def steps(sizes: Tensor) -> list[slice]:
    """Which packed rows hold the captions' first words, which their second, and so on."""
    ends = sizes.cumsum(0).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

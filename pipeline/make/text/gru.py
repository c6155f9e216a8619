"""A GRU in either direction over captions of different lengths, averaged, for training on a CPU.

The backward pass of torch's own GRU has one more product for each step and weight, and sums as many
gradients of the weights' full size. Here the steps only carry the hidden state's gradient, and one
product over all words of the batch then gives each weight's gradient: the same equations, summed in
another order. The two directions run at the same time, each on half of the threads; padding is
never read; and the data of a step stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

from pipeline.foundation.compute.threads import each, side_by_side


def states_in_graph(directions: Sequence[nn.GRU], items: Tensor, counts: Tensor) -> Tensor:
    """States [B, T, directions, d] of GRUs that read sequences [B, T, W] of at least one item, for
    an exported graph: one operator of ONNX.

    A second GRU reads each sequence in reverse. States of padding are unspecified.
    """
    weights = []
    recurrent = []
    biases = []
    for gru in directions:
        ordered = {name: _gates_of_onnx(weight) for name, weight in gru.named_parameters()}
        weights.append(ordered["weight_ih_l0"])
        recurrent.append(ordered["weight_hh_l0"])
        both = [ordered["bias_ih_l0"], ordered["bias_hh_l0"]]
        biases.append(torch.cat(both))
    width = directions[0].hidden_size
    direction = "bidirectional" if len(directions) == 2 else "forward"
    given = [
        items.transpose(0, 1),
        torch.stack(weights),
        torch.stack(recurrent),
        torch.stack(biases),
        counts.int(),
    ]
    states = torch.onnx.ops.symbolic(
        "GRU",
        given,
        {"hidden_size": width, "direction": direction, "linear_before_reset": 1},
        dtype=items.dtype,
        shape=[items.shape[1], len(directions), items.shape[0], width],
    )
    return states.permute(2, 0, 1, 3)


def _gates_of_onnx(weight: Tensor) -> Tensor:
    """Torch's gates are reset, update, new; those of ONNX are update, reset, new."""
    size = len(weight) // 3
    return torch.cat([weight[size : 2 * size], weight[:size], weight[2 * size :]])


@dataclass(frozen=True)
class Packing:
    """M words of B captions padded to T positions, the longest caption first in each step."""

    # The packed rows of the captions' first words, of their second words, and so on.
    steps: list[slice]
    places: Tensor  # int64 [M], the position of each packed word in the flattened [B * T]
    # int64 [M], the packed row of the word as far from the caption's end as this one is from its
    # start
    turned: Tensor

    @property
    def captions(self) -> int:
        """B, the number of captions."""
        return self.steps[0].stop

    @property
    def before(self) -> Tensor:
        """Int64 [M - B], the packed row of the previous word, of all words but the captions' first
        ones.
        """
        rows = [torch.arange(0)]
        for last, step in pairwise(self.steps):
            count = step.stop - step.start
            rows.append(torch.arange(last.start, last.start + count))
        return torch.cat(rows)

    @classmethod
    def of(cls, lengths: Tensor, width: int) -> Packing:
        """Pack captions of lengths, int64 [B] on the CPU, in tokens of a width T."""
        longest_first = lengths.argsort(descending=True, stable=True)
        ordered = lengths[longest_first]
        number = torch.arange(int(ordered[0]))
        present = number.unsqueeze(1) < ordered  # [steps, B]
        step, rank = present.nonzero(as_tuple=True)
        ends = present.sum(1).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        bounds = pairwise([0, *ends.tolist()])
        steps = [slice(start, end) for start, end in bounds]
        places = longest_first[rank] * width + step
        from_end = ordered[rank] - 1 - step
        turned = starts[from_end] + rank
        return cls(steps, places, turned)

    def to(self, device: torch.device) -> Packing:
        """Move the indices to a device."""
        places = self.places.to(device)
        turned = self.turned.to(device)
        return Packing(self.steps, places, turned)


WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def bidirectional_states(
    onward: nn.GRU, rearward: nn.GRU, words: Tensor, which: Tensor, packing: Packing
) -> Tensor:
    """Average the hidden states [M, d] of two one-layer GRUs with biases, of which one reads each
    caption in reverse.

    The vectors [U, W] of the batch's different words are multiplied once; `which`, int64 [M], is
    the word at each packed row. Under autocast to bfloat16 products are computed in bfloat16, all
    else in float32.
    """
    short = words.dtype
    if torch.is_autocast_enabled("cpu"):
        short = torch.get_autocast_dtype("cpu")
    weights = [getattr(onward, name) for name in WEIGHTS]
    weights += [getattr(rearward, name) for name in WEIGHTS]
    states: Tensor = ReadBoth.apply(words, which, packing, short, *weights)
    return states


class ReadBoth(torch.autograd.Function):
    """`bidirectional_states` with its gradients. `short` is the dtype of products."""

    @staticmethod
    def forward(
        ctx: Any,
        words: Tensor,
        which: Tensor,
        packing: Packing,
        short: torch.dtype,
        *weights: Tensor,
    ) -> Tensor:
        onward, rearward = directions(packing, short, weights)
        read_onward, read_rearward = side_by_side(
            lambda part: part[0].forward(words, part[1]),
            (onward, which),
            (rearward, which[packing.turned]),
        )
        ctx.packing = packing
        ctx.short = short
        ctx.save_for_backward(words, which, *weights, *read_onward, *read_rearward)
        states = read_onward[0]
        turned = read_rearward[0].index_select(0, packing.turned)
        return states.add(turned).mul_(0.5)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        words, which, *tensors = ctx.saved_tensors
        turned = ctx.packing.turned
        onward, rearward = directions(ctx.packing, ctx.short, tensors[:8])
        half = gradient * 0.5
        turned_half = half.index_select(0, turned)
        of_onward, of_rearward = side_by_side(
            lambda part: part[0].backward(words, *part[1:]),
            (onward, which, half, *tensors[8:11]),
            (rearward, which[turned], turned_half, *tensors[11:]),
        )
        pairs, biases = of_onward
        turned_pairs, turned_biases = of_rearward
        # The largest products of both directions come first.
        in_turn = list(chain(*zip(pairs, turned_pairs, strict=True)))
        products = each(lambda pair: (pair[0] @ pair[1]).to(gradient.dtype), in_turn, at_once=2)
        of_state, of_word, of_words = products[::2]
        turned_of_state, turned_of_word, turned_of_words = products[1::2]
        return (
            of_words.add_(turned_of_words),
            None,
            None,
            None,
            of_word,
            of_state,
            *biases,
            turned_of_word,
            turned_of_state,
            *turned_biases,
        )


def directions(
    packing: Packing, short: torch.dtype, weights: Sequence[Tensor]
) -> tuple[Direction, Direction]:
    """Build both directions, from four weights of the forward GRU and then four of the other."""
    onward = Direction(packing, short, *weights[:4])
    rearward = Direction(packing, short, *weights[4:])
    return onward, rearward


class Direction:
    """The equations of torch.nn.GRU (Cho et al. 2014), over M packed rows.

    r = σ(a_r + b_r), z = σ(a_z + b_z), n = tanh(a_n + r b_n), h = (1 - z) n + z h', with the
    products a [M, 3 d] of the word and b [M, 3 d] of the previous state h' [M, d], which is zero at
    the first step.
    """

    def __init__(
        self,
        packing: Packing,
        short: torch.dtype,
        of_words: Tensor,
        of_state: Tensor,
        bias_words: Tensor,
        bias_state: Tensor,
    ) -> None:
        self.packing = packing
        self.dim = of_state.shape[1]
        self.short = short
        self.of_words = of_words.to(short)
        self.of_state = of_state.to(short)
        self.bias_words = bias_words
        self.bias_state = bias_state

    def forward(self, words: Tensor, which: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the states [M, d]; and for the backward pass the gates r, z, n [M, 3 d] and b_n
        [M, d].
        """
        d = self.dim
        r_and_z = slice(0, 2 * d)
        n = slice(2 * d, 3 * d)
        of_gates = self.bias_words[r_and_z] + self.bias_state[r_and_z]
        bias = torch.cat([of_gates, self.bias_words[n]])
        of_words = words.to(self.short) @ self.of_words.T + bias
        gates = of_words.index_select(0, which)
        states = words.new_empty(len(which), d)
        inner = words.new_empty(len(which), d)
        state = words.new_zeros(self.packing.captions, d)
        for step in self.packing.steps:
            state = state[: step.stop - step.start]
            if step.start:
                product = state.to(self.short) @ self.of_state.T
                gates[step, r_and_z].add_(product[:, r_and_z])
                torch.add(product[:, n], self.bias_state[n], out=inner[step])
            else:
                inner[step] = self.bias_state[n]
            r, z = gates[step, r_and_z].sigmoid_().split(d, dim=1)
            candidate = gates[step, n].addcmul_(r, inner[step])
            # With AVX-512 twelve times as fast as torch's.
            np.tanh(candidate.numpy(), out=candidate.numpy())
            state = torch.lerp(candidate, state, z, out=states[step])
        return states, gates, inner

    def backward(
        self,
        words: Tensor,
        which: Tensor,
        gradient: Tensor,
        states: Tensor,
        gates: Tensor,
        inner: Tensor,
    ) -> tuple[list[tuple[Tensor, Tensor]], tuple[Tensor, Tensor]]:
        """Compute the gradients, from what `forward` gave.

        Products that no other step waits for are left to the caller.

        The gradient [M, d] of the states is overwritten. The result: the factors of the gradients
        of the state's weight, the word's weight and the words [U, W], the largest product first;
        and the gradients of both biases.
        """
        d = self.dim
        of_b = gates.new_empty(len(which), 3 * d, dtype=self.short)
        of_a_n = gates.new_empty(len(which), d, dtype=self.short)
        later = slice(self.packing.captions, None)
        before = torch.zeros_like(states)
        torch.index_select(states, 0, self.packing.before, out=before[later])
        carried = gradient.new_zeros(0, d)
        for step in reversed(self.packing.steps):
            here = gradient[step]
            here[: len(carried)] += carried
            r, z, n = gates[step].split(d, dim=1)
            gate_gradients = [*of_b[step].split(d, dim=1), of_a_n[step]]
            exact = [_exact(place, gates.dtype) for place in gate_gradients]
            of_r, of_z, of_inner, of_n = exact
            torch.mul(here, 1 - z, out=of_n)
            torch.sub(before[step], n, out=of_z)
            of_z.mul_(of_n).mul_(z)
            of_n.addcmul_(of_n * n, n, value=-1)
            torch.mul(of_n, r, out=of_inner)
            torch.mul(of_inner, inner[step], out=of_r)
            of_r.addcmul_(of_r, r, value=-1)
            for place, values in zip(gate_gradients, exact, strict=True):
                place.copy_(values)  # this costs nothing where they are the same tensor
            if step.start:
                of_previous = of_b[step] @ self.of_state
                carried = here.mul_(z).add_(of_previous)
        # a_r and b_r have one gradient, a_z and b_z as well
        of_a = _sum_by_word(of_b, which, len(words))
        of_a[:, 2 * d :] = _sum_by_word(of_a_n, which, len(words))
        of_state_weight = (of_b[later].T, before[later].to(self.short))
        of_word_weight = (of_a.T, words.to(self.short))
        of_words = (of_a, self.of_words)
        of_bias_words = of_a.sum(0, dtype=gates.dtype)
        of_bias_state = of_b.sum(0, dtype=gates.dtype)
        return [of_state_weight, of_word_weight, of_words], (of_bias_words, of_bias_state)


def _exact(place: Tensor, dtype: torch.dtype) -> Tensor:
    """A place for values of a dtype: this one, or a new one of its shape."""
    if place.dtype == dtype:
        return place
    return place.new_empty(place.shape, dtype=dtype)


def _sum_by_word(values: Tensor, which: Tensor, words: int) -> Tensor:
    """Sum the rows [M, w] of each word: [U, w]. Every word has a row. `index_add_` is three times
    slower.
    """
    order = which.argsort(stable=True)
    firsts = torch.searchsorted(which[order], torch.arange(words))
    return embedding_bag(order, values, firsts, mode="sum")

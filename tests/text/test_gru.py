"""The CPU's GRU against torch's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
import torch

from pipeline.foundation.compute.threads import each, side_by_side
from pipeline.make.text import gru
from pipeline.make.text.bigru import BiGRU
from pipeline.make.text.gru import Packing, bidirectional_states

LENGTHS = [[5], [3, 3], [4, 7, 1, 7, 2], [1, 1]]


def turned_by_hand(sequence: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """[B, T, W] with each caption's words in the opposite order."""
    out = sequence.clone()
    for row, length in enumerate(lengths):
        out[row, :length] = sequence[row, :length].flip(0)
    return out


@pytest.mark.specification
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("threads", [1, 2])
def test_states_and_gradients_are_those_of_torch(lengths: list[int], threads: int) -> None:
    torch.manual_seed(0)
    encoder = BiGRU(20, 4, 5).double()
    tokens = torch.randint(20, (len(lengths), max(lengths)))
    present = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    torch.set_num_threads(threads)
    try:
        ours = encoder(tokens, torch.tensor(lengths))
        weight = torch.randn_like(ours) * present[..., None]
        ours_by = torch.autograd.grad(
            (ours * weight).sum(), list(encoder.parameters()), retain_graph=True
        )
    finally:
        torch.set_num_threads(1)
    words = encoder.embedding(tokens).transpose(0, 1)
    onward = encoder.onward(words)[0].transpose(0, 1)
    turned = encoder.rearward(turned_by_hand(words.transpose(0, 1), lengths).transpose(0, 1))[
        0
    ].transpose(0, 1)
    theirs = (onward + turned_by_hand(turned, lengths)) / 2 * present[..., None]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    theirs_by = torch.autograd.grad((theirs * weight).sum(), list(encoder.parameters()))
    torch.testing.assert_close(ours_by, theirs_by, rtol=0, atol=1e-12)
    assert all(gradient.abs().sum() > 0 for gradient in ours_by[1:2])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_what_a_gpu_does_is_the_same(lengths: list[int]) -> None:
    torch.manual_seed(0)
    encoder = BiGRU(20, 4, 5).double()
    tokens = torch.randint(20, (len(lengths), max(lengths)))
    packing = Packing.of(torch.tensor(lengths), max(lengths))
    words = encoder.embedding(tokens.flatten()[packing.places])
    ours = bidirectional_states(
        encoder.onward, encoder.rearward, words, torch.arange(len(words)), packing
    )
    theirs = encoder._read_by_torch(words, packing)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_threads_change_no_bit() -> None:
    torch.manual_seed(0)
    encoder = BiGRU(50, 64, 30)
    tokens, lengths = torch.randint(50, (32, 9)), torch.randint(1, 10, (32,))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        states = encoder(tokens, lengths)
        found.append(
            [states, *torch.autograd.grad(states.square().sum(), list(encoder.parameters()))]
        )
    torch.set_num_threads(1)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_bfloat16_is_near() -> None:
    torch.manual_seed(0)
    encoder = BiGRU(50, 64, 30)
    tokens, lengths = torch.randint(50, (32, 9)), torch.randint(1, 10, (32,))
    exact = encoder(tokens, lengths)
    of_exact = torch.autograd.grad(exact.square().sum(), list(encoder.parameters()))
    with torch.autocast("cpu", torch.bfloat16):
        short = encoder(tokens, lengths)
    of_short = torch.autograd.grad(short.square().sum(), list(encoder.parameters()))
    assert not torch.equal(exact, short)
    for one, other in zip([exact, *of_exact], [short, *of_short], strict=True):
        assert other.dtype == torch.float32
        assert (one - other).norm() < 0.02 * one.norm()


def test_a_packing_turns_back_what_it_turned() -> None:
    packing = Packing.of(torch.tensor([4, 7, 1, 7, 2]), 8)
    assert packing.turned[packing.turned].equal(torch.arange(21))
    assert sorted(packing.places.tolist()) == sorted(
        row * 8 + place for row, length in enumerate([4, 7, 1, 7, 2]) for place in range(length)
    )


def test_a_copy_reads_alike() -> None:
    encoder = BiGRU(20, 4, 5)
    tokens, lengths = torch.randint(20, (3, 4)), torch.tensor([4, 2, 1])
    assert torch.equal(encoder(tokens, lengths), deepcopy(encoder)(tokens, lengths))
    with torch.inference_mode():
        assert torch.equal(encoder(tokens, lengths), encoder(tokens, lengths))


@pytest.mark.slow
# What torch.compile cannot follow is marked
@pytest.mark.filterwarnings("error:Dynamo does not know")
def test_a_head_that_is_compiled_reads_captions_as_before() -> None:
    torch.manual_seed(0)
    encoder = BiGRU(20, 4, 5)
    compiled = torch.compile(encoder, backend="eager")
    for lengths in ([4, 7, 1], [2, 2]):
        tokens = torch.randint(20, (len(lengths), max(lengths)))
        results = []
        for one in (encoder, compiled):
            states = one(tokens, torch.tensor(lengths))
            results.append(
                [
                    states.detach(),
                    *torch.autograd.grad(states.square().sum(), list(encoder.parameters())),
                ]
            )
        torch.testing.assert_close(*results)


def test_products_of_the_weights_are_shared_with_images_that_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = threading.Barrier(2, timeout=30)

    def by_two(work: Callable[[Any], Any], arguments: Sequence[Any], at_once: int) -> list[Any]:
        return each(lambda argument: (both.wait(), work(argument))[1], arguments, at_once)

    encoder = BiGRU(20, 4, 5)
    loss = encoder(torch.randint(20, (3, 4)), torch.tensor([4, 2, 1])).sum()
    monkeypatch.setattr(gru, "each", by_two)
    torch.set_num_threads(2)
    try:
        side_by_side(lambda captions: loss.backward() if captions else None, False, True)
    finally:
        torch.set_num_threads(1)
    assert encoder.rearward.weight_hh_l0.grad is not None

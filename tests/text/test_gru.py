"""The CPU's GRU against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from pipeline.text.gru import read


@pytest.mark.parametrize("lengths", [[5], [3, 3], [4, 7, 1, 7, 2]])
def test_states_and_gradients_are_those_of_torch(lengths: list[int]) -> None:
    torch.manual_seed(0)
    gru = torch.nn.GRU(5, 4).double()
    words = torch.randn(len(lengths), max(lengths), 5, dtype=torch.float64, requires_grad=True)
    packed = pack_padded_sequence(words, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    ours, theirs = read(gru, packed), gru(packed)[0]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    weight = torch.randn_like(ours.data)
    ours_by, theirs_by = (torch.autograd.grad((states.data * weight).sum(), [words, *gru.parameters()],
                                              retain_graph=True) for states in (ours, theirs))
    torch.testing.assert_close(ours_by, theirs_by, rtol=0, atol=1e-12)
    assert all(gradient.abs().sum() > 0 for gradient in ours_by)


def test_lower_precision_is_torchs_own() -> None:
    gru, words = torch.nn.GRU(5, 4), torch.randn(2, 3, 5)
    packed = pack_padded_sequence(words, torch.tensor([3, 2]), batch_first=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(read(gru, packed).data, gru(packed)[0].data)

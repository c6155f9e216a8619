"""Weights begin in memory where torch begins its own."""

from __future__ import annotations

import numpy as np
import torch

from pipeline.foundation.files.alignment import BOUNDARY, align


def test_weights_that_begin_elsewhere_are_moved_and_tied_ones_stay_tied() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    memory = np.zeros(64 + BOUNDARY, np.uint8)
    begin = -memory.ctypes.data % BOUNDARY + 8
    unaligned = torch.from_numpy(memory[begin : begin + 64].view(np.float32).reshape(4, 4))
    weight = torch.nn.Parameter(unaligned)
    network[0].weight = weight
    network[1].weight = weight
    align(network)
    assert not any(each.data_ptr() % BOUNDARY for each in network.parameters())
    assert network[0].weight is network[1].weight is weight
    torch.testing.assert_close(weight.detach(), torch.zeros(4, 4))

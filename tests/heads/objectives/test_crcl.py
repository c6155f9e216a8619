"""CRCL's loss against its formula, written out as loops."""

from __future__ import annotations

import pytest
import torch
from cosines import cosines
from torch import Tensor

from pipeline.make.heads.objectives import build


def crcl_by_loops(similarity: Tensor, trust: list[float]) -> Tensor:
    """CRCL's active complementary loss with the weight 5 and the temperature 0.05, from its
    formula.
    """
    batch, total = len(similarity), torch.zeros((), dtype=similarity.dtype)
    for matrix in (similarity, similarity.T):
        for i in range(batch):
            powers = [torch.exp(matrix[i, j] / 0.05) for j in range(batch)]
            tangents = [torch.tan(power / sum(powers)) for power in powers]
            wrong = sum(tangents[j] for j in range(batch) if j != i)
            active = -trust[i] * torch.log(powers[i] / sum(powers))
            total = total + (active + 5 * wrong / sum(tangents) ** (1 - trust[i])) / batch
    return total


@pytest.mark.specification
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_crcl_and_its_gradient(epoch: int) -> None:
    similarity = cosines(6).requires_grad_()
    objective = build("crcl")
    objective.start_epoch(epoch)
    p = [(matrix / 0.05).softmax(1).diagonal() for matrix in (similarity, similarity.T)]
    trust = [1.0] * 6 if epoch < 2 else ((p[0] + p[1]) / 2).tolist()
    expected, loss = crcl_by_loops(similarity, trust), objective(similarity)
    torch.testing.assert_close(loss, expected)
    assert objective.log["trust"] == pytest.approx(sum(trust) / 6)
    torch.testing.assert_close(
        *(torch.autograd.grad(each, similarity)[0] for each in (loss, expected))
    )


def test_a_pair_that_crcl_does_not_trust_pulls_less_than_in_infonce() -> None:
    similarity = cosines(12)
    similarity[0, 0] = -0.5  # a caption of another image
    pulls = {}
    for name in ("infonce", "crcl"):
        matrix = similarity.clone().requires_grad_()
        build(name)(matrix).backward()
        assert matrix.grad is not None
        pulls[name] = float(matrix.grad[0, 0].abs())
    assert pulls["crcl"] < 0.01 * pulls["infonce"]

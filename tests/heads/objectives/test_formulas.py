"""The triplet loss, InfoNCE and its fixed and random K against their equations, written out as
loops.
"""

from __future__ import annotations

import pytest
import torch
from cosines import contrast_by_loops, cosines
from torch import Tensor

from pipeline.make.heads.objectives import build


def triplet_by_loops(similarity: Tensor, margin: float, hardest: bool) -> float:
    """VSE+2AD equation 2; the sum over all negatives is the papers' first epoch."""
    total = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            costs = [max(0.0, margin - row[i] + s) for j, s in enumerate(row) if j != i]
            total += max(costs) if hardest else sum(costs)
    return total


@pytest.mark.specification
@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_triplet(epoch: int) -> None:
    similarity = cosines(12)
    objective = build("triplet")
    objective.start_epoch(epoch)
    expected = triplet_by_loops(similarity, 0.2, hardest=epoch > 0)
    assert float(objective(similarity)) == pytest.approx(expected)


def test_triplet_that_was_told_no_epoch_uses_the_hardest() -> None:
    similarity = cosines(12)
    assert float(build("triplet", margin=0.3)(similarity)) == pytest.approx(
        triplet_by_loops(similarity, 0.3, hardest=True)
    )


def test_triplet_logs_violations() -> None:
    objective = build("triplet")
    objective(torch.tensor([[0.5, 0.4], [0.0, 0.9]]))
    # Image 0 and caption 0, 1 against the only negative each: 0.2 + 0.4 − 0.5 > 0, and no other
    # violates.
    assert objective.log == {"violations": pytest.approx(1 / 4), "negatives": 1}


@pytest.mark.specification
def test_infonce_is_cross_entropy_over_the_batch() -> None:
    similarity = cosines(12)
    labels = torch.arange(12)
    expected = torch.nn.functional.cross_entropy(similarity / 0.05, labels)
    expected = expected + torch.nn.functional.cross_entropy(similarity.T / 0.05, labels)
    torch.testing.assert_close(build("infonce")(similarity), expected)


@pytest.mark.specification
@pytest.mark.parametrize("denominator", ["with_positive", "printed"])
def test_constant_k(denominator: str) -> None:
    similarity = cosines(12)
    objective = build("constant_k", k=4, denominator=denominator)
    expected = contrast_by_loops(similarity, 4, 0.05, denominator == "with_positive")
    assert float(objective(similarity)) == pytest.approx(expected)
    assert objective.log == {"negatives": 4.0}


def test_constant_k_greater_than_the_batch_takes_all() -> None:
    objective = build("constant_k", k=100)
    torch.testing.assert_close(objective(cosines(5)), build("infonce")(cosines(5)))
    assert objective.log == {"negatives": 4.0}


def test_random_k_covers_its_range_and_follows_the_seed() -> None:
    objective, similarity = build("random_k"), cosines(5)

    def draws() -> list[float]:
        torch.manual_seed(3)
        seen = []
        for _ in range(60):
            loss = float(objective(similarity))
            k = objective.log["negatives"]
            assert loss == pytest.approx(contrast_by_loops(similarity, int(k), 0.05, True))
            seen.append(k)
        return seen

    first = draws()
    assert set(first) == {1.0, 2.0, 3.0, 4.0}
    assert draws() == first


@pytest.mark.specification
def test_sigmoid_is_that_of_siglip() -> None:
    """−1/B Σ log σ(z (t s + b)): Zhai et al., algorithm 1, with z = 2 I − 1."""
    similarity = cosines(5)
    labels = 2 * torch.eye(5, dtype=torch.float64) - 1
    expected = -torch.log(torch.sigmoid(labels * (similarity * 20 - 3))).sum() / 5
    torch.testing.assert_close(build("sigmoid", temperature=0.05, bias=-3.0)(similarity), expected)

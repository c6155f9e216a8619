"""AdOpt against its equations in both readings of K."""

from __future__ import annotations

import math

import pytest
import torch
from cosines import contrast_by_loops, cosines
from torch import Tensor

from benchmarks import released
from pipeline.make.heads.objectives import build


def adaptive_k(similarity: Tensor) -> tuple[float, float, int]:
    """Equation 6, literally."""
    batch = len(similarity)
    align = float(similarity.diagonal().mean())
    uniform = math.log(float(similarity.exp().mean()))
    k = math.floor(batch * math.cos((align + uniform) * math.pi / 4))
    return align, uniform, max(1, min(k, batch - 1))


@pytest.mark.specification
@pytest.mark.parametrize("denominator", ["with_positive", "printed"])
@pytest.mark.parametrize("maturity", [0.0, 0.6, 1.0])
def test_adopt(denominator: str, maturity: float) -> None:
    # From random to solved: K falls from the whole batch to less.
    similarity = torch.lerp(cosines(12), torch.ones(12, 12, dtype=torch.float64), maturity)
    objective = build("adopt", denominator=denominator)
    align, uniform, k = adaptive_k(similarity)
    expected = contrast_by_loops(similarity, k, 0.05, denominator == "with_positive")
    assert float(objective(similarity)) == pytest.approx(expected)
    assert objective.log == pytest.approx({"negatives": k, "align": align, "uniform": uniform})


def test_a_margin_is_added_to_the_negatives() -> None:
    similarity = cosines(12)
    raised = similarity + 0.2 * (1 - torch.eye(12))
    for name, options in (("adopt", {}), ("constant_k", {"k": 4}), ("random_k", {})):
        torch.manual_seed(0)
        objective = build(name, margin=0.2, **options)
        got = float(objective(similarity))
        hardest = int(objective.log["negatives"])
        assert got == pytest.approx(contrast_by_loops(raised, hardest, 0.05, with_positive=True))


def test_adopt_uses_all_negatives_early_and_one_late() -> None:
    objective = build("adopt")
    seen = []
    for s in (0.0, 0.5, 1.0):
        objective(torch.full((12, 12), s))
        seen.append(objective.log["negatives"])
    assert seen == [11.0, 8.0, 1.0]


def test_adopt_as_released_counts_half_at_random_and_one_for_pairs_told_apart() -> None:
    objective = build("adopt", count="released")
    batch = 12
    for similarity in (
        cosines(batch),
        torch.zeros(batch, batch),
        torch.eye(batch),
        torch.ones(batch, batch),
        1 - 2 * torch.eye(40),  # whose align and uniform have a sum below 0
    ):
        align, others = float(similarity.diagonal().mean()), similarity.double().clone()
        others.fill_diagonal_(0)
        uniform = float(others.neg().exp().mean())
        pairs = len(similarity)
        k = math.floor(pairs * math.cos(max(align + uniform, 0) ** 1.25)) + 1
        objective(similarity)
        assert objective.log == pytest.approx(
            {"negatives": max(1, min(k, pairs - 1)), "align": align, "uniform": uniform}, abs=1e-5
        )
    objective(torch.zeros(batch, batch))
    assert objective.log["negatives"] == 7  # cos(1) of 12, and 1
    objective(torch.eye(batch))
    assert objective.log["negatives"] == 1


@pytest.mark.specification
def test_adopt_as_released_is_the_released_codes_loss() -> None:
    torch.manual_seed(1)
    # Positive similarities: among negative ones the released code takes a query's own key, set to
    # 0, for a negative.
    images, captions = (torch.nn.functional.normalize(torch.rand(16, 8), dim=1) for _ in range(2))
    mine = build("adopt", count="released", margin=0.2, temperature=0.01)
    assert float(mine(images @ captions.T)) / 2 == pytest.approx(
        float(released.adcto(images, captions)), rel=1e-4
    )


def test_printed_adopt_can_be_negative_and_the_default_cannot() -> None:
    solved = torch.eye(8)
    assert build("adopt", denominator="printed")(solved) < -10
    assert 0 <= build("adopt")(solved) < 1e-6


def test_no_gradient_flows_through_k() -> None:
    similarity = cosines(12).requires_grad_()
    objective = build("adopt")
    objective(similarity).backward()
    assert similarity.grad is not None
    fixed = similarity.detach().clone().requires_grad_()
    build("constant_k", k=int(objective.log["negatives"]))(fixed).backward()
    torch.testing.assert_close(similarity.grad, fixed.grad)

"""Objectives against their equations, written out as loops in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import released
from pipeline.errors import InputError
from pipeline.objectives import OBJECTIVES, Objective, build

every_objective = pytest.mark.parametrize("name", OBJECTIVES)


def cosines(batch: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """The similarity of random pairs that agree somewhat, as in the middle of training."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(batch, 16, generator=generator, dtype=torch.float64)
    captions = images + torch.randn(batch, 16, generator=generator, dtype=torch.float64)
    images, captions = (torch.nn.functional.normalize(x, dim=1) for x in (images, captions))
    return (images @ captions.T).to(dtype)


def triplet_by_loops(similarity: Tensor, margin: float, hardest: bool) -> float:
    """VSE+2AD equation 2; the sum over all negatives is the papers' first epoch."""
    total = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            costs = [max(0.0, margin - row[i] + s) for j, s in enumerate(row) if j != i]
            total += max(costs) if hardest else sum(costs)
    return total


def contrast_by_loops(similarity: Tensor, k: int, temperature: float, with_positive: bool) -> float:
    """VSE+2AD 3.3: InfoNCE over the K hardest negatives, both directions."""
    total = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            negatives = sorted((s for j, s in enumerate(row) if j != i), reverse=True)[:k]
            denominator = sum(math.exp(s / temperature) for s in negatives + [row[i]] * with_positive)
            total -= math.log(math.exp(row[i] / temperature) / denominator) / len(similarity)
    return total


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


@every_objective
def test_every_objective_logs_how_many_negatives_it_uses(name: str) -> None:
    objective = build(name)
    objective.start_epoch(0)
    objective(cosines(12))
    least = 11 if name in ("triplet", "infonce", "crcl") else 1  # triplet: all of them in the first epoch
    assert least <= objective.log["negatives"] <= 11


def test_triplet_logs_violations() -> None:
    objective = build("triplet")
    objective(torch.tensor([[0.5, 0.4], [0.0, 0.9]]))
    # Image 0 and caption 0, 1 against the only negative each: 0.2 + 0.4 − 0.5 > 0, and no other violates.
    assert objective.log == {"violations": pytest.approx(1 / 4), "negatives": 1}


def test_infonce_is_cross_entropy_over_the_batch() -> None:
    similarity = cosines(12)
    labels = torch.arange(12)
    expected = torch.nn.functional.cross_entropy(similarity / 0.05, labels)
    expected = expected + torch.nn.functional.cross_entropy(similarity.T / 0.05, labels)
    torch.testing.assert_close(build("infonce")(similarity), expected)


def adaptive_k(similarity: Tensor) -> tuple[float, float, int]:
    """Equation 6, literally."""
    batch = len(similarity)
    align = float(similarity.diagonal().mean())
    uniform = math.log(float(similarity.exp().mean()))
    k = math.floor(batch * math.cos((align + uniform) * math.pi / 4))
    return align, uniform, max(1, min(k, batch - 1))


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
    for similarity in (cosines(batch), torch.zeros(batch, batch), torch.eye(batch), torch.ones(batch, batch)):
        align, others = float(similarity.diagonal().mean()), similarity.double().clone()
        others.fill_diagonal_(0)
        uniform = float(others.neg().exp().mean())
        k = math.floor(batch * math.cos(max(align + uniform, 0) ** 1.25)) + 1
        objective(similarity)
        assert objective.log == pytest.approx({"negatives": max(1, min(k, batch - 1)), "align": align,
                                               "uniform": uniform}, abs=1e-5)
    objective(torch.zeros(batch, batch))
    assert objective.log["negatives"] == 7  # cos(1) of 12, and 1
    objective(torch.eye(batch))
    assert objective.log["negatives"] == 1


def test_adopt_as_released_is_the_released_codes_loss() -> None:
    torch.manual_seed(1)
    # Positive similarities: among negative ones the released code takes a query's own key, set to 0, for a negative.
    images, captions = (torch.nn.functional.normalize(torch.rand(16, 8), dim=1) for _ in range(2))
    mine = build("adopt", count="released", margin=0.2, temperature=0.01)
    assert float(mine(images @ captions.T)) / 2 == pytest.approx(float(released.adcto(images, captions)), rel=1e-4)


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


def crcl_by_loops(similarity: Tensor, trust: list[float]) -> Tensor:
    """CRCL's active complementary loss with the weight 5 and the temperature 0.05, from its formula."""
    batch, total = len(similarity), torch.zeros((), dtype=similarity.dtype)
    for matrix in (similarity, similarity.T):
        for i in range(batch):
            powers = [torch.exp(matrix[i, j] / 0.05) for j in range(batch)]
            tangents = [torch.tan(power / sum(powers)) for power in powers]
            wrong = sum(tangents[j] for j in range(batch) if j != i)
            active = -trust[i] * torch.log(powers[i] / sum(powers))
            total = total + (active + 5 * wrong / sum(tangents) ** (1 - trust[i])) / batch
    return total


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
    torch.testing.assert_close(*(torch.autograd.grad(each, similarity)[0] for each in (loss, expected)))


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


VARIANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    **{name: (name, {}, 1) for name in OBJECTIVES},
    "triplet-all": ("triplet", {}, 0),
    "constant_k-5": ("constant_k", {"k": 5}, 1),
    "constant_k-printed": ("constant_k", {"k": 5, "denominator": "printed"}, 1),
    "adopt-printed": ("adopt", {"denominator": "printed"}, 1),
    "adopt-margin": ("adopt", {"margin": 0.2}, 1),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def make(variant: str) -> Objective:
    torch.manual_seed(0)
    name, options, epoch = VARIANTS[variant]
    objective = build(name, **options)
    objective.start_epoch(epoch)
    return objective


@every_variant
def test_gradients_are_those_of_the_function(variant: str) -> None:
    objective = make(variant)

    def function(similarity: Tensor) -> Tensor:
        torch.manual_seed(0)
        return objective(similarity)

    assert torch.autograd.gradcheck(function, cosines(6).requires_grad_())


@every_variant
def test_both_directions_count_alike(variant: str) -> None:
    similarity = cosines(7)
    torch.testing.assert_close(make(variant)(similarity), make(variant)(similarity.T))


@every_variant
def test_captions_of_one_image_are_no_negatives(variant: str) -> None:
    similarity = cosines(6)
    same = torch.eye(6, dtype=torch.bool)
    same[1, 4] = same[4, 1] = True
    raised = torch.where(same & ~torch.eye(6, dtype=torch.bool), similarity + 5, similarity).requires_grad_()
    loss = make(variant)(raised, same)
    loss.backward()
    assert raised.grad is not None
    assert not raised.grad[1, 4]
    assert not raised.grad[4, 1]
    # Without the mask, as in the papers, the same pairs are the hardest negatives of all.
    assert make(variant)(raised) > loss + 1


@every_variant
def test_a_batch_without_negatives_costs_nothing(variant: str) -> None:
    for similarity, same in [
        (torch.ones(1, 1), None),
        (torch.rand(3, 3), torch.ones(3, 3, dtype=torch.bool)),
    ]:
        similarity.requires_grad_()
        loss = make(variant)(similarity, same)
        loss.backward()
        assert loss.item() == 0
        assert similarity.grad is not None
        assert not similarity.grad.any()


@every_variant
def test_half_precision_is_computed_in_float32(variant: str) -> None:
    similarity = cosines(9, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = make(variant)(similarity)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, make(variant)(similarity.float()))


@every_variant
@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0])
def test_a_collapsed_model_has_a_finite_loss(variant: str, value: float) -> None:
    similarity = torch.full((6, 6), value, requires_grad=True)
    loss = make(variant)(similarity)
    loss.backward()
    assert loss.isfinite()
    assert similarity.grad is not None
    assert similarity.grad.isfinite().all()


@every_variant
def test_a_diverged_model_gives_a_nan_to_report(variant: str) -> None:
    assert make(variant)(torch.full((6, 6), torch.nan)).isnan()


@every_objective
@pytest.mark.parametrize(
    ("similarity", "same_image"),
    [
        (torch.zeros(3, 4), None),
        (torch.zeros(3), None),
        (torch.zeros(0, 0), None),
        (torch.zeros(3, 3, dtype=torch.int64), None),
        (torch.zeros(3, 3), torch.ones(2, 2, dtype=torch.bool)),
        (torch.zeros(3, 3), torch.ones(3, 3)),
    ],
    ids=["not square", "rank", "empty", "integers", "other shape", "no bool"],
)
def test_bad_input_is_refused(name: str, similarity: Tensor, same_image: Tensor | None) -> None:
    with pytest.raises(InputError, match=r"similarity|same_image"):
        build(name)(similarity, same_image)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("softmax", {}, "there are: adopt, constant_k, crcl, infonce, random_k, triplet"),
        ("adopt", {"tau": 0.1}, "'tau'; there are: temperature, denominator, margin, count"),
        ("adopt", {"temperature": 0.0}, "temperature"),
        ("adopt", {"denominator": "both"}, "with_positive, printed"),
        ("adopt", {"margin": -0.1}, "margin"),
        ("adopt", {"margin": 0.2, "denominator": "printed"}, "margin does nothing"),
        ("infonce", {"temperature": -1.0}, "temperature"),
        ("constant_k", {"k": 0}, "at least 1"),
        ("crcl", {"weight": -1.0}, "weight"),
        ("triplet", {"margin": -0.1}, "margin"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(name, **options)

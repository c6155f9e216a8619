"""What every objective keeps: exact gradients, both directions alike, masks, precision,
refusals.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cosines import cosines
from torch import Tensor

from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.objectives import OBJECTIVES, Objective, build

every_objective = pytest.mark.parametrize("name", OBJECTIVES)


VARIANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    **{name: (name, {}, 1) for name in OBJECTIVES},
    "triplet-all": ("triplet", {}, 0),
    "constant_k-5": ("constant_k", {"k": 5}, 1),
    "constant_k-printed": ("constant_k", {"k": 5, "denominator": "printed"}, 1),
    "adopt-printed": ("adopt", {"denominator": "printed"}, 1),
    "adopt-margin": ("adopt", {"margin": 0.2}, 1),
    "matryoshka-triplet": ("matryoshka", {"objective": "triplet"}, 0),
}


every_variant = pytest.mark.parametrize("variant", VARIANTS)


def make(variant: str) -> Objective:
    torch.manual_seed(0)
    name, options, epoch = VARIANTS[variant]
    objective = build(name, **options)
    objective.start_epoch(epoch)
    return objective


@pytest.mark.slow
@every_variant
def test_gradients_are_those_of_the_function(variant: str) -> None:
    objective = make(variant)

    def function(similarity: Tensor) -> Tensor:
        torch.manual_seed(0)
        return objective(similarity)

    assert torch.autograd.gradcheck(function, cosines(6).requires_grad_())


@pytest.mark.specification
@every_variant
def test_both_directions_count_alike(variant: str) -> None:
    similarity = cosines(7)
    torch.testing.assert_close(make(variant)(similarity), make(variant)(similarity.T))


@pytest.mark.specification
@every_variant
def test_captions_of_one_image_are_no_negatives(variant: str) -> None:
    similarity = cosines(6)
    same = torch.eye(6, dtype=torch.bool)
    same[1, 4] = same[4, 1] = True
    raised = torch.where(
        same & ~torch.eye(6, dtype=torch.bool), similarity + 5, similarity
    ).requires_grad_()
    loss = make(variant)(raised, same)
    loss.backward()
    assert raised.grad is not None
    assert not raised.grad[1, 4]
    assert not raised.grad[4, 1]
    # Without the mask, as in the papers, the same pairs are the hardest negatives of all.
    assert make(variant)(raised) > loss + 1


# The sigmoid raises positives whether or not there are negatives.
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "sigmoid"])
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


@pytest.mark.specification
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
        (
            "softmax",
            {},
            "there are: adopt, constant_k, crcl, infonce, matryoshka, random_k, sigmoid, triplet",
        ),
        ("adopt", {"tau": 0.1}, "'tau'; its options: temperature, denominator, margin, count"),
        ("adopt", {"temperature": 0.0}, "temperature"),
        ("adopt", {"denominator": "both"}, "'with_positive' or 'printed'"),
        ("adopt", {"margin": -0.1}, "margin"),
        ("adopt", {"margin": 0.2, "denominator": "printed"}, "margin does nothing"),
        ("infonce", {"temperature": -1.0}, "temperature"),
        ("constant_k", {"k": 0}, "k: .*greater"),
        ("crcl", {"weight": -1.0}, "weight"),
        ("triplet", {"margin": -0.1}, "margin"),
        ("matryoshka", {"objective": "matryoshka"}, "does not wrap itself"),
        ("matryoshka", {"objective": {"name": "adopt", "tau": 1}}, "option of .* adopt, 'tau'"),
        ("matryoshka", {"dimensions": [8, 4]}, r"must ascend, each once; got \[8, 4\]"),
        ("matryoshka", {"dimensions": [4, 8], "weights": [1.0]}, "for each .* got 1 for 2"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(name, **options)


@every_objective
def test_every_objective_logs_how_many_negatives_it_uses(name: str) -> None:
    objective = build(name)
    objective.start_epoch(0)
    objective(cosines(12))
    least = (
        11 if name in ("triplet", "infonce", "crcl") else 1
    )  # triplet: all of them in the first epoch
    assert least <= objective.log["negatives"] <= 11

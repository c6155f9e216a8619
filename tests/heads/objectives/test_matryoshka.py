"""Matryoshka against the sum over prefixes, written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.objectives import Objective, build
from pipeline.make.training import check_parts
from pipeline.make.training.request import TrainRequest

SETTINGS = settings.load(Path(__file__).parents[3] / "params.yaml")
SAME = torch.arange(8)[:, None] // 2 == torch.arange(8) // 2


def vectors(d: int = 32) -> tuple[Tensor, Tensor]:
    """Vectors of 8 images and their captions, float64 [8, d]."""
    torch.manual_seed(0)
    images = torch.randn(8, d, dtype=torch.float64)
    captions = images + torch.randn(8, d, dtype=torch.float64)
    return images.requires_grad_(), captions.requires_grad_()


def loss_of(objective: Objective, images: Tensor, captions: Tensor) -> Tensor:
    torch.manual_seed(1)  # random_k draws its K
    images = normalize(images)
    captions = normalize(captions)
    return objective.of_vectors(images, captions, images @ captions.T, SAME)


@pytest.mark.specification
@pytest.mark.parametrize("epoch", [0, 2])  # the triplet has all negatives in the first one
@pytest.mark.parametrize(
    ("name", "options"),
    [("adopt", {"margin": 0.2}), ("triplet", {}), ("sigmoid", {}), ("crcl", {})],
)
def test_it_is_the_sum_of_an_objective_over_prefixes(
    name: str, options: dict[str, Any], epoch: int
) -> None:
    lengths, weights = [3, 8, 32], [2.0, 0.5, 1.0]
    wrapped = build(name, **options)
    wrapped.start_epoch(epoch)
    images, captions = vectors()
    expected = torch.zeros((), dtype=torch.float64)
    for length, weight in zip(lengths, weights, strict=True):
        cosines = torch.empty(8, 8, dtype=torch.float64)
        for i in range(8):
            for j in range(8):
                u, v = images[i, :length], captions[j, :length]
                cosines[i, j] = u @ v / (u.norm() * v.norm())
        expected = expected + weight * wrapped(cosines, SAME)

    objective = build(
        "matryoshka", objective={"name": name, **options}, dimensions=lengths, weights=weights
    )
    objective.start_epoch(epoch)
    loss = loss_of(objective, images, captions)
    torch.testing.assert_close(loss, expected)
    both = [torch.autograd.grad(each, (images, captions)) for each in (loss, expected)]
    torch.testing.assert_close(*both)
    assert objective.log == pytest.approx(wrapped.log)


@pytest.mark.parametrize("name", ["adopt", "random_k", "triplet"])
def test_the_whole_vectors_alone_give_the_bits_of_the_wrapped_objective(name: str) -> None:
    found = []
    for objective in (build(name), build("matryoshka", objective=name, dimensions=[32])):
        images, captions = (side.detach().float().requires_grad_() for side in vectors())
        loss = loss_of(objective, images, captions)
        loss.backward()
        found.append((loss, images.grad, captions.grad))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_without_lengths_vectors_are_halved_down_to_sixteen_numbers() -> None:
    found = []
    for options in (
        {"weights": "share"},
        {"dimensions": [19, 38, 76], "weights": [0.25, 0.5, 1.0]},
    ):
        found.append(loss_of(build("matryoshka", **options), *vectors(76)))
    assert torch.equal(*found)


def test_a_collapsed_model_has_the_loss_of_all_prefixes() -> None:
    """What the watch over training compares the loss with."""
    objective = build("matryoshka", objective="triplet")
    loss_of(objective, *vectors())
    alike = torch.ones(8, 8)
    torch.testing.assert_close(objective(alike), 2 * build("triplet")(alike))


@pytest.mark.parametrize("recipe", ["late", "ce"])
def test_heads_without_vectors_are_refused(recipe: str) -> None:
    with_it = SETTINGS.recipe(recipe).model_copy(
        update={"objective": SETTINGS.recipe("vse2ad-matryoshka").objective}
    )
    with pytest.raises(InputError, match=r"late interaction and a cross-encoder .* have none"):
        check_parts(with_it, 64)


def test_a_head_depends_on_the_code_of_the_wrapped_objective() -> None:
    request = TrainRequest.of(
        "x",
        "region",
        "bigru",
        0,
        SETTINGS.recipe("vse2ad-matryoshka"),
        SETTINGS.training_of("sample"),
    )
    assert {"objectives/matryoshka", "objectives/adopt"} <= request.versions().keys()

"""The schedule of the learning rate, and the optimizer's steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from pipeline.foundation import settings
from pipeline.make.training.optimizer import build, learning_rate

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
PAPER = SETTINGS.training_of("flickr30k")


def test_the_rate_decays_once() -> None:
    rates = [learning_rate(SETTINGS.recipe("vse2ad"), PAPER, epoch, 3, 10) for epoch in range(25)]
    assert rates == pytest.approx([5e-4] * 15 + [5e-5] * 10)


@pytest.mark.specification
def test_vse_infty_warms_up_over_its_second_epoch() -> None:
    recipe = SETTINGS.recipe("vse_infty")
    assert [learning_rate(recipe, PAPER, 1, step, 4) for step in range(4)] == pytest.approx(
        [1.25e-4, 2.5e-4, 3.75e-4, 5e-4]
    )
    assert [learning_rate(recipe, PAPER, epoch, 0, 4) for epoch in (0, 2, 15)] == pytest.approx(
        [5e-4, 5e-4, 5e-5]
    )


def test_a_linear_decay_falls_with_every_step_and_would_reach_0_after_the_last() -> None:
    recipe = SETTINGS.recipe("vse2ad").model_copy(update={"decay": "linear", "learning_rate": 8e-5})
    training = PAPER.model_copy(update={"epochs": 2})
    rates = [
        learning_rate(recipe, training, epoch, step, 4) for epoch in range(2) for step in range(4)
    ]
    assert rates == pytest.approx([8e-5, 7e-5, 6e-5, 5e-5, 4e-5, 3e-5, 2e-5, 1e-5])


class Network(nn.Linear):
    """A network as `build` takes one: nothing of it is pretrained."""

    backbone = None
    pretrained: dict[str, nn.Module] = {}  # noqa: RUF012 (never written)


def train(network: nn.Linear, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    for step in range(3):
        optimizer.zero_grad()
        network(torch.arange(4.0) - step).square().sum().backward()
        optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    return network.weight.detach()


def test_only_matrices_decay_where_the_recipe_says_so() -> None:
    network = Network(4, 3)
    recipe = SETTINGS.recipe("vse_infty").model_copy(update={"decayed": "matrices"})
    groups = build(network, recipe).param_groups  # type: ignore[arg-type]
    decays = {weight: group["weight_decay"] for group in groups for weight in group["params"]}
    assert decays == {network.weight: recipe.weight_decay, network.bias: 0.0}
    assert recipe.weight_decay > 0


@pytest.mark.parametrize(
    ("recipe", "kind"), [("vse2ad", torch.optim.Adam), ("vse_infty", torch.optim.AdamW)]
)
def test_steps_are_those_of_torch(recipe: str, kind: type[torch.optim.Adam]) -> None:
    changed = {"epsilon": 0.1, "weight_decay": 0.3}  # both count in three steps
    chosen = SETTINGS.recipe(recipe).model_copy(update=changed)
    ours, theirs = Network(4, 3), Network(4, 3)
    theirs.load_state_dict(ours.state_dict())
    expected = train(
        theirs,
        kind(
            theirs.parameters(),
            lr=chosen.learning_rate,
            eps=0.1,
            weight_decay=0.3,
            fused=True,
        ),
    )
    assert torch.equal(train(ours, build(ours, chosen)), expected)  # type: ignore[arg-type]

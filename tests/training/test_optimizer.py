"""The schedule of the learning rate."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import settings
from pipeline.training.optimizer import learning_rate

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
PAPER = SETTINGS.training_of("flickr30k")


def test_the_rate_decays_once() -> None:
    rates = [learning_rate(SETTINGS.recipe("vse2ad"), PAPER, epoch, 3, 10) for epoch in range(25)]
    assert rates == pytest.approx([5e-4] * 15 + [5e-5] * 10)


def test_vse_infty_warms_up_over_its_second_epoch() -> None:
    recipe = SETTINGS.recipe("vse_infty")
    assert [learning_rate(recipe, PAPER, 1, step, 4) for step in range(4)] == pytest.approx(
        [1.25e-4, 2.5e-4, 3.75e-4, 5e-4])
    assert [learning_rate(recipe, PAPER, epoch, 0, 4) for epoch in (0, 2, 15)] == pytest.approx([5e-4, 5e-4, 5e-5])

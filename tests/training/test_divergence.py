"""Divergence: what happened and what to try, in one line; and healthy training is left alone."""

from __future__ import annotations

import math
import re

import pytest

from pipeline.make.heads import objectives
from pipeline.make.training.divergence import Diverged, Watch

BATCH = 128
HEALTHY = {"loss": 3.0, "gradient": 1.0, "similarity": 0.3, "separation": 0.2, "spread": 1.0}
COLLAPSED = {"gradient": 0.1, "similarity": 0.9, "separation": 0.001, "spread": 0.05}


def watch(name: str = "infonce", steps: int = 50, stuck: int = 0, epochs: int = 1) -> Watch:
    return Watch(objectives.build(name), BATCH, steps, epochs, stuck)


def see(by: Watch, steps: int, precision: str = "fp32", **log: float) -> None:
    for step in range(steps):
        by.see({**HEALTHY, **log}, f"head: epoch 1, step {step}", precision)


@pytest.mark.specification
@pytest.mark.parametrize(
    ("log", "precision", "said"),
    [
        (
            {"loss": math.nan},
            "fp32",
            "epoch 1, step 0: the loss is nan; try a lower learning_rate or gradient_clip",
        ),
        (
            {"loss": math.inf},
            "bf16",
            "the loss is inf; try precision fp32 instead of bf16, a lower",
        ),
        ({"gradient": math.inf}, "fp32", "the gradient is inf"),
        ({"similarity": math.nan}, "fp16", "the similarity is nan"),
    ],
)
def test_what_is_no_number(log: dict[str, float], precision: str, said: str) -> None:
    with pytest.raises(Diverged, match=re.escape(said)):
        see(watch(), 1, precision, **log)


def test_fp16_may_overflow_now_and_then_but_not_always() -> None:
    by = watch()
    for _ in range(2):
        see(by, 49, "fp16", gradient=math.inf)
        see(by, 1, "fp16")
    see(by, 49, "fp16", gradient=math.inf)
    with pytest.raises(
        Diverged, match="gradients have overflowed for 50 steps; try precision fp32"
    ):
        see(by, 1, "fp16", gradient=math.inf)


def test_similarities_that_are_all_equal() -> None:
    with pytest.raises(
        Diverged, match=r"step 49: all similarities have been equal.*see that the features"
    ):
        see(watch(), 50, spread=1e-6)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [("triplet", 2 * 0.2 * BATCH), ("infonce", 2 * math.log(BATCH)), ("adopt", 2 * math.log(21))],
)
@pytest.mark.parametrize("steps", [50, 1000])
def test_a_loss_that_stands_at_its_collapsed_value(
    objective: str, expected: float, steps: int
) -> None:
    """AdOpt on similarities that are all 0.9 uses K = ⌊128 cos(1.8 π / 4)⌋ = 20 negatives."""
    by = watch(objective, steps)
    see(by, 399, **COLLAPSED, loss=expected * 1.01)
    with pytest.raises(
        Diverged, match=rf"for 400 steps the loss has stayed at .*\({expected:.4g}\)"
    ):
        see(by, 1, **COLLAPSED, loss=expected * 1.01)


def test_in_a_long_training_it_may_stand_there_for_a_quarter_of_it() -> None:
    """The hard triplet loss of a schedule of 25 epochs with 200 steps: 1,250 steps, not 400."""
    by = watch("triplet", 200, epochs=25)
    loss = 2 * 0.2 * BATCH
    see(by, 1200, **COLLAPSED, loss=loss)
    see(by, 200)  # out of it
    see(by, 1200, **COLLAPSED, loss=loss)
    with pytest.raises(Diverged, match="for 1400 steps the loss has stayed at"):
        see(by, 200, **COLLAPSED, loss=loss)


STUCK = {**COLLAPSED, "loss": 2 * math.log(BATCH)}


@pytest.mark.parametrize("change", [{"separation": 0.1}, {"loss": 5.0}])
def test_a_loss_near_it_that_still_tells_pairs_apart_or_moves_is_none(
    change: dict[str, float],
) -> None:
    see(watch(), 1000, **{**STUCK, **change})


def test_a_good_window_between_bad_ones_starts_anew() -> None:
    by = watch()
    for _ in range(3):
        see(by, 350, **STUCK)
        see(by, 50)


def test_a_resumed_run_goes_on_counting() -> None:
    first = watch()
    see(first, 350, **STUCK)
    assert first.stuck == 7
    with pytest.raises(Diverged, match="for 400 steps"):
        see(watch(stuck=first.stuck), 50, **STUCK)


def test_a_window_ends_with_its_epoch() -> None:
    by = watch(steps=50)
    see(by, 30, spread=0.0)
    by.start_epoch()
    see(by, 49, spread=0.0)
    with pytest.raises(Diverged):
        see(by, 1, spread=0.0)

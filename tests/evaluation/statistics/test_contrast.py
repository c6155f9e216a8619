"""What is said of compared systems: their letters, and the number that would suffice."""

from __future__ import annotations

from itertools import combinations

import pytest

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.foundation.evaluation.statistics.contrast import in_letters, sufficient


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"images": 3401}, "3,500 images"),
        ({"images": 3400}, "3,400 images"),
        ({"images": 98_001}, "99,000 images"),
        ({"images": 99_001}, "100,000 images"),
        ({"seeds": 9, "images": 5}, "9 seeds"),
        ({"seeds": None, "images": 41}, "41 images"),
        ({"seeds": None, "images": None}, "no number"),
    ],
)
def test_what_would_suffice_is_rounded_up_to_two_digits(
    needs: dict[str, int | None], said: str
) -> None:
    assert sufficient(needs) == said


def test_a_is_the_letter_of_the_largest_sum_wherever_its_system_stands() -> None:
    sums = [400.0, 500.0, 490.0, 450.0]
    alike = {(1, 2), (0, 3)}
    contrasts = []
    for one, other in combinations(range(4), 2):
        corrected = 0.5 if (one, other) in alike else 0.01
        row = {"a": sums[one], "b": sums[other], "holm": corrected}
        contrasts.append({RSUM.metric: row})
    assert in_letters(contrasts) == ["b", "a", "a", "b"]

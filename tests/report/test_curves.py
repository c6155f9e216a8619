"""The page's learning curves: every feature has a colour in both themes and a marker of its own."""

from __future__ import annotations

from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jinja2 import Environment, PackageLoader

from pipeline.foundation.settings.features import FEATURES
from pipeline.run.report.page.charts import curves, ticks

PAGE = files("pipeline.run.report.page")


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_has_a_line_in_both_themes(feature: str) -> None:
    style = (PAGE / "page.css").read_text(encoding="utf-8")
    assert style.count(f"--{feature}: #") == 2
    assert f".{feature} {{ stroke: var(--{feature});" in style


def test_every_feature_has_a_marker_of_its_own() -> None:
    loader = Environment(loader=PackageLoader("pipeline.run.report", "page"))
    macro = loader.from_string(
        "{% from 'curves.html' import marker with context %}{{ marker(kind, 50, 50, 3) }}"
    )
    page = {"curves": [], "further_curves": []}
    assert len({macro.render(kind=feature, page=page).strip() for feature in FEATURES}) == len(
        FEATURES
    )


def test_an_axis_of_one_value_has_a_length() -> None:
    assert ticks(294.0, 294.0, 5) == [293, 293.5, 294, 294.5, 295]


def test_of_epochs_with_the_largest_rsum_the_first_is_marked() -> None:
    request = SimpleNamespace(name="vse2ad", text="bigru", feature="grid", seed=0)
    history = [{"RSUM": rsum} for rsum in (1.0, 3.0, 2.0, 3.0)]
    head: Any = SimpleNamespace(request=request, history=history)
    (chart,) = curves([head])
    assert [line.best for line in chart.lines] == [1]


def chart(*histories: tuple[float, ...]) -> Any:
    """The chart of heads of one recipe whose RSUM on val went so."""
    heads: list[Any] = []
    for seed, sums in enumerate(histories):
        request = SimpleNamespace(name="vse2ad", text="bigru", feature="grid", seed=seed)
        history = [{"RSUM": rsum} for rsum in sums]
        heads.append(SimpleNamespace(request=request, history=history))
    (made,) = curves(heads)
    return made


def test_points_stand_at_their_epoch_and_rsum_on_the_axes() -> None:
    """The first epoch at the left edge, the last of the longest head at the right one; each point
    as far between two labels as its numbers are.
    """
    made = chart((412.0, 431.0, 447.0), (395.0, 441.0, 452.0, 463.0, 461.0))
    for axis, labels in ((0, made.x_ticks), (1, made.y_ticks)):
        places = [place for place, _ in labels]
        numbers = [float(label) for _, label in labels]
        slope, start = np.polyfit(numbers, places, 1)
        np.testing.assert_allclose(places, start + slope * np.array(numbers), atol=0.11)
        for line in made.lines:
            drawn = [point[axis] for point in line.points]
            expected = start + slope * np.array([value[axis] for value in line.values])
            np.testing.assert_allclose(drawn, expected, atol=0.2)
    assert [label for _, label in made.x_ticks] == ["1", "2", "3", "4", "5"]
    assert [label for _, label in made.y_ticks] == ["380", "400", "420", "440", "460", "480"]
    long = made.lines[1].points
    assert (long[0][0], long[-1][0]) == (made.left, made.right)
    assert [line.label for line in made.lines] == ["grid, seed 0", "grid, seed 1"]
    for x, y in [point for line in made.lines for point in line.points]:
        assert made.left <= x <= made.right
        assert made.top <= y <= made.bottom
    assert made.y_ticks[0][0] == made.bottom
    assert made.y_ticks[-1][0] == made.top


def test_a_head_of_one_epoch_has_one_point_at_the_left() -> None:
    made = chart((300.0,))
    assert made.x_ticks == [(made.left, "1")]
    assert made.lines[0].points[0][0] == made.left


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 10, 5, [0, 2, 4, 6, 8, 10]),
        (0, 5, 5, [0, 1, 2, 3, 4, 5]),
        (0, 25, 5, [0, 5, 10, 15, 20, 25]),
        (0, 26, 5, [0, 10, 20, 30]),
        (1, 30, 8, [0, 5, 10, 15, 20, 25, 30]),
        (-3, 3, 5, [-4, -2, 0, 2, 4]),
        (0.01, 0.05, 4, [0.01, 0.02, 0.03, 0.04, 0.05]),
    ],
)
def test_the_numbers_on_an_axis_are_round(
    low: float, high: float, most: int, expected: list[float]
) -> None:
    assert ticks(low, high, most) == expected

"""The page's learning curves: every feature has a colour in both themes and a marker of its own."""

from __future__ import annotations

from importlib.resources import files
from types import SimpleNamespace
from typing import Any

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

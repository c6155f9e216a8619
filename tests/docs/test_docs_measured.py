"""What docs/measured says of seeds follows from the means and deviations printed beside it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pipeline.evaluation.statistics import holm

SEEDS = 3
PAGES = ("measured.md", "measured/adpool-adopt.md")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES).replace("−", "-")


def tables() -> list[list[list[str]]]:
    """The rows of the tables that compare recipes over seeds: recipe, recalls, RSUM, difference, p,
    Holm, by images.
    """
    found: list[list[list[str]]] = []
    for line in PAGE.splitlines():
        cells = (
            [cell.strip(" *") for cell in line.strip("|").split("|")]
            if line.startswith("|")
            else []
        )
        if any("over seeds" in cell for cell in cells):
            found.append([])
        elif len(cells) == 8 and found and "±" in cells[3]:
            found[-1].append(cells)
    return found


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?[0-9.]+", text)]


def test_both_tables_are_found() -> None:
    assert [len(rows) for rows in tables()] == [3, 7]


@pytest.mark.parametrize("rows", tables())
def test_differences_over_seeds_are_welchs(rows: list[list[str]]) -> None:
    (mean, deviation), chances = numbers(rows[0][3]), []
    for row in rows[1:]:
        other, spread = numbers(row[3])
        test = stats.ttest_ind_from_stats(
            mean, deviation, SEEDS, other, spread, SEEDS, equal_var=False
        )
        parts = np.array([deviation, spread]) ** 2 / SEEDS
        freedom = parts.sum() ** 2 / ((parts**2).sum() / (SEEDS - 1))
        half = stats.t.ppf(0.975, freedom) * np.sqrt(parts.sum())
        assert numbers(row[4]) == pytest.approx(
            [mean - other, mean - other - half, mean - other + half], abs=0.051
        )
        assert float(row[5]) == pytest.approx(test.pvalue, rel=0.25)
        chances.append(float(test.pvalue))
    assert [float(row[6]) for row in rows[1:]] == pytest.approx(holm(chances), rel=0.4)


def test_intervals_that_hold_the_seeds_fixed_say_so() -> None:
    assert PAGE.count("over images, seeds held fixed") == len(tables())

"""What docs/measured/data says of seeds follows from the means and deviations printed beside it."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
from scipy import stats

from benchmarks import numbers as files
from pipeline.foundation.evaluation.statistics import holm

SEEDS = 3
TABLES = ("released-code", "ablations")


def rows_of(name: str) -> list[list[str]]:
    """A table that compares recipes over seeds: recipe, recalls, RSUM, difference, p, Holm, by
    images.
    """
    text = (files.FILES / f"{name}.csv").read_text(encoding="utf-8")
    said, *lines = text.replace("−", "-").splitlines()
    assert said.startswith("# record: ")
    head, *rows = csv.reader(lines)
    assert [head[4][-10:], *head[5:]] == [
        "over seeds",
        "p",
        "Holm",
        "over images, seeds held fixed",
    ]
    return rows


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?[0-9.]+", text)]


@pytest.mark.specification
@pytest.mark.parametrize("name", TABLES)
def test_differences_over_seeds_are_welchs(name: str) -> None:
    rows = rows_of(name)
    assert len(rows) >= 3
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

"""VSE∞ Table 11: errors on synthetic pooling patterns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from invented import built, texts

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import published
from pipeline.judge.tables.table import Cell, TableRequest


def synthetic(shift: float = 0.0) -> list[dict[str, Any]]:
    return [
        dict(row.cells) | {"rmse_seen": float(row["rmse_seen"]) + shift}
        for row in published.load("vse_infty_table11")
    ]


def test_synthetic_patterns_are_printed_as_in_the_paper() -> None:
    (panel,) = built("vse_infty_table11", {}).panels
    rows = texts(panel)
    assert rows[3] == [
        "Cos/Sin",
        "BiGRU",
        "0",
        "0.005",
        "0.010",
        "0.006",
        "0",
        "0.002",
        "0",
        "0.010",
        "0.004",
        "0.031",
        "0.007",
        "0.046",
        "0.004",
        "0.005",
        "0.001",
    ]
    best = [row.cells[5].bold for group in panel.groups for row in group.rows]
    assert best == [None, None, None, "black"]


def test_synthetic_patterns_measured_here_are_compared() -> None:
    asked = TableRequest(delta=True)
    (panel,) = built("vse_infty_table11", {}, asked, synthetic=synthetic(shift=0.03)).panels
    assert [group.title for group in panel.groups] == ["", "Measured here"]
    assert panel.groups[1].rows[0].cells[2] == Cell(Decimal("0.030"), bold="black")
    assert [row.cells[-1].text for row in panel.groups[1].rows] == ["+0.010"] * 4


@pytest.mark.parametrize(
    "rows", [[{"input_repr": "Index"}], synthetic()[1:], [{**synthetic()[0], "rmse_seen": "x"}]]
)
def test_incomplete_synthetic_results_are_refused(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="run `pipeline lab synthetic` again"):
        built("vse_infty_table11", {}, synthetic=rows)

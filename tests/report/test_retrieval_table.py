"""A table of one's own: without published rows, and with columns where less is better."""

from __future__ import annotations

from typing import Any

import pytest
from invented import built, system

from pipeline.judge.tables import latex, markdown
from pipeline.judge.tables.table import Panel, TableRequest
from pipeline.run.report import tables
from pipeline.run.report.measured import MeasuredSystem
from pipeline.run.report.result_rows import RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable, TableColumns

COLUMNS = TableColumns(
    ("Recipe",),
    (("f30k_1k", "Flickr30K"),),
    (("i2t", "Captions"),),
    metrics=("R@1", "MeanR"),
    rsum=False,
)


def header(system: MeasuredSystem) -> RowHeader:
    return RowHeader((system.origin.recipe,), identity=system.origin.recipe)


def measured(**mean_ranks: float) -> dict[str, Any]:
    """Recipe -> mean rank; all with the same recalls."""
    found: dict[str, Any] = {}
    for recipe, mean_rank in mean_ranks.items():
        entry = system("flickr30k", "flickr30k_1k", recipe=recipe)
        for scores in entry.values():
            scores["flickr30k_1k"]["i2t"] = scores["flickr30k_1k"]["i2t"] | {"MeanR": mean_rank}
        found |= entry
    return found


OWN = RetrievalTable(name="ranks", caption="Mean ranks.", columns=COLUMNS, measured=header)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that no paper prints."""
    monkeypatch.setitem(tables.TABLES._places, "ranks", "test_retrieval_table:OWN.build")  # type: ignore[attr-defined]


def texts(panel: Panel) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for group in panel.groups for row in group.rows]


@pytest.mark.usefixtures("own")
def test_a_table_without_published_rows_has_the_measured_ones() -> None:
    (panel,) = built(
        "ranks", measured(mine=9.5, other=10.0), request=TableRequest(delta=True)
    ).panels
    assert texts(panel) == [["mine", "50.0", "9.5", ""], ["other", "50.0", "10.0", ""]]
    table = built("ranks", measured(mine=9.5))
    assert "tabular" in latex.to_latex(table)
    assert "MeanR" in markdown.to_markdown(table)
    assert built("ranks", {}).panels == ()


@pytest.mark.usefixtures("own")
def test_the_smallest_mean_rank_is_bold() -> None:
    (panel,) = built("ranks", measured(mine=9.5, other=10.0, third=9.5)).panels
    rows = [row for group in panel.groups for row in group.rows]
    assert [[cell.bold for cell in row.cells[1:]] for row in rows] == [
        ["black", "black"],
        ["black", None],
        ["black", "black"],
    ]


@pytest.mark.usefixtures("own")
def test_a_metric_that_was_not_written_is_left_open() -> None:
    entry = measured(mine=1.0)
    for scores in entry.values():
        del scores["flickr30k_1k"]["i2t"]["MeanR"]
    (panel,) = built("ranks", entry).panels
    assert texts(panel) == [["mine", "50.0", "–"]]


def test_differences_are_of_recalls_alone() -> None:
    assert COLUMNS.compared() == (("i2t", "R@1"),)
    assert TableColumns(("A",), (("f", ""),), (("i2t", "I"),)).compared() == (("", "RSUM"),)

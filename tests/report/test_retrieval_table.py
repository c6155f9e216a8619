"""A table of one's own: without published rows, and with columns where less is better."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from invented import built, system

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.judge.tables import latex, markdown
from pipeline.judge.tables.table import Cell, Column, Note, Panel, RowGroup, TableRequest, TableRow
from pipeline.run.report import tables
from pipeline.run.report.measured import MeasuredSystem
from pipeline.run.report.result_rows import DELTA, ResultRow, RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable, TableColumns, _noting_bold

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
        [None, "black"],  # 50.0 is that of all
        [None, None],
        [None, "black"],
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


def test_differences_are_of_all_columns_compared_or_there_is_none() -> None:
    recalls = TableColumns(
        ("Recipe",), (("s", ""),), (("i2t", ""),), ("R@1", "MeanR", "R@5"), rsum=False
    )
    errors = tuple(Column(name, key=("", Statistic("", name))) for name in ("e1", "e2"))
    means = TableColumns(("Recipe",), (("s", ""),), single=errors, rsum=False, by_mean=True)
    of_recalls = [Statistic("i2t", f"R@{k}") for k in (1, 5)]
    of_errors = [Statistic("", name) for name in ("e1", "e2")]
    for columns, statistics, measured_numbers, difference in (
        (recalls, of_recalls, ("50.5", "60.0"), "4.5"),
        (recalls, of_recalls, ("50.5", None), None),
        (recalls, of_recalls, (None, "60.0"), None),
        (means, of_errors, ("45.1", "55.3"), "0.200"),
        (means, of_errors, ("45.1", None), None),
    ):
        rows = []
        for numbers in (
            ("46.0", "60.0") if columns is recalls else ("45.0", "55.0"),
            measured_numbers,
        ):
            cells = {}
            for statistic, number in zip(statistics, numbers, strict=True):
                if number:
                    cells["s", statistic] = Cell(Decimal(number))
            rows.append(ResultRow(RowHeader(("mine",), identity="mine"), cells))
        published, mine = rows
        own = RetrievalTable(name="ranks", caption="", columns=columns, measured=header)
        found = own._compared(mine, {"mine": published}).numbers.get(("s", DELTA))
        assert (None if found is None else str(found.content)) == difference


def test_a_doubt_about_a_bold_cell_says_that_bold_follows_the_print() -> None:
    cells = (
        Cell(Decimal(1), bold="black", marks=("a",)),
        Cell(Decimal(2), marks=("b",)),
        Cell(Decimal(3), bold="black"),
    )
    notes = [Note("First.", mark="a"), Note("Second.", mark="b"), Note("Third.")]
    texts = [note.text for note in _noting_bold(notes, [RowGroup((TableRow(cells),))])]
    assert texts == ["First. Bold follows the cell as printed.", "Second.", "Third."]


def test_a_heading_above_the_labels_stands_on_the_level_above_theirs() -> None:
    for title, above in (("", ("Both",)), ("Flickr30K", ("", "Both"))):
        columns = TableColumns(
            ("A", "B"), (("s", title),), (("i2t", "Captions"),), labels_above="Both"
        )
        labels = columns.columns(delta=False, letters=False)[:2]
        assert [label.above for label in labels] == [above, above]

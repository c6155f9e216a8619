"""Bold: ties, the second best, columns where less is better, rows without a number."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from pipeline.foundation.evaluation.metrics import RSUM, Statistic
from pipeline.judge.tables.table import MISSING, Cell, Column
from pipeline.run.report import emphasis
from pipeline.run.report.result_rows import ResultRow, RowHeader
from pipeline.run.report.retrieval_table import TableColumns

RSUM, RANK = (
    Column("", key=("f", RSUM)),
    Column("", key=("f", Statistic("i2t", "MeanR")), less_is_better=True),
)


def rows(column: Column, *values: str, groups: str = "") -> list[ResultRow]:
    """A row for each value, "-" for none; groups: a letter for each."""
    cells = [Cell(MISSING if value == "-" else Decimal(value)) for value in values]
    return [
        ResultRow(RowHeader((str(index),), group=groups[index : index + 1]), {column.key: cell})
        for index, cell in enumerate(cells)
    ]


@pytest.mark.specification
@pytest.mark.parametrize(
    ("values", "best"),
    [
        (("500.0", "501.0", "499.9"), {1}),
        (("501.0", "500.0", "501.0"), {0, 2}),
        (("-", "10.0", "-"), {1}),
        (("-", "-"), set()),
        (("9.9", "10.0"), {1}),  # by value, not by text
    ],
)
def test_all_rows_that_tie_for_the_best_are_bold(values: tuple[str, ...], best: set[int]) -> None:
    assert emphasis.best_of_columns(rows(RSUM, *values), [RSUM]) == {
        (index, RSUM.key): "black" for index in best
    }


@pytest.mark.parametrize(
    ("values", "best"), [(("2.0", "1.5", "10.0"), {1}), (("3.0", "3.0", "4.0"), {0, 1})]
)
def test_less_is_better_where_the_column_says_so(values: tuple[str, ...], best: set[int]) -> None:
    assert emphasis.best_of_columns(rows(RANK, *values), [RANK]).keys() == {
        (index, RANK.key) for index in best
    }
    grouped = emphasis.best_of_groups(rows(RANK, *values), [RANK])
    assert grouped.keys() == {(index, RANK.key) for index in best}


def test_rows_compete_within_their_group_and_ties_have_its_colour() -> None:
    competing = rows(RSUM, "500.0", "500.0", "600.0", groups="aab")
    assert emphasis.best_of_groups(competing, [RSUM]).keys() == {
        (0, RSUM.key),
        (1, RSUM.key),
        (2, RSUM.key),
    }
    sections = [
        replace(row, header=replace(row.header, section=section))
        for row, section in zip(
            rows(RSUM, "500.0", "499.0", "600.0", groups="aaa"), "xxy", strict=True
        )
    ]
    assert emphasis.best_of_groups(sections, [RSUM]).keys() == {(0, RSUM.key), (2, RSUM.key)}
    named = [
        ResultRow(RowHeader(("x",), group=group), {RSUM.key: Cell(Decimal("500.0"))})
        for group in ("RG", "RG", "RGP", "other")
    ]
    assert list(emphasis.best_of_groups(named, [RSUM]).values()) == ["blue", "blue", "red", "black"]


@pytest.mark.parametrize(
    ("values", "colours"),
    [
        (("500.0", "501.0", "499.0"), {0: "black", 1: "red"}),
        (("501.0", "501.0", "500.0", "499.0"), {0: "red", 1: "red"}),  # the next is the third
        (("501.0", "500.0", "500.0", "-"), {0: "red", 1: "black", 2: "black"}),
        (("501.0",), {0: "red"}),
    ],
)
def test_ties_for_best_and_for_second_best_sum(
    values: tuple[str, ...], colours: dict[int, str]
) -> None:
    recall = Column("", key=("f", Statistic("i2t", "R@1")))
    marked = emphasis.two_best_sums(rows(RSUM, *values), [recall, RSUM])
    assert marked == {(index, RSUM.key): colour for index, colour in colours.items()}


def test_a_metrics_direction_is_a_property_of_its_column() -> None:
    columns = TableColumns(
        ("Method",), (("f", ""),), (("i2t", "I"),), metrics=("R@1", "MedR", "MeanR")
    )
    found = {str(column.key[1]): column.less_is_better for column in columns.numbers()}
    assert found == {"i2t R@1": False, "i2t MedR": True, "i2t MeanR": True, "RSUM": False}
    assert [column.heading for column in columns.columns(delta=False, letters=False)] == [
        "Method",
        "R@1",
        "MedR",
        "MeanR",
        "RSUM",
    ]


@pytest.mark.parametrize(
    ("groups", "is_said"), [("a", True), ("aab", True), ("aabb", False), ("", False)]
)
def test_a_caption_says_where_a_measured_row_competes_with_no_other(
    groups: str, is_said: bool
) -> None:
    measured = rows(RSUM, *["500.0"] * len(groups), groups=groups)
    printed = rows(RSUM, "500.0", groups="a")
    for above in ((), printed):
        said = emphasis.best_of_groups.said([RSUM], above, measured)
        assert ("A single measured row is never bold." in said) == is_said
        assert ("; published and measured rows are ranked separately." in said) == bool(
            above and measured
        )


def test_the_only_number_of_a_column_is_not_bold_although_other_rows_compete_there() -> None:
    both = [
        replace(row, numbers=row.numbers | {RANK.key: Cell(Decimal(rank) if rank else MISSING)})
        for row, rank in zip(rows(RSUM, "500.0", "490.0"), ("3.0", ""), strict=True)
    ]
    for rule in (emphasis.best_of_columns, emphasis.best_of_groups):
        assert rule(both, [RSUM, RANK], lone=False).keys() == {(0, RSUM.key)}
        assert rule(both, [RSUM, RANK]).keys() == {(0, RSUM.key), (0, RANK.key)}, (
            "published numbers are as printed"
        )
        assert "A single measured row is never bold." in rule.said([RSUM, RANK], (), both)
        assert "no other" not in rule.said([RSUM], (), both)


def test_a_row_that_competes_only_with_rows_that_never_do_is_not_bold_and_the_caption_says_so() -> (
    None
):
    first, *others = rows(RSUM, "500.0", "510.0", "490.0", groups="aaa")
    never = [replace(row, header=replace(row.header, competes=False)) for row in others]
    assert emphasis.best_of_groups([first, *never], [RSUM], lone=False) == {}
    assert emphasis.best_of_groups([first, *never], [RSUM]).keys() == {(0, RSUM.key)}
    alone = "A single measured row is never bold."
    assert alone in emphasis.best_of_groups.said([RSUM], (), [first, *never])
    assert alone not in emphasis.best_of_groups.said([RSUM], (), [first, others[0], never[1]])


def test_least_is_said_where_less_is_better_in_every_column() -> None:
    for columns, which in (([RSUM], "best"), ([RANK], "least"), ([RSUM, RANK], "best")):
        assert emphasis.best_of_columns.said(columns, [], []) == f"Bold: the {which} of a column."

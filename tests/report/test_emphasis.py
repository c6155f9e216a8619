"""Which rows compete for bold: ties, less is better, groups, rows without a number."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from pipeline.foundation.evaluation import metrics
from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.judge.tables.bold import Emphasis
from pipeline.judge.tables.table import MISSING, Cell, Column
from pipeline.run.report import emphasis
from pipeline.run.report.result_rows import ResultRow, RowHeader
from pipeline.run.report.retrieval_table import TableColumns

RSUM = Column("", key=("f", metrics.RSUM))
RANK = Column("", key=("f", Statistic("i2t", "MeanR")), less_is_better=True)


def rows(column: Column, *values: str, groups: str = "") -> list[ResultRow]:
    """A row for each value, "-" for none; groups: a letter for each."""
    cells = [Cell(MISSING if value == "-" else Decimal(value)) for value in values]
    return [
        ResultRow(RowHeader((str(index),), group=groups[index : index + 1]), {column.key: cell})
        for index, cell in enumerate(cells)
    ]


def bold(rule: emphasis.Rule, of: list[ResultRow], column: Column) -> set[int]:
    """The bold rows of one column."""
    return {index for index, _ in rule(of, [column], Emphasis())}


@pytest.mark.specification
def test_the_best_of_untested_numbers_is_bold_unless_that_is_all_or_one_row() -> None:
    for column, values, best in (
        (RSUM, ("500.0", "501.0", "499.9"), {1}),
        (RSUM, ("501.0", "500.0", "501.0"), {0, 2}),
        (RSUM, ("501.0", "501.0"), set()),
        (RSUM, ("-", "10.0", "-"), set()),
        (RSUM, ("-", "-"), set()),
        (RSUM, ("9.9", "10.0"), {1}),  # by value, not by text
        (RANK, ("2.0", "1.5", "10.0"), {1}),
        (RANK, ("3.0", "3.0", "4.0"), {0, 1}),
        (RANK, ("3.0",), set()),
    ):
        for rule in (emphasis.best_of_columns, emphasis.best_of_groups):
            assert bold(rule, rows(column, *values), column) == best, values


def test_rows_compete_within_their_section_and_group_and_the_best_have_its_colour() -> None:
    for groups, colours in (
        ("aabb", {0: "black", 2: "black"}),
        ("abbb", {2: "black"}),
        ("abcd", {}),
    ):
        competing = rows(RSUM, "500.0", "499.0", "600.0", "599.0", groups=groups)
        marked = emphasis.best_of_groups(competing, [RSUM], Emphasis())
        assert marked == {(index, RSUM.key): colour for index, colour in colours.items()}, groups
        sections = []
        for row, section in zip(competing, groups, strict=True):
            header = replace(row.header, section=section, group="")
            sections.append(replace(row, header=header))
        assert bold(emphasis.best_of_groups, sections, RSUM) == colours.keys(), groups
    named = []
    for group, number in (("RG", "1.0"), ("RG", "2.0"), ("RGP", "1.0"), ("RGP", "0.0")):
        named.append(ResultRow(RowHeader(("x",), group=group), {RSUM.key: Cell(Decimal(number))}))
    marked = emphasis.best_of_groups(named, [RSUM], Emphasis())
    assert marked == {(1, RSUM.key): "blue", (2, RSUM.key): "red"}


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


def test_a_row_that_never_competes_is_neither_bold_nor_a_competitor() -> None:
    first, *others = rows(RSUM, "500.0", "510.0", "490.0", groups="aaa")
    never = [replace(row, header=replace(row.header, competes=False)) for row in others]
    for rule in (emphasis.best_of_columns, emphasis.best_of_groups):
        assert bold(rule, [first, *never], RSUM) == set()
        assert bold(rule, [first, others[0], never[1]], RSUM) == {1}


def test_the_caption_says_the_rule_where_numbers_compete_and_what_was_not_tested() -> None:
    one, two = rows(RSUM, "1.0"), rows(RSUM, "1.0", "2.0")
    none = "No bold where that is all of them, and where there is one row."
    for columns, printed, measured, said in (
        ([RSUM], one, one, ""),
        (
            [RSUM],
            two,
            [],
            f"Bold, among published rows: the best of a column, as printed, untested. {none}",
        ),
        (
            [RSUM],
            two,
            one,
            f"Bold, among published rows: the best of a column, as printed, untested. {none}",
        ),
        ([RSUM], one, two, f"Bold: the best of a column, untested. {none}"),
        (
            [RSUM],
            two,
            two,
            f"Bold: the best of a column, untested. {none} Published rows are compared among "
            "themselves alone: bold is the best as printed, untested.",
        ),
        ([RANK], [], rows(RANK, "1.0", "2.0"), f"Bold: the least of a column, untested. {none}"),
    ):
        above, below = Emphasis(), Emphasis()
        emphasis.best_of_columns(printed, columns, above)
        emphasis.best_of_columns(measured, columns, below)
        assert emphasis.best_of_columns.said(columns, above, below) == said

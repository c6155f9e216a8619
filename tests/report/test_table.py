"""A table that would mislead cannot be made."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.judge.tables.comma_separated import to_csv
from pipeline.judge.tables.table import Cell, Column, Note, Panel, RowGroup, Table, TableRow, grid
from pipeline.judge.tables.text import to_text

TWO = (Column("a"), Column("b"))


def panel(cells: tuple[Cell, ...], notes: tuple[Note, ...] = ()) -> Panel:
    return Panel(TWO, (RowGroup((TableRow(cells),)),), notes=notes)


def test_rows_have_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="expected 2 cells, received 1"):
        panel((Cell(Decimal("1")),))


def test_marks_are_explained() -> None:
    with pytest.raises(ValueError, match="no note explains"):
        panel((Cell(Decimal("1"), marks=("a",)), Cell(Decimal("2"))), notes=(Note("other", "b"),))


def test_notes_do_not_share_a_mark() -> None:
    with pytest.raises(ValueError, match="share a mark"):
        panel((Cell(), Cell()), notes=(Note("one", "a"), Note("two", "a")))


def test_headings_span_columns_of_one_parent_only() -> None:
    columns = (
        Column("name"),
        Column("R@1", ("COCO", "Image")),
        Column("R@5", ("COCO", "Image")),
        Column("R@1", ("Flickr", "Image")),
        Column("RSUM", ("Flickr",)),
    )
    assert list(Panel(columns, ()).heading_rows()) == [
        [("", 1), ("COCO", 2), ("Flickr", 2)],
        [("", 1), ("Image", 2), ("Image", 1), ("", 1)],
    ]


def test_decimal_points_stand_below_each_other_and_texts_at_the_left() -> None:
    columns = (Column("name"), Column("score"), Column("n"))
    group = RowGroup(
        (
            TableRow((Cell("a"), Cell(Decimal("1.5")), Cell(Decimal(7)))),
            TableRow((Cell("bb"), Cell(Decimal("112.25")), Cell(Decimal(12)))),
            TableRow((Cell("ccc"), Cell("–"), Cell("one"))),
        )
    )
    assert to_text(Panel(columns, (group,))) == [
        "  name  score   n",
        "  a       1.5    7",
        "  bb    112.25  12",
        "  ccc   –       one",
    ]


def test_rows_below_a_rule_within_a_section_have_its_name_in_csv() -> None:
    def group(value: str, title: str = "") -> RowGroup:
        return RowGroup((TableRow((Cell(value), Cell(Decimal(1)))),), title)

    first = Panel(TWO, (group("p"), group("q", "One"), group("r"), group("s", "Two")))
    second = Panel(TWO, (group("t"),), key="other")
    assert to_csv(Table("t", (first, second))).splitlines() == [
        "test set,rows,a,b",
        ",,p,1",
        ",One,q,1",
        ",One,r,1",
        ",Two,s,1",
        "other,,t,1",
    ]


def test_a_remark_on_a_test_set_is_shown_with_its_columns_alone() -> None:
    key = ("f30k", Statistic("i2t", "R@1"))
    columns = (Column("a", key=key), Column("b"))
    notes = (Note("of f30k", test_set="f30k"), Note("of coco", test_set="coco"), Note("of all"))
    made = Panel(columns, (RowGroup((TableRow((Cell("1"), Cell("2"))),)),), notes=notes)
    assert [note.text for note in made.lettered().notes] == ["of f30k", "of all"]


def test_names_wider_than_the_terminal_have_lines_of_their_own_within_it() -> None:
    name = "the mean of 2 folds, image i in fold i mod 2; rounded to a digit less than printed"
    panel = grid(("", "R@1", "R@5"), {"": [[name, Cell("58.1"), Cell("81.5")]]})
    lines = to_text(panel, width=60)
    assert [line for line in lines if len(line) > 60] == []
    heading, *name_lines, numbers = lines
    assert (heading.split(), numbers.split()) == (["R@1", "R@5"], ["58.1", "81.5"])
    assert " ".join(line.strip() for line in name_lines) == name

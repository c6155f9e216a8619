"""Tables fit the paper that they are made for, in type that can be read."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from invented import built, of_everything, system

from pipeline.foundation.evaluation.statistics.letters import LETTERS
from pipeline.judge.tables.fitting import ACL, READABLE, Paper, Part, fit
from pipeline.judge.tables.latex import to_latex
from pipeline.judge.tables.table import (
    Cell,
    Column,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRequest,
    TableRow,
)
from pipeline.run.report import tables

CVPR = Paper(8.26, 17.46, 22.54)
ARTICLE = Paper(12.1, 12.1, 19.3)
"""The class article as it comes, with one column."""


def parts(table: Table, paper: Paper = ACL) -> list[Part]:
    return [part for panel in table.panels for part in fit(panel, paper)]


def seeds() -> dict[str, object]:
    """Three seeds of the papers' system, on all their test sets."""
    found: dict[str, object] = {}
    for seed in range(3):
        found |= system("coco", "coco_1k_5fold", seed=seed, r1=50.0 + seed)
        found |= system("flickr30k", "flickr30k_1k", seed=seed, r1=50.0 + 2 * seed)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", tables.TABLES)
@pytest.mark.parametrize("paper", [ACL, CVPR])
def test_every_paper_table_fits_in_type_of_eight_points_or_more(name: str, paper: Paper) -> None:
    least = {7.0} if name == "systems" else set()  # whose labels are as long as names of systems
    for part in parts(of_everything(name, delta=True), paper):
        assert part.size in {*READABLE} | least


@pytest.mark.parametrize(
    ("name", "wide"),
    [
        ("vse2ad_table1", True),
        ("vse2ad_table3", False),
        ("vse2ad_tableC2", False),
        ("vse_infty_table2", True),
        ("vse_infty_table4a", False),
    ],
)
def test_the_papers_own_tables_have_the_papers_own_floats(name: str, wide: bool) -> None:
    (part,) = parts(built(name, {}))
    assert part.wide == wide


def test_a_table_with_deviations_is_split_by_test_set() -> None:
    (whole,) = parts(built("vse2ad_table1", {}))
    assert whole.wide
    first, second = parts(built("vse2ad_table1", seeds(), TableRequest(delta=True)))
    for part, heading in ((first, "MS-COCO 5-fold 1K Test"), (second, "Flickr30K 1K Test")):
        assert {above for column in part.panel.columns for above in column.above[:1]} == {heading}
        assert part.panel.caption.endswith(f": {heading}.")
        assert [column.heading for column in part.panel.columns[:2]] == ["VF", "Method"]
        assert part.panel.columns[-1].heading == "Δ"
    assert {note.mark for note in first.panel.notes} == {"a", ""}
    assert {note.mark for note in second.panel.notes} == {"a", "b", ""}


@pytest.mark.slow
@pytest.mark.parametrize("name", tables.TABLES)
@pytest.mark.parametrize("measured", [False, True])
def test_notes_are_lettered_in_the_order_of_the_cells_that_refer_to_them(
    name: str, measured: bool
) -> None:
    table = of_everything(name) if measured else built(name, {})
    for panel in (*table.panels, *(part.panel for part in parts(table))):
        cells = [cell for group in panel.groups for row in group.rows for cell in row.cells]
        letters = list(
            dict.fromkeys(mark for cell in cells for mark in cell.marks if mark.isalpha())
        )
        assert letters == list("abcdefghijklm"[: len(letters)])
        assert [note.mark for note in panel.notes if note.mark.isalpha()] == letters
        assert all(note.mark.isalpha() for note in panel.notes[: len(letters)])


def test_more_notes_than_letters_have_two_letters_each() -> None:
    marks = LETTERS[::-1][:30]
    row = TableRow(tuple(Cell(Decimal("1"), marks=(mark,)) for mark in marks))
    panel = Panel(
        tuple(Column(mark) for mark in marks),
        (RowGroup((row,)),),
        "Caption.",
        tuple(Note(mark, mark=mark) for mark in marks),
    )
    notes = panel.lettered().notes
    assert [note.mark for note in notes[24:29]] == ["y", "z", "aa", "ab", "ac"]
    assert [note.text for note in notes] == [*marks]


@pytest.mark.parametrize(
    "name", ["rerank_table6", "rerank_table8", "rerank_table9", "rerank_table10"]
)
@pytest.mark.parametrize("paper", [ACL, CVPR, ARTICLE])
def test_test_sets_that_do_not_fit_beside_each_other_stand_in_one_float(
    name: str, paper: Paper
) -> None:
    table = built(name, {})
    (part,) = parts(table, paper)
    (whole,) = table.panels
    stacked = part.panel.columns != whole.columns
    assert part.panel.caption == whole.caption + " Sections do not compete." * stacked
    assert [note.text for note in part.panel.notes] == [note.text for note in whole.notes]
    titles = [group.title for group in part.panel.groups]
    for test_set in {column.above[0] for column in whole.columns if column.above}:
        assert not stacked or any(test_set in title for title in titles)
    here, there = (
        Counter(
            cell
            for group in panel.groups
            for row in group.rows
            for cell in row.cells
            if cell.number is not None
        )
        for panel in (part.panel, whole)
    )
    assert here == there
    assert all(
        any(cell.number is not None for cell in row.cells)
        for group in part.panel.groups
        for row in group.rows
    )


def two_sets(*groups: tuple[int, str]) -> Panel:
    """Two test sets that do not fit beside each other; groups: (rows, title) pairs."""
    row = TableRow((Cell("a"), *[Cell(Decimal("1.0"))] * 8), ("a system",))
    columns = [
        Column(f"a long heading {number}", (name,), key=(name, "R@1"))
        for name in "AB"
        for number in range(4)
    ]
    return Panel(
        (Column("Name", kind="text"), *columns),
        tuple(RowGroup((row,) * rows, title) for rows, title in groups),
        "Caption.",
        (Note("of A", test_set="A"), Note("of both")),
    )


def test_a_section_of_a_test_set_is_named_with_it() -> None:
    (part,) = fit(two_sets((1, ""), (1, ""), (1, "Measured here")), ACL)
    assert {row.sources for group in part.panel.groups for row in group.rows} == {("a system",)}
    assert [group.title for group in part.panel.groups] == [
        "A",
        "",
        "A: Measured here",
        "B",
        "",
        "B: Measured here",
    ]
    assert [note.text for note in part.panel.notes] == ["of A", "of both"]


def test_test_sets_that_fill_more_than_a_page_have_floats_of_their_own() -> None:
    first, second = fit(two_sets((40, "")), ACL)
    assert {
        row.sources for part in (first, second) for group in part.panel.groups for row in group.rows
    } == {("a system",)}
    assert (first.panel.caption, second.panel.caption) == (
        "Caption. Part 1 of 2: A.",
        "Caption. Part 2 of 2: B.",
    )
    assert [note.text for note in first.panel.notes] == ["of A", "of both"]
    assert [note.text for note in second.panel.notes] == ["of both"]


def test_a_test_set_that_is_too_wide_is_split_by_direction() -> None:
    columns = (
        Column("Name", kind="text"),
        *(
            Column(f"a heading {number}", ("Set", side))
            for side in ("one", "other")
            for number in range(6)
        ),
        Column("RSUM", ("Set",)),
    )
    first, second = fit(Panel(columns, (), "Caption."), ACL)
    assert [column.heading for column in second.panel.columns[-2:]] == ["a heading 5", "RSUM"]
    assert (first.panel.caption, second.panel.caption) == (
        "Caption. Part 1 of 2: one.",
        "Caption. Part 2 of 2: other.",
    )
    assert (first.panel.key, second.panel.key) == ("1", "2")


def test_text_that_is_too_wide_is_broken_into_lines() -> None:
    long = TableRow((Cell("word " * 40), Cell(Decimal("1.0")), Cell("short")))
    panel = Panel(
        (Column("a", kind="text"), Column("b", kind="text"), Column("R@1")),
        (RowGroup((TableRow((long.cells[0], long.cells[2], long.cells[1])),)),),
        notes=(Note("note"),),
    )
    (part,) = fit(panel, ACL)
    source = to_latex(Table("t", (panel,)))
    assert part.is_broken
    assert r"{@{}>{\raggedright\arraybackslash}p{20em}lS[table-format=1.1]@{}}" in source


def test_a_table_taller_than_the_page_goes_on_in_another_one() -> None:
    columns = (Column("Name", kind="text"), Column("R@1"))
    rows = tuple(TableRow((Cell(f"row {number}"), Cell(Decimal("1.0")))) for number in range(20))
    first, second = fit(
        Panel(columns, (RowGroup(rows, "A section"), *[RowGroup(rows)] * 3), "Caption."), ACL
    )
    assert [group.title for group in second.panel.groups][:1] == ["A section"]
    assert sum(len(group.rows) for part in (first, second) for group in part.panel.groups) == 80
    assert (first.panel.caption, second.panel.caption) == (
        "Caption. Page 1 of 2.",
        "Caption. Page 2 of 2.",
    )
    assert (first.panel.key, second.panel.key) == ("", "page2")


def test_a_note_stands_on_the_page_of_its_mark() -> None:
    rows = tuple(
        TableRow((Cell(f"row {number}"), Cell(Decimal("1.0"), marks=("a",) * (number == 0))))
        for number in range(20)
    )
    plain = RowGroup(rows[1:])
    panel = Panel(
        (Column("Name", kind="text"), Column("R@1")),
        (RowGroup(rows), *[plain] * 3),
        notes=(Note("of a row", "a"), Note("of all")),
    )
    first, second = fit(panel, ACL)
    assert [note.text for note in first.panel.notes] == ["of a row", "of all"]
    assert [note.text for note in second.panel.notes] == ["of all"]


def test_seven_points_are_taken_where_eight_fit_neither_float() -> None:
    columns = (
        Column("Name", kind="text"),
        *(Column(f"a heading {number}") for number in range(11)),
    )
    (part,) = fit(Panel(columns, (), "Caption."), ACL)
    assert (part.size, part.wide) == (7, True)

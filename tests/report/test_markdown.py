"""Markdown: tables stay tables, text stays text."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from invented import built, of_everything

from pipeline.judge.tables.fitting import ACL, Paper, stacked
from pipeline.judge.tables.latex import to_latex
from pipeline.judge.tables.markdown import escape, to_markdown
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

NOTES = (Note("In doubt.", "a"), Note("Stand-in.", "†"), Note("A remark."))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("<script>", "&lt;script&gt;"),
        ("a & b", "a &amp; b"),
        ("*b* _i_ `c` [l](u)", r"\*b\* \_i\_ \`c\` \[l\](u)"),
        ("back\\slash", "back\\\\slash"),
        ("two\nlines", "two lines"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.slow
@pytest.mark.parametrize("name", tables.TABLES)
def test_every_row_has_every_column(name: str) -> None:
    table = of_everything(name, delta=True)
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    counts = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines]
    panels = [stacked(panel, ACL) for panel in table.panels]
    rows = [
        2 + sum(len(group.rows) + bool(group.title) for group in panel.groups) for panel in panels
    ]
    assert counts == [len(p.columns) for p, n in zip(panels, rows, strict=True) for _ in range(n)]


def test_test_sets_that_stand_below_each_other_in_latex_do_so_here() -> None:
    table = built("rerank_table6", {})
    reported = to_markdown(table)
    assert [line for line in reported.splitlines() if line.startswith("| *")] == [
        f"| *{name}* |" + "  |" * 7 for name in ("MS-COCO 5K", "Flickr30K 1K", "CC 14K")
    ]
    assert "–" not in reported
    assert "MS-COCO 5K<br>TEXT → IMG<br>R@1" in to_markdown(
        table, Paper(17.0, 170.0, 170.0)
    )  # where there is room


def test_cells() -> None:
    row = TableRow((Cell("VSE+2AD"), Cell(Decimal("79.7"), Decimal("0.3"), "red", ("a", "†"))))
    columns = (Column("Method", kind="text"), Column("R@1", ("COCO", "Image")))
    panel = Panel(
        columns, (RowGroup((row,), "Section"),), "Caption", NOTES, made_from=("Test set: a_b.",)
    )
    assert to_markdown(Table("t", (panel,))).splitlines() == [
        "Caption",
        "",
        "| Method | COCO<br>Image<br>R@1 |",
        "| :-- | --: |",
        "| *Section* |  |",
        "| VSE+2AD | **79.7** ± 0.3<sup>a†</sup> |",
        "",
        "- <sup>a</sup> In doubt.",
        "- <sup>†</sup> Stand-in.",
        "- A remark.",
        "- Test set: a\\_b.",
    ]


def test_a_panel_without_notes_ends_with_its_table() -> None:
    panel = Panel((Column("Method"),), (RowGroup((TableRow((Cell("a"),)),)),), "Caption")
    assert (
        to_markdown(Table("t", (panel, panel))).splitlines()
        == [*(["Caption", "", "| Method |", "| --: |", "| a |", ""] * 2)][:-1]
    )


def test_only_captions_that_are_set_in_colours_name_them() -> None:
    table = built("vse2ad_table1", {})
    assert "Colours: black for R, blue for RG." in to_latex(table)
    assert "where there is one row.\n" in to_markdown(table)
    assert "olour" not in to_markdown(table)


def test_a_caption_names_no_colours_where_nothing_is_bold() -> None:
    assert "olour" not in to_latex(built("vse_infty_table2", {}, TableRequest(metrics=("R@1",))))

"""What a reader of a table sees: signs, raised names, marks in their place, bold among several, no
rows of dashes.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from invented import built, headlines, system

from pipeline.foundation.parts.wrapping import wrapped
from pipeline.judge.tables import latex, markdown
from pipeline.judge.tables.fitting import ACL, fit
from pipeline.judge.tables.table import MISSING, Panel, Table, TableRequest
from pipeline.run.report import tables

SMALL = {"region": "pyramid36-small"}
MEASURED = TableRequest(rows="measured")


def rows(panel: Panel) -> list[Any]:
    return [row for group in panel.groups for row in group.rows]


def bold(panel: Panel) -> list[str]:
    return [cell.text for row in rows(panel) for cell in row.cells if cell.bold]


def test_lambda_and_tick_are_set_as_such_and_their_package_is_named() -> None:
    assert r"$\lambda$" in latex.to_latex(built("rerank_table11", {}))
    ticked, plain = (
        latex.to_latex(built(name, {})) for name in ("vse_infty_table12", "vse_infty_table10")
    )
    assert r"$\checkmark$" in ticked
    assert "amssymb" in ticked.splitlines()[0]
    assert "amssymb" not in plain
    assert "amssymb" in latex.preview([ticked])


def test_names_of_losses_have_their_raised_part() -> None:
    table = built("rerank_table9", {})
    source, text = latex.to_latex(table), markdown.to_markdown(table)
    assert r"\textasciicircum" not in source
    assert r"\selectfont BHE}" in source
    assert "T<sup>BHE</sup>" in text
    assert "^" not in text


def test_the_page_s_table_is_copied_with_the_marks_of_stand_ins_and_their_note() -> None:
    (headline,) = headlines(system("sample", "all", features=SMALL))
    assert headline.copies["LaTeX"].count(r"$\dagger$") == 2
    assert (
        "stand-ins made these features: region (pyramid36-small, imported)"
        in headline.copies["LaTeX"]
    )


def test_doubts_of_one_text_are_one_note() -> None:
    for name in tables.TABLES:
        for panel in built(name, {}).panels:
            assert len({note.text for note in panel.notes}) == len(panel.notes)
    assert len([note for note in built("rerank_table11", {}).panels[0].notes if note.mark]) == 1


@pytest.mark.parametrize(
    ("name", "recipe", "marked"),
    [
        ("vse_infty_table7", "vse_infty", "Features"),
        ("vse_infty_table12", "vse_infty-perdim", "Features"),
        ("vse_infty_table2", "vse_infty", "Feature Type"),
        ("vse2ad_table1", "vse2ad", "Method"),
    ],
)
def test_stand_ins_are_marked_where_the_features_or_the_method_stand(
    name: str, recipe: str, marked: str
) -> None:
    (panel,) = built(name, system("sample", "all", recipe=recipe, features=SMALL), MEASURED).panels
    (row,) = rows(panel)
    assert [
        column.heading for column, cell in zip(panel.columns, row.cells, strict=True) if cell.marks
    ] == [marked]


@pytest.mark.parametrize("name", ["vse2ad_table1", "vse2ad_table3", "vse_infty_table7"])
def test_a_measured_row_that_competes_with_none_is_not_bold(name: str) -> None:
    recipe = "vse_infty" if "infty" in name else "vse2ad"
    (panel,) = built(name, system("sample", "all", recipe=recipe, features=SMALL), MEASURED).panels
    assert bold(panel) == []
    assert "Bold" not in panel.caption


def test_the_caption_names_the_colours_that_are_there() -> None:
    both = system("sample", "all", features=SMALL) | system(
        "sample", "all", recipe="vse_infty", features=SMALL, r1=60.0
    )
    wide = system("sample", "all", ensemble="RG", features={**SMALL, "grid": "grid8-small"})
    (panel,) = built("vse2ad_table1", both | wide, MEASURED).panels
    assert panel.caption.endswith(
        "Bold: the best for the same features and text encoder, untested. No bold where that is "
        "all of them, and where there is one row."
    )


def test_of_several_measured_rows_the_best_is_bold() -> None:
    both = system("sample", "all", features=SMALL) | system(
        "sample", "all", recipe="vse2ad-noadopt", features=SMALL, r1=60.0
    )
    (panel,) = built("vse2ad_table3", both, MEASURED).panels
    assert bold(panel)[-1] == "390.0"
    assert "Bold: the best of a column, untested." in panel.caption


def test_other_data_has_its_rows_in_one_of_the_tables_by_networks() -> None:
    measured = system("sample", "all", recipe="vse_infty", features=SMALL)
    shown = {
        name: len(built(name, measured, MEASURED).panels)
        for name in ("vse_infty_table2", "vse_infty_table9", "vse_infty_table10")
    }
    assert shown == {"vse_infty_table2": 1, "vse_infty_table9": 0, "vse_infty_table10": 0}


@pytest.mark.parametrize("name", ["rerank_table6", "rerank_table9", "rerank_table10"])
def test_no_part_of_a_table_has_a_row_of_dashes(name: str) -> None:
    def numbers(table: Table) -> list[list[str]]:
        parts = [part.panel for panel in table.panels for part in fit(panel, ACL)]
        return [
            [
                cell.text
                for cell, column in zip(row.cells, part.columns, strict=True)
                if column.kind == "number"
            ]
            for part in parts
            for row in rows(part)
        ]

    found = numbers(built(name, {}))
    assert all(set(texts) != {MISSING} for texts in found)
    (whole,) = built(name, {}).panels
    shown = sum(text != MISSING for texts in found for text in texts)
    assert shown == sum(
        cell.text != MISSING
        for row in rows(whole)
        for cell, column in zip(row.cells, whole.columns, strict=True)
        if column.kind == "number"
    )


@pytest.mark.parametrize("name", ["rerank_table1", "rerank_table8"])
def test_the_best_of_each_group_is_bold_as_geigle_et_al_have_it(name: str) -> None:
    (panel,) = built(name, {}).panels
    with_bold = [
        any(cell.bold for row in group.rows for cell in row.cells) for group in panel.groups
    ]
    assert all(with_bold)
    assert (
        "Bold, among published rows: the best of a group of rows, as printed, untested."
        in panel.caption
    )


def test_no_line_of_a_terminal_begins_with_a_percent_sign() -> None:
    broken = [
        wrapped("In brackets: 95 % intervals, above 5 % of all", width=width)
        for width in range(8, 40)
    ]
    assert len({*broken}) > 4
    assert not re.findall(r"^\s*%", "\n".join(broken), re.MULTILINE)

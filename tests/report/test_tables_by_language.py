"""Tables 2 and 7 of Geigle et al.: mR by language, of systems trained on all languages or on
English.
"""

from __future__ import annotations

from decimal import Decimal
from statistics import fmean
from typing import Any

import pytest
from invented import built, headlines, system

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import latex, markdown, published
from pipeline.judge.tables.table import Panel, TableRequest

ENGLISH = {"languages": ["en"]}


def measured(
    dataset: str = "multi30k",
    protocol: str = "multi30k_2016",
    *,
    mr: dict[str, float] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """An evaluated system whose captions are in several languages."""
    entry = system(dataset, protocol, captions=12000, **changes)
    (made,) = entry.values()
    made[protocol]["languages"] = {
        name: {"mR": value, "RSUM": 6 * value}
        for name, value in (mr or {"cs": 40.04, "de": 50.0, "en": 60.0, "fr": 70.0}).items()
    }
    return entry


def rows(panel: Panel) -> dict[str, list[str]]:
    return {
        row.cells[0].text: [cell.text for cell in row.cells[1:]]
        for group in panel.groups
        for row in group.rows
    }


def bold(panel: Panel, column: int) -> list[str]:
    return [
        row.cells[column].text
        for group in panel.groups
        for row in group.rows
        if row.cells[column].bold
    ]


def test_published_rows_are_as_printed_with_marks_and_groups() -> None:
    (two,) = built("rerank_table2", {}).panels
    assert [group.title[:2] for group in two.groups] == ["G1", "G2", "G3"]
    assert rows(two)["S-LIWE"] == ["76.3", "72.1", "63.4", "59.4", "67.8"]
    marks = [row.cells[0].marks for row in two.groups[1].rows]
    assert marks == [("a",), ("b",)]
    assert bold(two, 1) == ["86.7"]
    (seven,) = built("rerank_table7", {}).panels
    assert rows(seven)["SEP+CO (M3P)"] == ["84.4", "55.6", "52.2", "39.8", "49.2"]
    assert [column.heading for column in seven.columns] == [
        "Method",
        "en",
        "de",
        "fr",
        "cs",
        "Mean without en",
    ]


@pytest.mark.parametrize(
    ("name", "mean", "over"),
    [
        ("rerank_table2", "mean", ("en", "de", "fr", "cs")),
        ("rerank_table7", "avg_non_english", ("de", "fr", "cs")),
    ],
)
def test_published_means_are_those_of_their_languages(
    name: str, mean: str, over: tuple[str, ...]
) -> None:
    for row in published.load(name):
        found = fmean(float(row[f"{language} mR"]) for language in over)
        assert abs(Decimal(str(found)) - Decimal(row[mean])) <= Decimal("0.051")


def test_measured_rows_stand_in_the_table_of_what_they_were_trained_on() -> None:
    every = measured() | measured(
        recipe="vse_infty-en", settings=ENGLISH, mr={"cs": 1.0, "de": 2.0, "en": 60.0, "fr": 3.0}
    )
    every |= measured(recipe="vse_infty-de", settings={"languages": ["de"]})
    (two,) = built("rerank_table2", every).panels
    assert two.groups[-1].title == "Measured here"
    assert {name: row for name, row in rows(two).items() if "BiGRU" in name} == {
        "VSE+2AD (Region, BiGRU)": ["60.0", "50.0", "70.0", "40.0", "55.0"]
    }
    (seven,) = built("rerank_table7", every).panels
    assert {name: row for name, row in rows(seven).items() if "BiGRU" in name} == {
        "VSE∞, trained on English (Region, BiGRU)": ["60.0", "2.0", "3.0", "1.0", "2.0"]
    }
    assert seven.groups[-1].rows[0].sources == ("vse_infty-en-R-bigru-s0 multi30k",)


def test_other_data_has_a_panel_of_its_own_with_its_languages_and_spread_over_seeds() -> None:
    every = measured("mine", "all", mr={"de": 40.0, "eu": 20.0}) | measured(
        "mine", "all", seed=1, mr={"de": 42.0, "eu": 21.0}
    )
    main, other = built("rerank_table2", every).panels
    assert not any("BiGRU" in name for name in rows(main))
    assert "on mine (test split, 1,000 images, 12,000 captions) by language" in other.caption
    assert [column.heading for column in other.columns] == ["Method", "de", "eu", "Mean"]
    (row,) = other.groups[0].rows
    assert [str(cell) for cell in row.cells[1:]] == ["41.0 ± 1.4", "20.5 ± 0.7", "30.8 ± 1.1"]
    assert any("over 2 seeds" in note.text for note in other.notes)


def test_a_language_that_was_not_measured_is_missing() -> None:
    every = measured(mr={"en": 60.0, "de": 50.0})
    (panel,) = built("rerank_table2", every, TableRequest(rows="measured")).panels
    assert list(rows(panel).values()) == [["60.0", "50.0", "–", "–", "55.0"]]
    assert "-0" not in latex.to_latex(built("rerank_table2", every))


def test_published_or_measured_rows_alone() -> None:
    (printed,) = built("rerank_table2", measured(), TableRequest(rows="published")).panels
    assert not any("BiGRU" in name for name in rows(printed))
    (found,) = built("rerank_table2", measured(), TableRequest(rows="measured")).panels
    assert list(rows(found)) == ["VSE+2AD (Region, BiGRU)"]
    assert found.groups[0].title == ""


def test_the_pages_results_show_each_language() -> None:
    (table,) = headlines(measured())
    shown = {language: mean.text for language, mean in table.rows[0].languages.items()}
    assert shown == {"cs": "40.0", "de": "50.0", "en": "60.0", "fr": "70.0"}
    (table,) = headlines(system("multi30k", "multi30k_2016", captions=12000))
    assert table.rows[0].languages == {}


def test_results_without_languages_are_not_shown_and_damaged_ones_are_refused() -> None:
    (panel,) = built("rerank_table2", system("coco", "coco_5k")).panels
    assert not any("BiGRU" in name for name in rows(panel))
    with pytest.raises(InputError, match="en mR is not a finite number"):
        built("rerank_table2", measured(mr={"en": float("nan")}))


def test_both_are_written_as_latex_and_markdown() -> None:
    every = measured() | measured("mine", "all")
    for name in ("rerank_table2", "rerank_table7"):
        table = built(name, every)
        assert "SEP+CO" in latex.to_latex(table)
        assert "SEP+CO" in markdown.to_markdown(table)

"""Bold of measured rows: all that a paired test does not tell from the best, where their hits were
kept.
"""

from __future__ import annotations

from typing import Any

import invented_facts
import numpy as np
import pytest
from invented import built, headlines, system

from pipeline.foundation.evaluation.metrics import RSUM, evaluate
from pipeline.foundation.evaluation.statistics import ImageHits, pack
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import latex
from pipeline.judge.tables.table import Bold, Panel, TableRequest
from pipeline.run.report import measured
from pipeline.run.report.emphasis import PairedTests

SMALL = {"region": "pyramid36-small"}
NAMES = ("vse2ad", "vse2ad-noadopt", "vse2ad-noemb")
IMAGES = 60


def row(
    recipe: str, wrong: slice, *, images: int = IMAGES, seed: int = 0, kept: bool = True
) -> dict[str, Any]:
    """A system that ranks the captions of these images last, and finds all others."""
    scores = np.eye(images)
    scores[wrong] *= -1
    found = evaluate(scores, np.arange(images))
    ((name, entry),) = system(
        "sample", "all", recipe=recipe, features=SMALL, images=images, captions=images, seed=seed
    ).items()
    entry["all"] |= found.as_dict()
    if kept:
        entry["image_hits"] = {"all": pack(found, np.arange(images), np.arange(images))}
    return {name: entry}


def see_queries(entry: dict[str, Any]) -> None:
    """Make an entry that of a system which has seen the queries."""
    record = entry["record"]
    record["facts"] = invented_facts.rescored(record["facts"], "csls", "test").recorded()


def shown(found: dict[str, Any], bold: Any = "tied", table: str = "vse2ad_table3") -> Panel:
    (panel,) = built(table, found, TableRequest(rows="measured", bold=bold)).panels
    return panel


def bold_sums(panel: Panel) -> list[str]:
    return [
        each.cells[-1].text for group in panel.groups for each in group.rows if each.cells[-1].bold
    ]


def note(panel: Panel) -> str:
    return " ".join(
        each.text for each in panel.notes if each.text.startswith("Bold of measured rows")
    )


THREE = (slice(0, 4), slice(3, 8), slice(0, 40))
"""The first two miss images of which each finds most of the other's; the third misses two
thirds."""


def three(**changes: Any) -> dict[str, Any]:
    return {
        name: entry
        for recipe, wrong in zip(NAMES, THREE, strict=True)
        for name, entry in row(recipe, wrong, **changes).items()
    }


def test_two_rows_tie_and_the_third_does_not() -> None:
    panel = shown(three())
    sums = sorted((each.cells[-1].text for group in panel.groups for each in group.rows), key=float)
    assert sorted(bold_sums(panel), key=float) == sums[1:]
    assert sums[1] != sums[2]
    assert note(panel).endswith("Holm's correction within the column or group).")
    assert panel == shown(three())  # the same swaps every time
    assert "randomisation test" in latex.to_latex(built("vse2ad_table3", three()))


@pytest.mark.specification
def test_a_row_that_holms_correction_does_not_tell_from_the_best_is_bold() -> None:
    """Of the first two rows, one alone finds eight images, the other one: p is 0.04 where they
    compete alone.
    """
    found: dict[str, Any] = {}
    for recipe, wrong in zip(NAMES, (slice(0, 4), slice(1, 12), slice(1, 6)), strict=True):
        found |= row(recipe, wrong)
    assert len(bold_sums(shown(found))) == 3
    del found[list(found)[2]]
    assert len(bold_sums(shown(found))) == 1


def test_of_rows_that_print_the_same_number_the_truly_best_is_compared_with_the_others() -> None:
    """The third row is worse than the second, but not told from the first, which is a little
    worse.
    """
    wrong = (slice(20, 25), slice(0, 4), slice(0, 11))
    hits = [
        ImageHits(next(iter(row(NAMES[0], part).values()))["image_hits"]["all"]) for part in wrong
    ]
    tested = {index: measured.TestedColumn(each, RSUM) for index, each in enumerate(hits)}
    assert PairedTests().tied(tested, {0, 1}) == {0}
    assert PairedTests().tied(tested, {0}) == {1, 2}


def test_the_best_alone_where_that_is_asked_for() -> None:
    panel = shown(three(), "best")
    assert len(bold_sums(panel)) == 1
    assert note(panel) == ""


@pytest.mark.parametrize("changed", ["one has no hits", "one has seeds", "one has other images"])
def test_the_best_alone_and_no_claim_where_a_row_cannot_be_tested(changed: str) -> None:
    found = three()
    if changed == "one has no hits":
        found |= row(NAMES[2], THREE[2], kept=False)
    elif changed == "one has seeds":
        found |= row(NAMES[0], THREE[0], seed=1)
    else:
        hits = next(iter(row(NAMES[1], THREE[1], images=IMAGES - 1).values()))["image_hits"]
        found[list(found)[1]]["image_hits"] = hits
    panel = shown(found)
    assert len(bold_sums(panel)) == 1
    assert note(panel) == ""


@pytest.mark.parametrize(
    "hits", [[], {"all": "text"}, {"all": {"languages": []}}, {"all": {"values": []}}]
)
def test_hits_of_another_form_are_refused(hits: Any) -> None:
    found = {name: entry | {"image_hits": hits} for name, entry in three().items()}
    with pytest.raises(InputError, match="run `pipeline evaluate` again"):
        shown(found)


def test_columns_without_a_test_are_named_in_the_note() -> None:
    request = TableRequest(rows="measured", metrics=("R@1", "MeanR", "RSUM"))
    (panel,) = built("vse2ad_table3", three(), request).panels
    assert note(panel).endswith("or a number has no such test, the best alone.")
    ranks = [
        [bool(each.cells[at].bold) for group in panel.groups for each in group.rows]
        for at, column in enumerate(panel.columns)
        if column.heading == "MeanR"
    ]
    assert [sum(column) for column in ranks] == [1, 1]


def test_the_sums_that_tie_are_red_and_there_is_no_second_best() -> None:
    recipes = ("vse_infty", "vse2ad", "vse_pp")
    found = {
        name: entry
        for recipe, wrong in zip(recipes, THREE, strict=True)
        for name, entry in row(recipe, wrong).items()
    }
    panel = shown(found, table="vse_infty_table2")
    colours = sorted(str(each.cells[-1].bold) for group in panel.groups for each in group.rows)
    assert colours == ["None", "red", "red"]
    assert "and the second best where one alone is best." in panel.caption
    assert panel.colours == "Colours: red for the best."


def test_rows_that_do_not_compete_are_not_tested() -> None:
    found = three()
    name = list(found)[1]
    see_queries(found[name])
    panel = shown(found)
    assert len(bold_sums(panel)) == 1
    assert note(panel)


@pytest.mark.slow
def test_on_the_page_bold_is_what_a_test_tells_from_all_others() -> None:
    """The two best of three tie: none of them is bold. Of the first and the last, the first is."""
    two = row(NAMES[0], THREE[0]) | row(NAMES[2], THREE[2])
    (tied,), (reported,), (best,) = headlines(three()), headlines(two), headlines(three(), "best")
    bold = [
        [each.rsum.text for each in headline.rows if each.rsum.bold]
        for headline in (tied, reported, best)
    ]
    assert bold == [[], [reported.ranked[0].rsum.text], bold_sums(shown(three(), "best"))]
    assert tied.notes[0].text.startswith(
        "Bold: the best of a column, where it differs significantly from every other"
    )
    assert best.notes[0].text.startswith("Bold: the best of a column, as papers print it")
    for headline in (tied, reported):  # bold and letters never contradict each other
        assert all(
            bool(each.rsum.bold)
            == (each.letters == "a" and sum("a" in other.letters for other in headline.rows) == 1)
            for each in headline.rows
        )


@pytest.mark.parametrize(
    ("dataset", "protocol", "texts"),
    [
        ("flickr30k", "flickr30k_1k", ["503.7"]),
        ("coco", "coco_1k_5fold", ["527.8"]),
        ("sample", "all", []),
    ],
)
def test_published_numbers_are_beside_their_own_test_set_alone(
    dataset: str, protocol: str, texts: list[str]
) -> None:
    (headline,) = headlines(system(dataset, protocol))
    assert [each.published[RSUM].text for each in headline.rows if each.published] == texts


@pytest.mark.slow
def test_letters_group_the_rows_of_tables_and_of_the_page() -> None:
    table = built("vse2ad_table3", three(), TableRequest(rows="measured", letters=True))
    (panel,) = table.panels
    rows = [each for group in panel.groups for each in group.rows]
    letters = {each.cells[-2].text: each.cells[-1].text for each in rows}
    assert [letters[rsum] for rsum in sorted(letters, key=float, reverse=True)] == ["a", "a", "b"]
    assert any(note.text.startswith("Letters: ") for note in panel.notes)
    assert "{a}" in latex.to_latex(table)
    (headline,) = headlines(three())
    assert {each.numbers[RSUM].text: each.letters for each in headline.rows} == letters
    assert headline.notes[-1].text.startswith("Letters: ")
    assert [each.cells[1].text for each in headline.table.panels[0].groups[0].rows] == [
        "a",
        "a",
        "b",
    ]
    assert not any("Letters" in note.text for note in shown(three()).notes)


def test_letters_need_more_swaps_than_bold_does() -> None:
    """After Holm's correction of 55 tests the least p of 1,000 swaps is 0.055."""
    hits = [
        ImageHits(
            next(iter(row(NAMES[0], slice(0, 15 * at), images=200).values()))["image_hits"]["all"]
        )
        for at in range(11)
    ]
    tested = {index: measured.TestedColumn(each, RSUM) for index, each in enumerate(hits)}
    tests = PairedTests()
    assert tests.tied(tested, {0}) == set()
    assert tests.letters(tested) == dict(enumerate("abcdefghijk"))


def test_rows_that_cannot_be_tested_have_no_letters() -> None:
    found = three() | row(NAMES[2], THREE[2], kept=False)
    (panel,) = built("vse2ad_table3", found, TableRequest(rows="measured", letters=True)).panels
    assert not any("Letters" in note.text for note in panel.notes)
    assert not any(each.letters for each in headlines(found)[0].rows)


def test_a_row_that_does_not_compete_is_not_bold_on_the_page_either() -> None:
    found = three()
    see_queries(next(iter(found.values())))
    (headline,) = headlines(found)
    assert [any(cell.bold for cell in each.numbers.values()) for each in headline.rows] == [
        False,
        True,
        False,
    ]
    assert any("never bold" in each.text for each in headline.notes)


@pytest.mark.parametrize("bold", ["tied", "best"])
def test_a_row_by_itself_is_not_bold(bold: Bold) -> None:
    found = row(NAMES[0], THREE[0])
    (headline,) = headlines(found, bold)
    assert not any(cell.bold for each in headline.rows for cell in each.numbers.values())
    assert not headline.notes
    assert not bold_sums(shown(found, bold))


@pytest.mark.parametrize("bold", ["tied", "best"])
def test_nor_is_a_row_beside_rows_that_do_not_compete(bold: Bold) -> None:
    found = row(NAMES[0], THREE[0]) | row(NAMES[1], THREE[2])
    see_queries(next(iter(found.values())))
    (headline,) = headlines(found, bold)
    assert bold_sums(shown(found, bold)) == []
    assert not any(cell.bold for each in headline.rows for cell in each.numbers.values())


def test_more_tests_of_the_same_rows_have_more_swaps() -> None:
    hits = []
    for wrong in (slice(0), slice(0, 50)):
        (entry,) = row("vse2ad", wrong).values()
        hits.append(ImageHits(entry["image_hits"]["all"]))
    tests = PairedTests()
    for number, swaps in ((1, 1000), (100, 4000), (1, 1000)):
        assert tests._of(hits, number)[0, 1, -1] == pytest.approx(1 / (1 + swaps)), number

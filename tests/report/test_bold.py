"""Bold: the best, and every system not significantly worse than it by a paired test; where nothing
can be tested, the best alone.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from invented import built, headlines, see_queries, system

from pipeline.foundation.evaluation.metrics import RSUM, evaluate
from pipeline.foundation.evaluation.statistics import ImageHits, pack
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import bold, latex
from pipeline.judge.tables.compared import RANKS_BRIEFLY
from pipeline.judge.tables.table import Panel, TableRequest

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


def shown(found: dict[str, Any], table: str = "vse2ad_table3") -> Panel:
    (panel,) = built(table, found, TableRequest(rows="measured")).panels
    return panel


def bold_sums(panel: Panel) -> list[str]:
    return [
        each.cells[-1].text for group in panel.groups for each in group.rows if each.cells[-1].bold
    ]


TESTED = "Bold: the best of a column, and every system not significantly worse than it (paired "


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
    assert TESTED in panel.caption
    assert panel.caption.endswith("where that is all of them, and where there is one row.")
    assert panel == shown(three())  # the same swaps every time
    assert "randomisation test" in latex.to_latex(built("vse2ad_table3", three()))


def test_of_rows_that_print_the_same_number_the_truly_best_is_compared_with_the_others() -> None:
    """The third row is worse than the second, but not told from the first, which is a little
    worse: all print 5.0, and the second and the first are bold.
    """
    wrong = (slice(20, 25), slice(0, 4), slice(0, 13))
    hits = [
        ImageHits(next(iter(row(NAMES[0], part).values()))["image_hits"]["all"]) for part in wrong
    ]
    tested = {index: bold.TestedColumn((each,), RSUM) for index, each in enumerate(hits)}
    numbers = dict.fromkeys(tested, Decimal("5.0"))
    assert bold.Emphasis().bold(numbers, tested) == {0, 1}
    assert bold.Emphasis().bold({0: numbers[0], 2: numbers[2]}, tested) == set()


def test_a_single_run_has_all_tested_by_images_unless_it_is_never_bold() -> None:
    hits = []
    for wrong in THREE:
        entry = next(iter(row(NAMES[0], wrong).values()))
        hits.append(ImageHits(entry["image_hits"]["all"]))
    for competes, said in (
        (True, "one paired randomisation test over images for all rows, several seeds averaged"),
        (False, "Welch's test over seeds and images; of single runs, which are never bold, paired"),
    ):
        tested = {
            0: bold.TestedColumn((hits[0], hits[1]), RSUM),
            1: bold.TestedColumn((hits[0], hits[2]), RSUM),
            2: bold.TestedColumn((hits[2],), RSUM, competes),
        }
        emphasis = bold.Emphasis()
        # Over images many lose by the second; over two seeds its mean could be any.
        is_bold = emphasis.bold({0: Decimal(9), 1: Decimal(8)}, tested)
        assert is_bold == ({0} if competes else set())
        assert said in emphasis.lettered()


@pytest.mark.parametrize(
    "changed", ["one has no hits", "one seed has no hits", "one has other images"]
)
def test_the_best_alone_and_no_claim_where_a_row_cannot_be_tested(changed: str) -> None:
    found = three()
    if changed == "one has no hits":
        found |= row(NAMES[2], THREE[2], kept=False)
    elif changed == "one seed has no hits":
        found |= row(NAMES[0], THREE[0], seed=1, kept=False)
    else:
        hits = next(iter(row(NAMES[1], THREE[1], images=IMAGES - 1).values()))["image_hits"]
        found[list(found)[1]]["image_hits"] = hits
    panel = shown(found)
    assert len(bold_sums(panel)) == 1
    assert "Bold: the best of a column, untested." in panel.caption


@pytest.mark.parametrize(
    "hits", [[], {"all": "text"}, {"all": {"languages": []}}, {"all": {"values": []}}]
)
def test_hits_of_another_form_are_refused(hits: Any) -> None:
    found = {name: entry | {"image_hits": hits} for name, entry in three().items()}
    with pytest.raises(InputError, match="run `pipeline evaluate` again"):
        shown(found)


def test_columns_without_a_test_are_named_in_the_caption() -> None:
    request = TableRequest(rows="measured", metrics=("R@1", "MeanR", "RSUM"))
    (panel,) = built("vse2ad_table3", three(), request).panels
    assert TESTED in panel.caption
    assert "Where nothing can be tested (numbers without hits of each image), " in panel.caption
    ranks = [
        [bool(each.cells[at].bold) for group in panel.groups for each in group.rows]
        for at, column in enumerate(panel.columns)
        if column.heading == "MeanR"
    ]
    assert [sum(column) for column in ranks] == [1, 1]


def test_rows_that_do_not_compete_are_not_bold() -> None:
    found = three()
    name = list(found)[1]
    see_queries(found[name])
    panel = shown(found)
    assert len(bold_sums(panel)) == 1
    assert TESTED in panel.caption


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
    of_copies = []
    for each in headline.table.panels[0].groups[0].rows:
        of_copies.append([cell.text for cell in each.cells[1:3]])
    assert of_copies == [["1–2", "a"], ["1–2", "a"], ["3", "b"]]
    assert headline.notes[-1].text.endswith(RANKS_BRIEFLY)
    assert not any("Letters" in note.text for note in shown(three()).notes)


def test_rows_that_cannot_be_tested_have_no_letters() -> None:
    found = three() | row(NAMES[2], THREE[2], kept=False)
    (panel,) = built("vse2ad_table3", found, TableRequest(rows="measured", letters=True)).panels
    assert not any("Letters" in note.text for note in panel.notes)
    assert not any(each.letters + each.rank for each in headlines(found)[0].rows)


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


def test_a_row_by_itself_is_not_bold() -> None:
    found = row(NAMES[0], THREE[0])
    (headline,) = headlines(found)
    assert not any(cell.bold for each in headline.rows for cell in each.numbers.values())
    assert not headline.notes
    assert not bold_sums(shown(found))


def test_nor_is_a_row_beside_rows_that_do_not_compete() -> None:
    found = row(NAMES[0], THREE[0]) | row(NAMES[1], THREE[2])
    see_queries(next(iter(found.values())))
    (headline,) = headlines(found)
    assert bold_sums(shown(found)) == []
    assert not any(cell.bold for each in headline.rows for cell in each.numbers.values())

"""Systems side by side: which number stands where, and what is said of small p."""

from __future__ import annotations

import csv
import io
from itertools import combinations
from typing import Any

import pytest

from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.metrics.base import nested
from pipeline.foundation.manifest import drawn_splits
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import compared, evaluated


def contrast(
    a: float, b: float, needs: dict[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    row = {
        "a": a,
        "b": b,
        "difference": b - a,
        "interval": [b - a - 3, b - a + 3],
        "p": 0.0123,
        "adjusted": 0.0456,
        "adjusted_by": "Holm",
        "noise": None,
        "resolution": 0.0,
        "needs": needs,
        "verdict": "higher",
        "spread": {"a": None, "b": 1.5},
    }
    known = {"images": 20, "captions": 100, "protocol": "all", "over": ["images"]}
    return nested(dict.fromkeys(STATISTICS, row)) | known | more


def test_one_image_is_said_in_the_singular() -> None:
    for images, captions, said in (
        (1, 5, "1 image x 5 captions"),
        (1, 1, "1 image x 1 caption"),
        (1000, 5000, "1000 images x 5000 captions"),
    ):
        pool = {"images": images, "captions": captions, "protocol": "all", "ties": "expected"}
        for title in (compared.title(pool), evaluated.title("", pool)):
            assert title == f"{said}, protocol all"
    with pytest.raises(InputError, match=r"the annotations name 1 image or clip; training needs"):
        drawn_splits.draw(["a.jpg"])


def test_every_number_stands_below_its_heading() -> None:
    found = contrast(40.0, 50.0, split="val", language="de")
    text = compared.to_text(("mine", "theirs"), [[found]])
    assert "val split, 20 images x 100 captions in de, protocol all" in text
    (line,) = [line for line in text.splitlines() if line.strip().startswith("RSUM")]
    assert line.split() == [
        "RSUM",
        "40.0",
        "50.0",
        "±",
        "1.5",
        "+10.0",
        "[+7.0,",
        "+13.0]",
        "0.012",
        "0.046",
    ]
    header = "A,B,split,language,protocol,metric,a,b,difference,p,adjusted,low,high,noise,verdict"
    assert compared.to_csv(("mine", "theirs"), [[found]]).splitlines()[0] == header
    rows = [*csv.DictReader(io.StringIO(compared.to_csv(("mine", "theirs"), [[found]])))]
    assert len(rows) == 7
    for row, statistic in zip(rows, STATISTICS, strict=True):
        assert row == {
            "A": "mine",
            "B": "theirs",
            "split": "val",
            "language": "de",
            "protocol": "all",
            "metric": str(statistic),
            "a": "40.0",
            "b": "50.0",
            "difference": "10.0",
            "p": "0.0123",
            "adjusted": "0.0456",
            "noise": "",
            "low": "7.0",
            "high": "13.0",
            "verdict": "higher",
        }


def test_two_short_names_head_their_columns_and_long_ones_have_keys() -> None:
    for names, headings, above in (
        (("B", "A"), ["B", "A", "A", "−", "B"], ""),
        (("theirs", "ours"), ["theirs", "ours", "ours", "−", "theirs"], ""),
        (("ours", "ours-large"), ["A", "B", "B", "−", "A"], "A  ours\nB  ours-large\n\n"),
    ):
        found = contrast(40.0, 50.0)
        lines = compared.to_text(names, [[found]]).splitlines(keepends=True)
        start = next(place for place, line in enumerate(lines) if line.startswith("20 images"))
        assert "".join(lines[:start]) == above
        assert lines[start + 1].split() == [*headings, "p", "adj.", "p"]
        is_headed = not above
        assert ("A: " in compared.to_markdown(names, [[found]])) is not is_headed
        assert (f"{names[0]} and {names[1]}." in compared.to_latex(names, [[found]])) is is_headed


@pytest.mark.parametrize(
    ("by", "said"), [("maxT", "compared (step-down maxT)"), ("Holm", "compared (Holm)")]
)
def test_what_p_is_corrected_by_is_said_below_the_table(by: str, said: str) -> None:
    found = contrast(40.0, 50.0)
    for row in (*found["i2t"].values(), *found["t2i"].values()):
        row["adjusted_by"] = by
    for explain in (False, True):
        text = " ".join(compared.to_text(("a", "b"), [[found]], explain).split())
        assert text.count("Adj. p: p") == 1
        assert ("maxT" in text) == (by == "maxT")
        assert (said in text) is not explain


def test_of_three_systems_the_largest_sum_is_first_and_each_has_its_own() -> None:
    sums = [400.0, 500.0, 450.0]
    pairs = [contrast(sums[one], sums[other]) for one, other in combinations(range(3), 2)]
    lines = compared.to_text(("x", "y", "z"), [pairs]).splitlines()
    start = next(place for place, line in enumerate(lines) if "letters" in line)
    shown = [tuple(line.split()[:2]) for line in lines[start + 1 : start + 4]]
    assert shown == [("2", "500.0"), ("3", "450.0"), ("1", "400.0")]
    differences = [line.split()[:4] for line in lines if " − " in line]
    assert differences == [
        ["2", "−", "1", "+100.0"],
        ["3", "−", "1", "+50.0"],
        ["3", "−", "2", "−50.0"],
    ]


def test_what_would_suffice_has_a_column_where_a_difference_is_not_significant() -> None:
    names = ("a", "b")
    for needs, said in ((None, ""), ({"images": 340}, "340 images"), ({"seeds": 4}, "4 seeds")):
        table = compared.to_markdown(names, [[contrast(40.0, 50.0, needs)]])
        heading = next(line for line in table.splitlines() if "adj. p |" in line)
        assert ("would suffice" in heading) == (needs is not None)
        assert said in table
        for systems in (names, ("a", "b", "c")):
            pairs = [contrast(40.0, 50.0, needs) for _ in combinations(systems, 2)]
            for explain, sentence in ((False, "Would suffice: "), (True, "four of five cases")):
                for writer in (compared.to_text, compared.to_markdown, compared.to_latex):
                    printed = " ".join(writer(systems, [pairs], explain).split())
                    assert (sentence in printed) == (needs is not None)


@pytest.mark.parametrize(
    ("p", "adjusted", "by", "resolution", "shown"),
    [
        (0.0123, 0.0456, "Holm", 0.0, ["0.012", "0.046"]),
        (0.0001, 0.00010001, "Holm", 0.0, ["0.0001", "0.0001"]),
        (0.00009, 0.0002, "Holm", 0.0, ["< 0.0001", "0.0002"]),
        (1 / 1001, 3 / 1001, "Holm", 1 / 1001, ["< 0.001", "< 0.003"]),  # no swap was as large
        (1 / 1001, 3 / 1001, "maxT", 1 / 1001, ["< 0.001", "0.003"]),  # two swaps of another recall
        (1 / 1001, 1 / 1001, "maxT", 1 / 1001, ["< 0.001", "< 0.001"]),
        (2 / 1001, 6 / 1001, "Holm", 1 / 1001, ["0.002", "0.006"]),
        (0.5, 1.0, "Holm", 0.5, ["< 0.6", "1"]),
    ],
)
def test_a_p_that_is_as_small_as_its_test_can_give_is_below_a_bound(
    p: float, adjusted: float, by: str, resolution: float, shown: list[str]
) -> None:
    row = contrast(1.0, 2.0)["RSUM"] | {
        "p": p,
        "adjusted": adjusted,
        "adjusted_by": by,
        "resolution": resolution,
    }
    _, *chances = compared.difference(row)
    assert [cell.text for cell in chances] == shown

"""What a reader leaves out is counted, listed, said in a line, and refused where it is too much."""

from __future__ import annotations

import csv
import re
import tracemalloc
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError


def test_it_is_counted_listed_and_said(tmp_path: Path) -> None:
    left_out = LeftOut()
    assert not left_out
    left_out.add("no caption", "captions.csv, row 3, a.jpg")
    left_out.add("image missing", "=b.jpg\x1b[2J\n\u2028", count=2)
    left_out.add("not fetched", "00000.parquet, row 7", by_origin=True)
    left_out.check(40_000)
    assert left_out.counts == {"no caption": 1, "image missing": 2, "not fetched": 1}
    assert left_out.lines(Path("data/.mine/left_out.csv")) == [
        "left out 4 of 40,000 captions (no caption: 1, image missing: 2, not fetched: 1; failed at the source: 1)"
        "; listed in data/.mine/left_out.csv"
    ]
    left_out.save(tmp_path / ".mine" / "left_out.csv")
    with (tmp_path / ".mine" / "left_out.csv").open(encoding="utf-8", newline="") as file:
        assert [*csv.reader(file)] == [
            ["reason", "where"],
            ["no caption", "captions.csv, row 3, a.jpg"],
            ["image missing", r"'=b.jpg\x1b[2J\n\u2028"],
            ["not fetched", "00000.parquet, row 7"],
        ]
    LeftOut().save(tmp_path / ".mine" / "left_out.csv")
    assert not [*(tmp_path / ".mine").iterdir()]
    assert LeftOut().lines() == []


@pytest.mark.parametrize(
    ("lost", "marked", "total", "share", "refused"),
    [
        (3, 0, 3, 0.01, False),
        (4, 0, 40, 0.01, True),
        (4, 0, 400, 0.01, False),
        (5, 0, 400, 0.01, True),
        (4, 0, 400, 0.0, True),
        (0, 399, 400, 0.01, False),
        (4, 300, 400, 0.01, True),
    ],
)
def test_more_than_the_share_is_refused(
    lost: int, marked: int, total: int, share: float, refused: bool
) -> None:
    left_out = LeftOut(share=share)
    for row in range(marked):
        left_out.add("not fetched", f"row {row}", by_origin=True)
    for row in range(lost):
        left_out.add("no caption", f"row {row}")
    said = (
        rf"\d+ of {total} captions \(.*no caption: {lost}.*more than {100 * share:g} % .*"
        r"manifest\.left_out=SHARE; the first: row 0 \(no caption\)"
    )
    with pytest.raises(InputError, match=said) if refused else nullcontext():
        left_out.check(total)


def test_what_is_no_part_of_the_annotations_is_counted_but_for_the_share() -> None:
    left_out = LeftOut()
    for number in range(9):
        left_out.add("image without a caption", f"{number}.jpg", apart=True)
    left_out.check(20)
    assert left_out.lines() == ["left out 9 images without a caption"]
    left_out.add("no caption", "captions.csv, row 3")
    left_out.check(20)
    said = "1 of 11 captions (no caption: 1) and 9 images without a caption"
    assert left_out.lines() == [f"left out {said}; the first: captions.csv, row 3 (no caption)"]
    left_out.fail = True
    with pytest.raises(InputError, match=re.escape(said)):
        left_out.check(20)


def test_nothing_is_left_out_where_that_is_asked_for() -> None:
    LeftOut(fail=True).check(5)
    left_out = LeftOut(noun="image", fail=True)
    left_out.add("not decodable", "a.jpg")
    with pytest.raises(
        InputError,
        match=r"1 of 1,000 images \(not decodable: 1\).*--on-error skip; the first: a\.jpg",
    ):
        left_out.check(1000)


@pytest.mark.slow
def test_a_long_list_is_not_in_memory(tmp_path: Path) -> None:
    left_out = LeftOut()
    tracemalloc.start()
    for row in range(60_000):
        left_out.add(
            "no caption", f"captions.csv, row {row}, {row * 'x' if row == 1000 else 200 * 'x'}"
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000
    left_out.save(tmp_path / "list.csv")
    assert (tmp_path / "list.csv").read_text().count("\n") == 60_001


def test_a_manifest_keeps_the_counts(scenes: Manifest, tmp_path: Path) -> None:
    scenes.save(tmp_path / "whole.parquet")
    counted = Manifest(scenes.table, scenes.dataset, scenes.images_folder, {"no caption": 2})
    counted.save(tmp_path / "m.parquet")
    again = Manifest.load(tmp_path / "m.parquet")
    assert again.left_out == {"no caption": 2}
    assert Manifest.load(tmp_path / "whole.parquet").left_out == {}
    assert again.digest != scenes.digest, "what was left out is a part of what the data set is"

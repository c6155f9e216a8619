"""Parquet: lists of candidates and scores of every kind of column, and what would move a score or
round one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.foundation.evaluation.retrieval import Lists
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns

IMAGES, CAPTIONS, BEST = 6, 12, 4
COLUMNS = Columns(captions_per_image=2)
SCORES = np.random.default_rng(0).random((CAPTIONS, IMAGES))
ORDER = np.argsort(-SCORES, axis=1)[:, :BEST]
LISTED = ORDER.tolist()
VALUES = np.take_along_axis(SCORES, ORDER, 1).tolist()
QUERIES = [*range(CAPTIONS)]
TEXTS = [[f"image:{each}" for each in row] for row in LISTED]
BIG = 2**53 + 1


def write(path: Path, **columns: Any) -> None:
    parquet.write_table(pa.table(columns), path)


def refused(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        open_system(path.name, COLUMNS, root=path.parent)
    assert "\n" not in str(raised.value)
    return str(raised.value)


RUNS: dict[str, dict[str, Any]] = {
    "lists": {"query": QUERIES, "candidates": LISTED, "scores": VALUES},
    "texts": {
        "query_id": [f"caption:{each}" for each in QUERIES],
        "doc_ids": TEXTS,
        "sims": VALUES,
    },
    "large": {
        "query": pa.array(QUERIES, pa.int16()),
        "candidates": pa.array(LISTED, pa.large_list(pa.uint32())),
        "scores": pa.array(VALUES, pa.list_(pa.float64())),
    },
    "fixed": {
        "query": pa.array(map(str, QUERIES)).dictionary_encode(),
        "candidates": pa.array(LISTED, pa.list_(pa.int64(), BEST)),
        "scores": pa.array(VALUES, pa.list_(pa.float64(), BEST)),
    },
    "floats as ids": {
        "query": [float(each) for each in QUERIES],
        "candidates": [[float(each) for each in row] for row in LISTED],
        "scores": VALUES,
    },
    "rows": {
        "score": np.ravel(VALUES),
        "candidate": np.ravel(LISTED),
        "more": np.zeros(CAPTIONS * BEST, bool),
        "query": np.repeat(QUERIES, BEST),
    },
}


@pytest.mark.parametrize("name", [*RUNS])
def test_each_candidate_has_its_own_score(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.parquet", **RUNS[name])
    system = open_system("a.parquet", COLUMNS, root=tmp_path)
    assert isinstance(system.scores, Lists)
    held = system.scores.listed["t2i"]
    scores = np.full((CAPTIONS, IMAGES), np.nan)
    scores[held.query, held.candidate] = held.score
    expected = np.full((CAPTIONS, IMAGES), np.nan)
    np.put_along_axis(expected, ORDER, VALUES, 1)
    assert np.array_equal(scores, expected, equal_nan=True)


def _one_changed(rows: list[list[Any]], row: int, changed: Any) -> list[Any]:
    return [changed if number == row else each for number, each in enumerate(rows)]


SWAPPED = [row[:-1] if number % 2 else [*row, 0.0] for number, row in enumerate(VALUES)]
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "as many in all": (
        {"query": QUERIES, "candidates": LISTED, "scores": SWAPPED},
        "row 1 has 4 in candidates and 5 in scores",
    ),
    "one is cut": (
        {"query": QUERIES, "candidates": LISTED, "scores": _one_changed(VALUES, 7, [0.5])},
        "row 8 has 4 in candidates and 1 in scores",
    ),
    "one is missing": (
        {"query": QUERIES, "candidates": _one_changed(LISTED, 2, None), "scores": VALUES},
        "row 3 has 0 in candidates and 4 in scores",
    ),
    "one score a list": (
        {"query": QUERIES, "candidates": LISTED, "score": np.ones(CAPTIONS)},
        "only its column candidates holds lists",
    ),
    "lists of scores alone": (
        {"query": QUERIES, "candidate": QUERIES, "scores": VALUES},
        "only its column scores holds lists",
    ),
    "a query without id": (
        {"query": [None, *QUERIES[1:]], "candidates": LISTED, "scores": VALUES},
        "an id of no image or caption: 4",
    ),
    "a candidate without id": (
        {"query": QUERIES, "candidates": [[None, *row[1:]] for row in LISTED], "scores": VALUES},
        "an id of no image or caption: 12",
    ),
    "fractions as ids": (
        {"query": [each + 0.5 for each in QUERIES], "candidates": LISTED, "scores": VALUES},
        "its column query is double, such as '0.5'; ids are whole numbers or texts",
    ),
    "dates as ids": (
        {"query": np.arange(12).astype("M8[s]"), "candidates": LISTED, "scores": VALUES},
        "its column query is timestamp",
    ),
    "bools as scores": (
        {"query": QUERIES, "candidate": [0] * 12, "score": [True] * 12},
        "its column score is bool, such as 'True'; expected numbers",
    ),
    "whole numbers that float64 rounds": (
        {"query": QUERIES, "candidate": [0] * 12, "score": [BIG - each % 2 for each in QUERIES]},
        "holds whole numbers beyond 2^53, such as 9007199254740993",
    ),
    "a query's id beyond int64": (
        {"query": np.full(12, 2**63 + 1, np.uint64), "candidate": [0] * 12, "score": [1.0] * 12},
        "its column query is uint64",
    ),
    "three columns of other names": (
        {"a": QUERIES, "b": [0] * 12, "c": [1.0] * 12},
        "12 x 3",
    ),
}
SHOWN = {str(caption): np.random.default_rng(caption).random(IMAGES) for caption in range(12)}
REFUSED_MATRICES: dict[str, tuple[dict[str, Any], str]] = {
    "whole numbers beside fractions": (
        {"image_id": [*range(6)], **SHOWN, "3": [BIG] * 6},
        "column 3 holds whole numbers beyond 2^53",
    ),
    "two types of whole numbers": (
        {
            str(caption): pa.array([BIG] * 6, pa.uint64() if caption else None)
            for caption in range(12)
        },
        "holds whole numbers beyond 2^53",
    ),
    "an image without id": (
        {"image_id": [None, *range(1, 6)], **SHOWN},
        "row 1 of its image ids is empty",
    ),
    "an image without file": (
        {"file": ["a.jpg", None, "c.jpg", "d.jpg", "e.jpg", "f.jpg"], **SHOWN},
        "row 2 of its image ids is empty",
    ),
    "bools": ({"image_id": [True] * 6, **SHOWN}, "column image_id is bool"),
}


@pytest.mark.parametrize("name", [*REFUSED])
def test_what_would_move_or_round_a_score_is_refused(tmp_path: Path, name: str) -> None:
    columns, expected = REFUSED[name]
    write(tmp_path / "a.parquet", **columns)
    assert expected in refused(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", [*REFUSED_MATRICES])
def test_a_matrix_that_floats_would_round_or_without_an_id_is_refused(
    tmp_path: Path, name: str
) -> None:
    columns, expected = REFUSED_MATRICES[name]
    write(tmp_path / "a.parquet", **columns)
    assert expected in refused(tmp_path / "a.parquet")


def test_a_matrix_of_two_captions_is_no_run(tmp_path: Path) -> None:
    """Three columns with names are not read as query, candidate and score."""
    write(tmp_path / "a.parquet", file=["a.jpg", "b.jpg"], x=[0.5, 0.1], y=[0.25, 1.0])
    system = open_system("a.parquet", Columns(captions_per_image=1), root=tmp_path)
    block: Any = system.scores
    assert block.block(slice(0, 2), slice(0, 2)).tolist() == [[0.5, 0.25], [0.1, 1.0]]


@pytest.mark.parametrize(
    "content",
    [
        "query,candidate,score\ncaption:0,image:0,9007199254740993\n",
        '{"caption:0": {"image:0": 9007199254740993, "image:1": 9007199254740992}}',
        "caption:0 Q0 image:0 1 -9007199254740993 a\n",
    ],
)
def test_whole_numbers_in_text_are_not_rounded_either(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    assert "whole numbers beyond 2^53, such as 9007199254740993" in refused(tmp_path / "a.txt")

"""Parquet whose few bytes become many, or whose columns cannot be told apart, is one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.foundation.files import expansion
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.foreign import open_system, opening
from pipeline.judge.systems.scores.judged import Columns

LONG = "x" * 10_000
ONE = np.arange(1000.0)
HOSTILE: dict[str, tuple[pa.Table, str]] = {
    "matrix of long ids": (
        pa.table({"image_id": pa.array([LONG] * 1000), "a": pa.array(ONE)}),
        "become more than",
    ),
    "run of long ids": (
        pa.table({"query": [LONG] * 1000, "document": ["a"] * 1000, "score": ONE}),
        "become more than",
    ),
    "long texts": (
        pa.table({"image_id": [f"{LONG}{each}" for each in range(1000)], "a": ONE}),
        "become more than",
    ),
    "a name a hundred times": (
        pa.Table.from_arrays([pa.array(ONE)] * 100, ["a"] * 100),
        "has 100 columns called 'a'",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_expands_is_refused_before_it_takes_the_memory(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "ALLOWED", 1 << 20)
    table, said = HOSTILE[what]
    parquet.write_table(table, tmp_path / "s.parquet", compression="zstd")
    with pytest.raises(InputError, match=said):
        open_system("s.parquet", Columns(captions_per_image=5), root=tmp_path)


def test_texts_that_repeat_are_read_as_they_are(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).normal(size=(4, 20))
    names = ["a.jpg", "b.jpg", "é", ""]
    matrix = {"image_id": names} | {str(at): scores[:, at] for at in range(20)}
    parquet.write_table(pa.table(matrix), tmp_path / "m.parquet", use_dictionary=False)
    arrays = opening.read(tmp_path / "m.parquet")
    assert arrays is not None
    assert arrays.arrays["image_ids"].read().tolist() == names
    assert np.array_equal(arrays.arrays[""].read(), scores)
    rows = {
        "query": pa.array(np.repeat([f"image:{each}" for each in range(4)], 20)),
        "document": pa.array([f"caption:{each}" for each in range(20)] * 4).dictionary_encode(),
        "score": scores.ravel(),
    }
    parquet.write_table(pa.table(rows), tmp_path / "r.parquet", row_group_size=30)
    assert np.array_equal(runs.read(tmp_path / "r.parquet")[0]["i2t"].score, scores.ravel())

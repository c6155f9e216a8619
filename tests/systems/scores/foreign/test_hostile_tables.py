"""Text made to exhaust memory or time, or that is no table: each is refused in one line."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.foundation.evaluation.judgements import typed_columns
from pipeline.foundation.evaluation.judgements.columns import RUN, recognised
from pipeline.foundation.files import expansion
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.foreign import open_system, opening
from pipeline.judge.systems.scores.judged import Columns

ALLOWED, MOST = 1 << 20, 80 << 20
COLUMNS = Columns(captions_per_image=5)


def packed(text: str, times: int) -> bytes:
    """A gzip archive of a text that repeats."""
    return gzip.compress(text.encode() * times)


def query(number: int) -> str:
    return f'"image:{number}": ' + json.dumps({f"caption:{each}": 0.5 for each in range(99)})


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "rows.csv.gz": (lambda: packed("1,2,3,4\n", 1 << 20), "become more than"),
    "blank.csv.gz": (lambda: packed("\n", 1 << 20), "is empty"),
    "blank_below.csv.gz": (lambda: b"".join([packed("1,2\n", 1), packed("\n", 1 << 20)]), "become"),
    "line.csv": (lambda: b"1," * (1 << 23), "a line of 16,000,000 characters or more"),
    "long_name.csv": (
        lambda: b"a,1,2\n" + b"b" * 100_000 + b",1,2\n" + b"c,1,2\n" * 1000,
        "become more than",
    ),
    "quote.csv": (lambda: b'"1,2\n3,4\n', "cannot be read as text"),
    "later_quote.csv": (lambda: b'1,2\n"3,4\n' + b"5,6\n" * 1000, "cannot be read as text"),
    "nul.csv": (lambda: b"1,2\n3\x00,4\n", "is neither text nor a file that says"),
    "utf16.csv": (lambda: "1,2\n3,4\n".encode("utf-16"), "is text in UTF-16"),
    "utf16_without_mark.csv": (lambda: "1,2\n".encode("utf-16-le"), "is text in UTF-16"),
    "twice_packed.csv.gz": (
        lambda: gzip.compress(packed("1,2\n", 9)),
        "another file that gzip packed",
    ),
    "cut.csv.gz": (lambda: packed("1,2\n3,4\n", 99)[:-9], "damaged or cut short"),
    "damaged.csv.gz": (
        lambda: b"".join([packed("1,2\n", 9)[:12], b"\xff" * 40]),
        "damaged or cut short",
    ),
    "run.trec.gz": (
        lambda: packed("image:1 Q0 caption:2 1 0.5 a\n", 1 << 18),
        "become more than",
    ),
    "blanks.json.gz": (lambda: packed(" ", 1 << 23).join([gzip.compress(b'{"1":')] * 2), "become"),
    "lists.json.gz": (
        lambda: b"".join([gzip.compress(b'{"image:1": ['), packed("[],", 1 << 20)]),
        "become more than",
    ),
    "queries.json.gz": (
        lambda: gzip.compress(f"{{{','.join(map(query, range(700)))}}}".encode()),
        "become more than",
    ),
    "number.json": (
        lambda: b'{"image:0": {"caption:0": 1%s}}' % (b"0" * 5000),
        "a number of more than 4,300 digits",
    ),
    "deep.json": (lambda: b'{"a":' * 100_000, "nested too deeply"),
    "list.json": (lambda: b"[" * 100_000, "is a list in JSON"),
    "twice.json": (lambda: b'{"image:0": {"caption:0": 1}, "image:0": {}}', "'image:0' twice"),
    "inner.json": (lambda: b'{"image:0": {"caption:0": 1, "caption:0": 2}}', "'caption:0' twice"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_that_expands_or_is_none_is_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "ALLOWED", ALLOWED)
    written, said = HOSTILE[name]
    (tmp_path / name).write_bytes(written())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=said):
            open_system(name, COLUMNS, root=tmp_path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


def read(path: Path) -> np.ndarray:
    arrays = opening.read(path)
    if arrays is not None:
        return arrays.arrays[""].read()
    return runs.read(path)[0]["i2t"].score.reshape(4, 20)


def test_what_is_packed_is_read_as_what_is_not(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).normal(size=(4, 20))
    text = "\n".join(",".join(map(repr, row)) for row in scores.tolist())
    run = {
        f"image:{image}": {f"caption:{each}": score for each, score in enumerate(row)}
        for image, row in enumerate(scores.tolist())
    }
    for name, content in (("s.csv", text), ("s.json", json.dumps(run))):
        (tmp_path / name).write_text(content)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
        for each in (name, f"{name}.gz"):
            assert np.array_equal(read(tmp_path / each), scores)


@pytest.mark.slow
def test_what_has_more_entries_than_any_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors, cells of a first row, columns: each costs far more time than its bytes."""
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({str(number): entry for number in range(20_001)}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(InputError, match="holds 20,001 tensors, more than 20,000"):
        open_system(str(tmp_path / "a.safetensors"))
    with pytest.raises(InputError, match="the first row is 'query doc score"):
        recognised("query doc score" + " x" * 1000, "a.txt", RUN)
    columns = {str(number): [0.5] for number in range(11)}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    monkeypatch.setattr(typed_columns, "MOST_COLUMNS", 10)
    with pytest.raises(InputError, match="has 11 columns, more than 10"):
        open_system(str(tmp_path / "a.parquet"))

"""What a file becomes is bounded by its size, in one place."""

import gzip
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from pipeline.foundation.files.expansion import Expansion, unpacked
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.foreign.opening import read
from pipeline.judge.systems.scores.judged import Columns


@pytest.mark.parametrize("content", [b"", b"1,2\n" * 100_000, b"\x1f"])
def test_a_file_is_read_as_it_was_before_it_was_packed(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(gzip.compress(content[:7]) + gzip.compress(content[7:]))
    for name in ("plain", "packed"):
        with unpacked(tmp_path / name) as file:
            assert file.read() == content


@pytest.mark.slow
def test_a_gzip_of_one_line_is_refused_before_it_takes_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.csv.gz"
    with gzip.open(file, "wb", compresslevel=1) as packed:
        for _ in range(17):
            packed.write(bytes(1 << 24))
    with (
        unpacked(file) as text,
        open(os.devnull, "wb") as nowhere,
        pytest.raises(InputError, match=rf"{file}: its [0-9,]+ bytes become more than"),
    ):
        shutil.copyfileobj(text, nowhere)


def test_four_times_a_file_and_256_mb_are_its_most(tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(bytes(1000))
    expansion = Expansion(tmp_path / "some")
    expansion.take(256 * 1024 * 1024)
    expansion.take(4000)
    with pytest.raises(InputError, match="its 1,000 bytes become more than 268,439,456"):
        expansion.take(1)


def test_one_long_text_among_many_is_refused_before_it_takes_the_memory(tmp_path: Path) -> None:
    """An array holds all of its texts with the length of the longest."""
    ids = ["x" * 200_000, *map(str, range(999))]
    scores = np.zeros((1000, 2))
    pq.write_table(pa.table({"image_id": ids, "a": scores[:, 0]}), tmp_path / "ids.parquet")
    (tmp_path / "ids.pkl").write_bytes(pickle.dumps({"sims": scores, "image_ids": ids}))
    (tmp_path / "unused.pkl").write_bytes(pickle.dumps({"sims": scores, "config": ids}))
    columns = Columns(captions_per_image=1)
    for name in ("ids.parquet", "ids.pkl"):
        with pytest.raises(InputError, match=rf"{name}: its [0-9,]+ bytes become more than"):
            open_system(str(tmp_path / name), columns)
    assert read(tmp_path / "unused.pkl").arrays["config"].shape == (1000,)

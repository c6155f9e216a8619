"""Digests of many rows, of which few are in memory, are those of all rows as one value; files
have those of hashlib, in the order given.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pipeline.foundation.files.digest import AT_ONCE, SMALL, digest, digest_of_rows, of_files


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_rows_at_a_time_have_the_digest_of_the_whole(count: int) -> None:
    rows = [[row, f"é{row}", None if row % 2 else {"b": 1, "a": row}] for row in range(count)]
    assert digest_of_rows("float16", iter(rows)) == digest(["float16", rows])


@pytest.mark.parametrize("size", [0, 1, SMALL // 5, SMALL // 5 + 1, SMALL])
def test_files_have_their_digests_in_the_order_given(size: int, tmp_path: Path) -> None:
    contents = [bytes([number]) * size for number in range(5)]
    files = [tmp_path / str(9 - number) for number in range(5)]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    expected = [hashlib.sha256(content).hexdigest() for content in contents]
    assert [*of_files(iter(files))] == expected
    with pytest.raises(FileNotFoundError):
        [*of_files([*files, tmp_path / "missing"])]

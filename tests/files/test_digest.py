"""Digests of many rows, of which few are in memory, are those of all rows as one value."""

from __future__ import annotations

import pytest

from pipeline.foundation.files.digest import AT_ONCE, digest, digest_of_rows


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_rows_at_a_time_have_the_digest_of_the_whole(count: int) -> None:
    rows = [[row, f"é{row}", None if row % 2 else {"b": 1, "a": row}] for row in range(count)]
    assert digest_of_rows("float16", iter(rows)) == digest(["float16", rows])

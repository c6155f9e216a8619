"""What a shard's writer does when it is stopped, or its store replaced, in the middle of a
shard.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr
from new_stores import prepare

from pipeline.foundation.files import blake
from pipeline.foundation.files.digest import digest
from pipeline.make.features.store import (
    Shard,
    StoreError,
    StoreLayout,
    ledger,
    shard_file,
    write_shard,
)
from pipeline.make.features.store.layout import PLAIN

IDS, SIZES, MADE, LAYOUT = (
    np.arange(4),
    np.arange(10, 14),
    {"engine": "test"},
    StoreLayout(4, 2, 3, shard_rows=4),
)


def shard(value: float) -> Shard:
    made = Shard.empty(LAYOUT, 0)
    for row in made.rows:
        made.fill(row, np.full((2, 3), value, np.float32), (1, 1), {}, int(SIZES[row]))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.zarr"
    prepare(path, LAYOUT, MADE, IDS, SIZES)
    write_shard(path, LAYOUT, shard(1), digest(MADE))
    return path


def test_arrays_of_a_few_numbers_an_image_are_written_as_zarr_writes_them(tmp_path: Path) -> None:
    layout = StoreLayout(6, 2, 3, shard_rows=4)
    last = Shard.empty(layout, 1)
    for row in last.rows:
        last.fill(row, np.full((1, 3), row, np.float32), (row, 7), {}, 2**40 + row)
    ours, theirs = tmp_path / "ours.zarr", tmp_path / "theirs.zarr"
    for path in (ours, theirs):
        prepare(path, layout, MADE, np.arange(6), np.arange(6))
    write_shard(ours, layout, last, digest(MADE))
    for name in PLAIN:
        array = zarr.open_group(theirs, mode="r+")[name]
        assert isinstance(array, zarr.Array)
        array[4:6] = last.arrays[name]
        file = shard_file.file_of(Path(), layout, name, 1)
        assert (ours / file).read_bytes() == (theirs / file).read_bytes(), name


def test_a_shard_that_is_being_rewritten_is_not_in_the_ledger(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shard_file, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        write_shard(store, LAYOUT, shard(2), digest(MADE))
    assert ledger.read(store, 0) is None


def test_a_shard_is_not_entered_into_a_store_that_took_the_place_of_its_own(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_file = blake.of_file
    replaced = False

    def replace(path: Path) -> str:
        nonlocal replaced
        if not replaced:  # once the data are written, before the entry is
            replaced = True
            shutil.rmtree(store)
            prepare(store, LAYOUT, {"engine": "other"}, IDS, SIZES)
            shutil.copytree(
                keep,
                store,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("zarr.json", "record.json", "ledger"),
            )
        return of_file(path)

    keep = store.with_name("keep")
    shutil.copytree(store, keep)
    monkeypatch.setattr(blake, "of_file", replace)
    with pytest.raises(StoreError, match="replaced by another store"):
        write_shard(store, LAYOUT, shard(2), digest(MADE))
    assert ledger.read(store, 0) is None

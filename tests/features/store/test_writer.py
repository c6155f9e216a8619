"""What a shard's writer does when it is stopped, or its store replaced, in the middle of a shard."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from new_stores import prepare

from pipeline.features.store import Shard, StoreError, StoreLayout, ledger, shard_file, write_shard, writer
from pipeline.files.digest import digest

IDS, SIZES, MADE, LAYOUT = np.arange(4), np.arange(10, 14), {"engine": "test"}, StoreLayout(4, 2, 3, shard_images=4)


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


def test_a_shard_that_is_being_rewritten_is_not_in_the_ledger(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shard_file, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        write_shard(store, LAYOUT, shard(2), digest(MADE))
    assert ledger.read(store, 0) is None


def test_a_shard_is_not_entered_into_a_store_that_took_the_place_of_its_own(
        store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = writer.sync
    replaced = False

    def replace(path: Path) -> None:
        nonlocal replaced
        if not replaced:  # once the data are written, before the entry is
            replaced = True
            shutil.rmtree(store)
            prepare(store, LAYOUT, {"engine": "other"}, IDS, SIZES)
            shutil.copytree(keep, store, dirs_exist_ok=True, ignore=shutil.ignore_patterns("zarr.json", "ledger"))
        sync(path)

    keep = store.with_name("keep")
    shutil.copytree(store, keep)
    monkeypatch.setattr(writer, "sync", replace)
    with pytest.raises(StoreError, match="replaced by another store"):
        write_shard(store, LAYOUT, shard(2), digest(MADE))
    assert ledger.read(store, 0) is None

"""Copy a finished store into an object store, or from there: whole, and resumed where it was
interrupted.

A shard's data are copied before its ledger entry, and zarr.json last of all: without it there is
no store.
"""

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from pipeline.foundation.files import atomic, remote
from pipeline.foundation.parts.errors import counted
from pipeline.make.features.store import ledger, shard_file
from pipeline.make.features.store.layout import StoreError, StoreLayout, read_header

FIRST = "zarr.json"  # read first and uploaded last
BATCH = 64  # files at once

OnShard = Callable[[int], object]


def upload(local: Path, store: Path, on_start: OnShard, on_shard: OnShard) -> int:
    """Copy a finished store into an object store. Shards that were uploaded already are left
    out.
    """
    layout, _ = read_header(local)
    pending = ledger.pending(local, layout)
    if pending:
        raise StoreError(f"{local}: {counted(len(pending), 'shard')} not extracted yet")
    uploaded = remote.found(store)

    def is_uploaded(name: str) -> bool:
        return remote.is_same(store / name, uploaded.get(name), local / name)

    if FIRST in uploaded and not is_uploaded(FIRST):
        raise StoreError(
            f"{remote.address(store)}: holds another store; choose another place, or delete it"
        )
    names = [file.relative_to(local).as_posix() for file in local.rglob("*") if file.is_file()]
    if FIRST not in uploaded:
        _refuse_others(store, uploaded.keys() - {*names})
    entries = {shard: _names(layout, shard)[-1] for shard in range(layout.shards)}
    todo = [shard for shard, name in entries.items() if not is_uploaded(name)]
    on_start(len(todo))
    for shard in todo:
        for name in _names(layout, shard):
            remote.write(store / name, local / name)
        on_shard(1)
    description = {name for name in names if _describes(name)} - {*entries.values()}
    for name in (*sorted(description - {FIRST}), FIRST):
        if not is_uploaded(name):
            remote.write(store / name, local / name)
    return len(todo)


def download(store: Path, local: Path, on_start: OnShard, on_shard: OnShard) -> int:
    """Copy a store here. It appears when it is complete; an interrupted copy is resumed."""
    if local.exists():
        raise StoreError(f"{local}: exists; choose another place")
    names = [name for name in remote.listed(store) if _describes(name)]
    if FIRST not in names:
        raise StoreError(f"{remote.address(store)}: no feature store there")
    making = local.with_name(local.name + ".successor")
    begun = making / FIRST
    if begun.exists() and begun.read_bytes() != remote.read_bytes(store / FIRST):
        shutil.rmtree(making)
    _get(store, making, names)
    layout, _ = read_header(making)
    pending = ledger.pending(making, layout)
    if pending:
        raise StoreError(
            f"{remote.address(store)}: {len(pending)} of {layout.shards} shards are not extracted yet"
        )
    on_start(layout.shards)
    for shard in range(layout.shards):
        missing = [name for name in _names(layout, shard) if not (making / name).exists()]
        _get(store, making, missing)
        entry = ledger.read(making, shard)
        if entry is None or shard_file.read(making, layout, shard).checksums != entry.checksums:
            for name in layout.arrays():
                shard_file.file_of(making, layout, name, shard).unlink(missing_ok=True)
            raise StoreError(
                f"{remote.address(store)}: shard {shard} is not as it was written; copy again, or make it "
                "again where it was made"
            )
        on_shard(1)
    atomic.take_place(making, local)
    return layout.shards


def _refuse_others(store: Path, names: Collection[str]) -> None:
    """Refuse a place with other files, which would be taken for the store's."""
    if not names:
        return
    files = counted(len(names), "file")
    raise StoreError(
        f"{remote.address(store)}: has {files} that are of no store, or of one that has lost its "
        f"{FIRST}, the first {min(names)!a}; choose another place, or delete them"
    )


def _describes(name: str) -> bool:
    """Whether a file describes the store: all but the arrays of its shards."""
    parts = name.split("/")
    if {"", ".", ".."} & {*parts}:  # keys of an object store may be any text
        raise StoreError(
            f"{name!a}: would be written outside the store's folder; delete it in the object store"
        )
    return len(parts) < 3 or parts[1] != "c" or parts[0] == "ids"


def _names(layout: StoreLayout, shard: int) -> list[str]:
    """All files of a shard, the ledger's entry last."""
    files = [shard_file.file_of(Path(), layout, name, shard) for name in layout.arrays()]
    return [file.as_posix() for file in (*files, ledger.file(Path(), shard))]


def _get(store: Path, local: Path, names: list[str]) -> None:
    """Download files, `BATCH` at a time."""
    for start in range(0, len(names), BATCH):
        some = names[start : start + BATCH]
        # A copy that was interrupted leaves no file that looks whole.
        partial = [Path(f"{local / name}.partial") for name in some]
        with remote.one_line(store):
            files, place = remote.file_system(store)
            for file in partial:
                file.parent.mkdir(parents=True, exist_ok=True)
            files.get([f"{place}/{name}" for name in some], [str(file) for file in partial])
            for file, name in zip(partial, some, strict=True):
                file.replace(local / name)

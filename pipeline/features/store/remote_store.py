"""A store in an object store. It is written through a working copy here: a shard is uploaded when
it is complete.

The working copy holds the store's description and a few numbers per image. A shard's data are
uploaded, then its ledger entry, and its features are deleted here. A run that was killed resumes
from what was uploaded. A store that is replaced or grown is made as STORE.successor there, of new
shards only, which then replaces the store.
"""

import json
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.features.store import ledger, shard_file
from pipeline.features.store.layout import PLAIN, StoreError, StoreLayout, read_header
from pipeline.files import atomic, parsing, remote
from pipeline.files.digest import digest
from pipeline.parts.errors import counted, refusing

FIRST = "zarr.json"  # read first and uploaded last: without it there is no store
KEPT = "kept.json"  # in a successor: the shards whose data are in the store that it replaces
DESCRIPTION = re.compile(r"header\.json|record\.json|failures\.csv|ids/c/0|\w+/zarr\.json")
"""Files that are uploaded before zarr.json."""
BATCH = 64  # files at once

OnShard = Callable[[int], object]


def working_copy(store: Path, root: Path) -> Path:
    """Name the folder through which a store is written."""
    return own_folder(store, root / "features" / ".remote")


def own_folder(store: Path, folder: Path) -> Path:
    """Name a folder that holds nothing but a store's description: all other files in it are
    deleted.
    """
    return folder / f"{store.stem}-{digest(remote.address(store))[:12]}.zarr"


def successor(store: Path) -> Path:
    """Name the place of the store that replaces or grows another: beside it, here and in the object
    store.
    """
    return store.with_name(store.name + ".successor")


def take_up(store: Path, local: Path) -> None:
    """Download what a run needs of a store and its successor, a few bytes per image, and the copies
    here lack.
    """
    # A `take_place` that was interrupted is finished first.
    uploaded, begun = remote.found(store), remote.found(successor(store))
    if FIRST not in uploaded and FIRST not in begun:
        _refuse_others(store, [name for name in uploaded if not DESCRIPTION.fullmatch(name)])
    if FIRST in begun and FIRST not in uploaded:
        _bring(successor(store), local, begun)
        take_place(store, local)
        uploaded, begun = remote.found(store), {}
    if begun and (FIRST not in begun or (begun[FIRST].tag and begun[FIRST] == uploaded.get(FIRST))):
        _clear(successor(store), begun)  # it has taken the store's place
        begun = {}
    _bring(store, local, uploaded)
    _bring(successor(store), successor(local), begun)
    _share(local, successor(local))


def _refuse_others(store: Path, names: Collection[str]) -> None:
    """Refuse a place with other files, because replacing a store deletes all files there."""
    if names:
        raise StoreError(
            f"{remote.address(store)}: has {counted(len(names), 'file')} that are of no store, or of one "
            f"that has lost its {FIRST}, the first {min(names)!a}; choose another place, or delete them"
        )


def _share(local: Path, new: Path) -> None:
    """Copy the files of kept shards from a store's working copy into its successor's."""
    for shard in _kept(new):
        for file in _names(read_header(new)[0], shard):
            if (local / file).exists() and not (new / file).exists():
                (new / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(local / file, new / file)


def _kept(new: Path) -> list[int]:
    """The shards of a store that its successor keeps, by the successor's working copy."""
    if not (new / KEPT).exists():
        return []
    with refusing(
        ValueError,
        f"{new / KEPT}: is no list of shards; delete {new.name} in the object store",
        StoreError,
    ):
        return TypeAdapter(list[int]).validate_json((new / KEPT).read_bytes(), strict=True)


def describe(store: Path, local: Path) -> dict[str, int]:
    """Download what is not here of a store's description; return the sizes of all files in the
    object store.
    """
    uploaded = remote.found(store)
    _bring(store, local, uploaded, {*PLAIN, "ids"})
    if FIRST not in uploaded:
        raise StoreError(f"{remote.address(store)}: no feature store there")
    return {name: each.bytes for name, each in uploaded.items()}


def _bring(
    store: Path,
    local: Path,
    uploaded: Mapping[str, remote.Listed],
    arrays: Collection[str] = ("bytes", "ids"),
) -> None:
    names = [name for name in uploaded if _is_small(name, arrays)]
    if FIRST not in names:
        shutil.rmtree(local, ignore_errors=True)
        return
    for file in local.rglob("*"):
        name = file.relative_to(local).as_posix()
        if file.is_file() and not (
            name in names and remote.is_same(store / name, uploaded[name], file)
        ):
            file.unlink()
    _get(store, local, [name for name in names if not (local / name).exists()])


def take_place(store: Path, local: Path) -> None:
    """Replace a store by its complete successor, which `local` describes, with copies on the
    server.
    """
    # Shards that both have stay where they are. zarr.json is deleted first and copied last: nobody
    # reads a mixture of both, and the next run recognises a replacement that was interrupted, and
    # finishes it. A file that is in neither is refused before anything is changed.
    new, uploaded, (layout, _) = successor(store), remote.found(store), read_header(local)
    begun = remote.found(new).keys() - {KEPT}
    linked = {*_kept(local)}
    files = {
        name: shard
        for shard in range(layout.shards)
        if layout.rows(shard)
        for name in _names(layout, shard)
    }
    if lost := sorted(
        name for name in files.keys() - begun if files[name] not in linked or name not in uploaded
    ):
        raise StoreError(
            f"{remote.address(store)}: {lost[0]} is missing here and in {new.name}; delete {new.name} "
            f"and {ledger.file(Path(store.name), files[lost[0]])}, and run again"
        )
    _clear(store, [name for name in uploaded if name == FIRST or name not in {*begun, *files}])
    remote.copy_on_server(new, store, [name for name in begun if name != FIRST])
    remote.copy_on_server(new, store, [FIRST])
    _clear(new, remote.found(new))


def _clear(store: Path, uploaded: Collection[str]) -> None:
    """Delete files of a store, zarr.json first, without which it is none, and a successor is not
    begun.
    """
    remote.delete(store, [FIRST] if FIRST in uploaded else [])
    remote.delete(store, [name for name in uploaded if name != FIRST])


def _is_small(name: str, arrays: Collection[str] = (*PLAIN, "ids")) -> bool:
    parts = name.split("/")
    if {"", ".", ".."} & {*parts}:  # keys of an object store may be any text
        raise StoreError(
            f"{name!a}: would be written outside the store's folder; delete it in the object store"
        )
    return len(parts) < 3 or parts[1] != "c" or parts[0] in arrays


def _names(layout: StoreLayout, shard: int) -> list[str]:
    """All files of a shard, the ledger's entry last."""
    files = [shard_file.file_of(Path(), layout, name, shard) for name in layout.arrays()]
    return [file.as_posix() for file in (*files, ledger.file(Path(), shard))]


def push_shard(store: Path, local: Path, layout: StoreLayout, shard: int) -> None:
    """Upload a finished shard, its ledger entry last, and delete its features here."""
    for name in _push(store, local, layout, shard):
        if not _is_small(name):
            (local / name).unlink()


def _push(store: Path, local: Path, layout: StoreLayout, shard: int) -> list[str]:
    names = _names(layout, shard)
    for name in names:
        remote.write(store / name, local / name)
    return names


def push_description(store: Path, local: Path, kept: Sequence[int] = ()) -> None:
    """Upload what is not there of a store's description, zarr.json last."""
    # A successor that was begun for other images keeps the shards that it has in common with
    # `local`.
    uploaded, of_store = remote.found(store), list(kept)
    if (
        store.suffix == ".successor"
        and FIRST in uploaded
        and not remote.is_same(store / FIRST, uploaded[FIRST], local / FIRST)
    ):
        layout, _ = read_header(local)
        of_both = {shard: _names(layout, shard) for shard in kept}
        of_both = {
            shard: names
            for shard, names in of_both.items()
            if _is_up(store, local, uploaded, names)
        }
        _clear(store, uploaded.keys() - {name for names in of_both.values() for name in names})
        uploaded, of_store = {}, [shard for shard in kept if shard not in of_both]
    if kept:
        atomic.write_text(local / KEPT, json.dumps(of_store))
    names = [file.relative_to(local).as_posix() for file in local.rglob("*") if file.is_file()]
    names = [name for name in names if _is_small(name, {"ids"}) and not name.startswith("ledger/")]
    names += [
        name
        for shard in kept
        for name in [ledger.file(Path(), shard).as_posix()]
        if (local / name).stat().st_nlink == 1
    ]
    for name in sorted(names, key=lambda name: (name == FIRST, name)):
        if not remote.is_same(store / name, uploaded.get(name), local / name):
            remote.write(store / name, local / name)


def _is_up(
    store: Path, local: Path, uploaded: Mapping[str, remote.Listed], names: list[str]
) -> bool:
    """Whether a shard is uploaded with the checksums that it has here. The entry may name another
    maker here.
    """
    entry = names[-1]
    return {*names} <= uploaded.keys() and (
        remote.is_same(store / entry, uploaded[entry], local / entry)
        or _checksums(remote.read_bytes(store / entry)) == _checksums((local / entry).read_bytes())
    )


def _checksums(entry: bytes) -> Any:
    with suppress(ValueError, KeyError, TypeError):
        return parsing.from_json(entry)["checksums"]


def upload(local: Path, store: Path, on_start: OnShard, on_shard: OnShard) -> int:
    """Copy a finished store into an object store. Shards that were uploaded already are left
    out.
    """
    layout, _ = read_header(local)
    if pending := ledger.pending(local, layout):
        raise StoreError(f"{local}: {counted(len(pending), 'shard')} not extracted yet")
    uploaded = remote.found(store)
    if FIRST in uploaded and not remote.is_same(store / FIRST, uploaded[FIRST], local / FIRST):
        raise StoreError(
            f"{remote.address(store)}: holds another store; choose another place, or delete it"
        )
    if FIRST not in uploaded:
        if FIRST in remote.found(successor(store)):
            raise StoreError(
                f"{remote.address(store)}: another store is being made there; run again the command that "
                f"began it, or delete {successor(store).name}, too"
            )
        _refuse_others(
            store,
            uploaded.keys() - {file.relative_to(local).as_posix() for file in local.rglob("*")},
        )
    entries = {
        shard: _names(layout, shard)[-1] for shard in range(layout.shards) if layout.rows(shard)
    }
    todo = [
        shard
        for shard, name in entries.items()
        if not remote.is_same(store / name, uploaded.get(name), local / name)
    ]
    on_start(len(todo))
    for shard in todo:
        _push(store, local, layout, shard)
        on_shard(1)
    push_description(store, local)
    return len(todo)


def download(store: Path, local: Path, on_start: OnShard, on_shard: OnShard) -> int:
    """Copy a store here. It appears when it is complete; an interrupted copy is resumed."""
    if local.exists():
        raise StoreError(f"{local}: exists; choose another place")
    names = [name for name in remote.listed(store) if _is_small(name)]
    if FIRST not in names:
        raise StoreError(f"{remote.address(store)}: no feature store there")
    making = local.with_name(local.name + ".successor")
    if (making / FIRST).exists() and (making / FIRST).read_bytes() != remote.read_bytes(
        store / FIRST
    ):
        shutil.rmtree(making)
    _get(store, making, names)
    layout, _ = read_header(making)
    if pending := ledger.pending(making, layout):
        raise StoreError(
            f"{remote.address(store)}: {len(pending)} of {layout.shards} shards are not extracted yet"
        )
    shards = [shard for shard in range(layout.shards) if layout.rows(shard)]
    on_start(len(shards))
    for shard in shards:
        _get(
            store, making, [name for name in _names(layout, shard) if not (making / name).exists()]
        )
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
    return len(shards)


def _get(store: Path, local: Path, names: list[str]) -> None:
    """Download files, `BATCH` at a time."""
    for start in range(0, len(names), BATCH):
        some = names[start : start + BATCH]
        with remote.one_line(store):
            files, place = remote.file_system(store)
            for name in some:
                (local / name).parent.mkdir(parents=True, exist_ok=True)
            files.get(
                [f"{place}/{name}" for name in some], [f"{local / name}.partial" for name in some]
            )
            for name in some:  # a copy that was interrupted leaves no file that looks whole
                Path(f"{local / name}.partial").replace(local / name)

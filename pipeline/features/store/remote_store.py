"""A store in an object store. It is written through a working copy here: a shard goes up when it is whole.

The working copy holds what describes the store and a few numbers an image. Features go up, data first and then the
ledger's entry, and are deleted here. A run that was killed is resumed from what is up.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from pipeline.features.store import ledger, shard_file
from pipeline.features.store.layout import PLAIN, StoreError, StoreLayout, read_header
from pipeline.files import remote
from pipeline.files.atomic import take_place
from pipeline.files.digest import digest

SMALL = {*PLAIN, "image_ids"}
FIRST = "zarr.json"  # goes up last: without it there is no store
BATCH = 64  # files at once

OnShard = Callable[[int], object]


def working_copy(store: Path, root: Path) -> Path:
    """Name the folder through which a store is written."""
    return root / "features" / ".remote" / f"{store.stem}-{digest(remote.address(store))[:12]}.zarr"


def take_up(store: Path, local: Path) -> None:
    """Bring what describes a store, and a few numbers an image, into its working copy."""
    shutil.rmtree(local, ignore_errors=True)
    names = [name for name in remote.listed(store) if _is_small(name)]
    if FIRST in names:
        _get(store, local, names)


def _is_small(name: str) -> bool:
    """Whether a file is not a shard of features or of what is stored beside them."""
    parts = name.split("/")
    if {"", ".", ".."} & {*parts}:  # keys of an object store may be any text
        raise StoreError(f"{name!a}: lies below the store's address and leads out of a folder; delete it there")
    return len(parts) < 3 or parts[1] != "c" or parts[0] in SMALL


def push_shard(store: Path, local: Path, layout: StoreLayout, shard: int) -> None:
    """Bring a finished shard up, its ledger entry last, and delete its features here."""
    for name, file in _push(store, local, layout, shard).items():
        if name not in PLAIN:
            file.unlink()


def _push(store: Path, local: Path, layout: StoreLayout, shard: int) -> dict[str, Path]:
    files = {name: shard_file.file_of(local, layout, name, shard) for name in layout.arrays()}
    for file in [*files.values(), ledger.file(local, shard)]:
        remote.write(store / file.relative_to(local), file)
    return files


def push_description(store: Path, local: Path) -> None:
    """Bring up what describes a store, zarr.json last."""
    names = sorted(file.relative_to(local).as_posix() for file in local.rglob("*") if file.is_file())
    for name in sorted((name for name in names if "/c/" not in name or name.startswith("image_ids/")),
                       key=lambda name: name == FIRST):
        if not name.startswith("ledger/"):
            remote.write(store / name, local / name)


def fetch_shards(store: Path, local: Path, layout: StoreLayout, shards: Iterable[int]) -> None:
    """Bring shards into a working copy."""
    for shard in shards:
        files = [shard_file.file_of(local, layout, name, shard) for name in layout.arrays()]
        _get(store, local, [file.relative_to(local).as_posix() for file in files if not file.exists()])


def upload(local: Path, store: Path, on_start: OnShard, on_shard: OnShard) -> int:
    """Copy a finished store into an object store. Shards that are up already are left out."""
    layout, _ = read_header(local)
    if pending := ledger.pending(local, layout):
        raise StoreError(f"{local}: {len(pending)} shards are not extracted yet")
    uploaded = remote.listed(store)
    if FIRST in uploaded and remote.read_bytes(store / FIRST) != (local / FIRST).read_bytes():
        raise StoreError(f"{remote.address(store)}: another store is there; choose another place, or delete it")
    todo = [shard for shard in range(layout.shards) if layout.rows(shard)
            and not _same(store, ledger.file(local, shard), local, uploaded)]
    on_start(len(todo))
    for shard in todo:
        _push(store, local, layout, shard)
        on_shard(1)
    push_description(store, local)
    return len(todo)


def _same(store: Path, file: Path, local: Path, uploaded: dict[str, int]) -> bool:
    name = file.relative_to(local).as_posix()
    return uploaded.get(name) == file.stat().st_size and remote.read_bytes(store / name) == file.read_bytes()


def download(store: Path, local: Path, on_start: OnShard, on_shard: OnShard) -> int:
    """Copy a store here. It appears when it is whole; an interrupted copy is resumed."""
    if local.exists():
        raise StoreError(f"{local}: is there already; choose another place")
    names = [name for name in remote.listed(store) if _is_small(name)]
    if FIRST not in names:
        raise StoreError(f"{remote.address(store)}: no feature store there")
    making = local.with_name(local.name + ".successor")
    if (making / FIRST).exists() and (making / FIRST).read_bytes() != remote.read_bytes(store / FIRST):
        shutil.rmtree(making)
    _get(store, making, names)
    layout, _ = read_header(making)
    if pending := ledger.pending(making, layout):
        raise StoreError(f"{remote.address(store)}: {len(pending)} of {layout.shards} shards are not extracted yet")
    shards = [shard for shard in range(layout.shards) if layout.rows(shard)]
    on_start(len(shards))
    for shard in shards:
        fetch_shards(store, making, layout, [shard])
        entry = ledger.read(making, shard)
        if entry is None or shard_file.read(making, layout, shard).checksums != entry.checksums:
            for name in layout.arrays():
                shard_file.file_of(making, layout, name, shard).unlink(missing_ok=True)
            raise StoreError(f"{remote.address(store)}: shard {shard} is not as it was written; copy again, or make it "
                             "again where it was made")
        on_shard(1)
    take_place(making, local)
    return len(shards)


def _get(store: Path, local: Path, names: list[str]) -> None:
    """Bring files here, some at a time."""
    for start in range(0, len(names), BATCH):
        some = names[start:start + BATCH]
        with remote.one_line(store):
            files, place = remote.system(store)
            for name in some:
                (local / name).parent.mkdir(parents=True, exist_ok=True)
            files.get([f"{place}/{name}" for name in some], [f"{local / name}.partial" for name in some])
            for name in some:  # a copy that was interrupted leaves no file that looks whole
                Path(f"{local / name}.partial").replace(local / name)

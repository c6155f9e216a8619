"""The ledger: one small file a finished shard, written after the shard's data, so that what it names is whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pipeline.files.atomic import write_text
from pipeline.store.layout import Layout, StoreError


@dataclass(frozen=True)
class Entry:
    """A finished shard: its images by row, the failed ones with the reason, and each array file's checksum.

    photographs: row -> checksum of the image file that the features were made from. Imports know of none, and entries
    from before it was recorded say none.
    """

    shard: int
    first: int
    images: int
    failed: dict[int, str]
    checksums: dict[str, str]
    photographs: dict[int, str] = field(default_factory=dict)


def _file(store: Path, shard: int) -> Path:
    return store / "ledger" / f"{shard:06d}.json"


def write(store: Path, entry: Entry) -> None:
    """Write an entry so that it appears whole, after the data is on disk."""
    write_text(_file(store, entry.shard), json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True))


def read(store: Path, shard: int) -> Entry | None:
    """A shard's entry, None where it is not finished. Raises StoreError for one that cannot be read."""
    try:
        tree = json.loads(_file(store, shard).read_text(encoding="utf-8"))
        entry = Entry(int(tree["shard"]), int(tree["first"]), int(tree["images"]), _by_row(tree["failed"]),
                      dict(tree["checksums"]), _by_row(tree.get("photographs", {})))
        if asdict(entry) != {**tree, "failed": entry.failed, "photographs": entry.photographs} \
                or set(map(type, entry.checksums.values())) != {str}:
            raise ValueError("not as it was written")
        return entry
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise StoreError(f"{_file(store, shard)}: not readable; `pipeline verify --repair` mends it") from None


def _by_row(tree: Mapping[str, str]) -> dict[int, str]:
    return {int(row): str(text) for row, text in tree.items()}


def erase(store: Path, shard: int) -> None:
    """Forget a shard: it counts as not extracted."""
    _file(store, shard).unlink(missing_ok=True)


def pending(store: Path, layout: Layout) -> list[int]:
    """The shards without an entry."""
    return [shard for shard in range(layout.shards) if not _file(store, shard).exists()]


def entries(store: Path, layout: Layout) -> list[Entry]:
    """All finished shards' entries, in order."""
    found = (read(store, shard) for shard in range(layout.shards))
    return [entry for entry in found if entry is not None]


def shard_file(store: Path, array: str, shard: int, dimensions: int) -> Path:
    """Where zarr keeps a shard of an array with `dimensions` axes: the default chunk key, c/SHARD/0/0."""
    return store.joinpath(array, "c", str(shard), *["0"] * (dimensions - 1))


def checksum(path: Path) -> str:
    """BLAKE2b-128 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def checksum_of(content: bytes) -> str:
    """The same of a file's bytes that are in memory."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()

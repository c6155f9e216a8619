"""The ledger: one small file for each finished shard, written after the data, so that listed shards are complete."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.features.store.layout import StoreError, StoreLayout, maker
from pipeline.files.atomic import write_text
from pipeline.files.parsing import from_json


@dataclass(frozen=True)
class LedgerEntry:
    """A finished shard.

    Attributes:
        shard: Its number.
        first: The row of its first image.
        images: How many images it has.
        failed: Row -> reason.
        checksums: Array -> checksum of its file.
        photographs: Row -> checksum of the image file that the features were made from. Imports have none, nor have
            entries from before this was recorded.
        values: Row -> digest of the image's features and of what is stored beside them, which does not depend on shards
            and compression. Entries from before this was recorded have none.
        maker: Digest of what made the features, see `layout.maker`. Entries from before this was recorded have "".
    """

    shard: int
    first: int
    images: int
    failed: dict[int, str]
    checksums: dict[str, str]
    photographs: dict[int, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)
    maker: str = ""


def file(store: Path, shard: int) -> Path:
    """Name a shard's entry."""
    return store / "ledger" / f"{shard:06d}.json"


def write(store: Path, entry: LedgerEntry) -> None:
    """Write an entry completely or not at all. Call it when the data are on disk."""
    write_text(file(store, entry.shard), json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True))


def read(store: Path, shard: int) -> LedgerEntry | None:
    """Read a shard's entry: the entry, None if the shard is not finished."""
    try:
        tree = {"maker": ""} | from_json(file(store, shard).read_text(encoding="utf-8"))
        entry = LedgerEntry(int(tree["shard"]), int(tree["first"]), int(tree["images"]), _by_row(tree["failed"]),
                            dict(tree["checksums"]), _by_row(tree.get("photographs", {})),
                            _by_row(tree.get("values", {})), tree["maker"])
        by_row = {"failed": entry.failed, "photographs": entry.photographs, "values": entry.values}
        if asdict(entry) != tree | by_row or entry.shard != shard \
                or set(map(type, [*entry.checksums.values(), entry.maker])) != {str}:
            raise ValueError("not as it was written")
        return entry
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise StoreError(f"{file(store, shard)}: not readable; repair it with `pipeline verify --repair`") from None


def of_another_store(store: Path, layout: StoreLayout, fingerprint: Mapping[str, Any]) -> bool:
    """Tell whether a description is another store's than the shards: no entry names what it says made them.

    It gives whether it is; False where no entry says what made its shard.
    """
    makers = set()
    for shard in range(layout.shards):
        try:
            entry = read(store, shard)
        except StoreError:
            continue
        makers |= {entry.maker} if entry is not None and entry.maker else set()
    return bool(makers) and maker(fingerprint) not in makers


def _by_row(tree: Mapping[str, str]) -> dict[int, str]:
    return {int(row): str(text) for row, text in tree.items()}


def erase(store: Path, shard: int) -> None:
    """Remove a shard's entry; the shard then counts as not extracted."""
    file(store, shard).unlink(missing_ok=True)


def pending(store: Path, layout: StoreLayout) -> list[int]:
    """List the shards without an entry."""
    return [shard for shard in range(layout.shards) if layout.rows(shard) and not file(store, shard).exists()]


def entries(store: Path, layout: StoreLayout) -> list[LedgerEntry]:
    """Read the entries of all finished shards: the entries in order."""
    found = (read(store, shard) for shard in range(layout.shards))
    return [entry for entry in found if entry is not None]


def photographs(store: Path, layout: StoreLayout) -> dict[int, str]:
    """Row -> checksum of the image file that its features were made from, of all finished shards."""
    return {row: checksum for entry in entries(store, layout) for row, checksum in entry.photographs.items()}


def shard_file(store: Path, array: str, shard: int, dimensions: int) -> Path:
    """Name the file of an array's shard by zarr's default chunk key, c/SHARD/0/0."""
    return store.joinpath(array, "c", str(shard), *["0"] * (dimensions - 1))

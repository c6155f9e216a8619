"""The ledger: one small file for each finished shard, written after the data, so that listed shards
are complete.

Other arrays of a few numbers per row are read here, too.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pipeline.foundation.files import atomic, parsing, regular
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest.columns import NO_FILE
from pipeline.make.features.store.layout import ABSENT, StoreError, StoreLayout, maker

# Row -> text; JSON has the rows as text.
ByRow = dict[Annotated[int, Field(strict=False)], str]


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class LedgerEntry:
    """A finished shard."""

    shard: int
    first: int
    rows: int
    failed: ByRow  # Row -> reason
    checksums: dict[str, str]  # Array -> checksum of its file
    # Row -> checksum of the file or caption that the features were made from. Imports have none.
    sources: ByRow
    # Row -> digest of the row's features and of what is stored beside them, which does not depend
    # on shards and compression.
    values: ByRow
    maker: str  # Digest of what made the features, see `layout.maker`


def file(store: Path, shard: int) -> Path:
    """Name a shard's entry."""
    return store / "ledger" / f"{shard:06d}.json"


def write(store: Path, entry: LedgerEntry) -> None:
    """Write an entry completely or not at all. Call it when the data are on disk."""
    content = parsing.from_json(json.dumps(vars(entry)))  # rows as text, as they are read
    sealed = content | {"seal": digest(content)}
    atomic.write_text(
        file(store, entry.shard), json.dumps(sealed, ensure_ascii=False, sort_keys=True)
    )


def read(store: Path, shard: int) -> LedgerEntry | None:
    """Read a shard's entry; None if the shard is not finished."""
    try:
        content = parsing.from_json(regular.text(file(store, shard)))
        if content.pop("seal") != digest(content):
            raise ValueError("edited")
        entry = LedgerEntry(**content)
        if entry.shard != shard:
            raise ValueError("of another shard")
        return entry
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise StoreError(
            f"{file(store, shard)}: not readable, or edited; run `pipeline store verify --repair`"
        ) from None


def of_another_store(store: Path, layout: StoreLayout, fingerprint: Mapping[str, Any]) -> bool:
    """Whether a fingerprint belongs to another store: the ledger has entries, none made by what it
    describes.
    """
    makers = {entry.maker for entry in readable(store, layout).values()}
    return bool(makers) and maker(fingerprint) not in makers


def erase(store: Path, shard: int) -> None:
    """Remove a shard's entry; the shard then counts as not extracted."""
    file(store, shard).unlink(missing_ok=True)


def pending(store: Path, layout: StoreLayout) -> list[int]:
    """List the shards without an entry."""
    return [shard for shard in range(layout.shards) if not file(store, shard).exists()]


def entries(store: Path, layout: StoreLayout) -> list[LedgerEntry]:
    """Read the entries of all finished shards, in order."""
    maybe = (read(store, shard) for shard in range(layout.shards))
    return [entry for entry in maybe if entry is not None]


def readable(store: Path, layout: StoreLayout) -> dict[int, LedgerEntry]:
    """Read the entries of finished shards that are not damaged: shard -> entry."""
    entries = {}
    for shard in range(layout.shards):
        with suppress(StoreError):
            entry = read(store, shard)
            if entry is not None:
                entries[shard] = entry
    return entries


def sources(store: Path, layout: StoreLayout) -> dict[int, str]:
    """Row -> checksum of the file or caption that its features were made from, of all finished
    shards.
    """
    checksums = {}
    for entry in entries(store, layout):
        checksums.update(entry.sources)
    return checksums


def rows_of_sources(store: Path, layout: StoreLayout, wanted: Sequence[str]) -> np.ndarray:
    """Find rows, int64 [M], by the checksums of what they were made from; ABSENT for none, and for
    "".
    """
    row_of = {checksum: row for row, checksum in sources(store, layout).items() if checksum}
    return np.array([row_of.get(checksum, ABSENT) for checksum in wanted], np.int64)


def column(store: Path, name: str) -> np.ndarray:
    """Read an array that holds a few numbers per row, [I, ...], such as ids."""
    return np.asarray(opened(store, name)[:])


def opened(store: Path, name: str) -> Any:
    """Open an array of a store by zarr."""
    import zarr

    from pipeline.foundation.files.zarr_arrays import checked

    array = zarr.open_array(store / name, mode="r", zarr_format=3)
    return checked(array, f"{store}/{name}")


def shard_file(store: Path, array: str, shard: int, dimensions: int) -> Path:
    """Name the file of an array's shard by zarr's default chunk key, c/SHARD/0/0."""
    return store.joinpath(array, "c", str(shard), *["0"] * (dimensions - 1))


def file_sizes(path: Path, entry: LedgerEntry, layout: StoreLayout) -> np.ndarray:
    """The sizes of the files that a finished shard was made from; zeros where they are lost."""
    file = shard_file(path, "bytes", entry.shard, 1)
    rows = len(layout.rows(entry.shard))
    if file.exists():
        raw = file.read_bytes()
        if len(raw) >= rows * 8:
            return np.frombuffer(raw, "<i8")[:rows]
    return np.zeros(rows, np.int64)


def other_files(before: np.ndarray, current: np.ndarray) -> np.ndarray:
    """Which files have another size than when features were made from them; NO_FILE is an unknown
    size.
    """
    return (before != current) & (before != NO_FILE) & (current != NO_FILE)

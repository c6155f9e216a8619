"""Write a store shard by shard: one owner for each shard, data first, then the ledger."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.files import blake
from pipeline.foundation.files.atomic import write_text
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.wrapping import cell
from pipeline.make.features.store import ledger, shard_file
from pipeline.make.features.store.layout import (
    ABSENT,
    DONE,
    FAILED,
    PLAIN,
    StoreError,
    StoreLayout,
    maker,
    read_header,
)


@dataclass
class Shard:
    """A shard's arrays, filled row by row. Rows that are not filled must be recorded as failed."""

    number: int  # the shard's number
    rows: range  # its rows
    arrays: dict[str, np.ndarray]  # name -> [rows of the shard, ...]
    failed: dict[int, str]  # row -> reason
    # row -> checksum of what it was made from
    sources: dict[int, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, layout: StoreLayout, number: int) -> Self:
        """The shard of a number in a layout, before its rows are filled."""
        rows = layout.rows(number)
        arrays = {}
        for name, (shape, dtype) in layout.arrays().items():
            arrays[name] = np.zeros((len(rows), *shape), dtype)
        return cls(number, rows, arrays, {})

    def fill(
        self,
        row: int,
        features: np.ndarray,
        size: tuple[int, int],
        extras: Mapping[str, np.ndarray],
        file_bytes: int = 0,
        source: str = "",
    ) -> None:
        """Store one row, as `fill_several`; ValueError for no or too many items.

        features: [n, D]. size: width and height in pixels; 0, 0 for a caption. extras: name -> [n,
            ...]. file_bytes, source: size and checksum of its file or caption, "" if none was read.
        """
        most = self.arrays["features"].shape[1]
        if not 1 <= len(features) <= most:
            raise ValueError(f"expected 1 to {most} items, got {len(features)}")
        arrays = {name: values[None] for name, values in extras.items()}
        arrays["counts"] = np.array([len(features)])
        arrays["sizes"] = np.array([size])
        arrays["bytes"] = np.array([file_bytes])
        self.fill_several(np.array([row]), features[None], arrays, [source])

    def fill_several(
        self,
        rows: np.ndarray,
        features: np.ndarray,
        arrays: Mapping[str, np.ndarray],
        sources: Sequence[str],
    ) -> None:
        """Store B rows. One with values beyond the range of the store's dtype is recorded as
        failed.

        Args:
            rows: Int64 [B], their rows in the store.
            features: [B, n, D], float32 or of the store's dtype, n from 1 to N; padding zero.
            arrays: Name -> [B, ...], of all but features and status; of items [B, n, ...].
            sources: The checksums of their files or captions, "" where none was read.
        """
        kind = self.arrays["features"].dtype
        shard_rows = rows - self.rows.start
        fit = _within(features, kind)
        if features.dtype != kind:
            with np.errstate(over="ignore"):  # such rows fail below
                features = features.astype(kind)
        for name, values in {"features": features, **arrays}.items():
            if name in PLAIN:
                self.arrays[name][shard_rows] = values
            else:
                self.arrays[name][shard_rows, : values.shape[1]] = values
        self.arrays["status"][shard_rows] = DONE
        for row, checksum in zip(rows.tolist(), sources, strict=True):
            if checksum:
                self.sources[row] = checksum
        for row in rows[~fit].tolist():
            self.fail(row, f"the network's features are not finite in {kind}")

    def take(self, store: Path, rows_there: np.ndarray) -> None:
        """Copy rows of a store, finished or not.

        rows_there: Int64 [rows of the shard], the row there of each row here; ABSENT for those that
            stay empty.

        Raises:
            StoreError: If one is not as its ledger says.
        """
        here = np.flatnonzero(rows_there != ABSENT)
        if not len(here):
            return
        rows = rows_there[here]
        layout, _ = read_header(store)
        taken = {}
        for name, values in self.arrays.items():
            taken[name] = ledger.opened(store, name).oindex[rows]
            values[here] = taken[name]
        digests = shard_file.values(range(len(here)), taken)
        shards = np.unique(rows // layout.shard_rows)
        entries = {number: ledger.read(store, number) for number in shards.tolist()}
        for place, (row_here, row) in enumerate(zip(here.tolist(), rows.tolist(), strict=True)):
            entry = entries[row // layout.shard_rows]
            if entry is None or entry.values.get(row) != digests.get(place):
                raise StoreError(
                    f"{store}: row {row} is not as it was written; run `pipeline store verify --repair`"
                )
            new_row = self.rows.start + row_here
            if row in entry.failed:
                self.failed[new_row] = entry.failed[row]
            if row in entry.sources:
                self.sources[new_row] = entry.sources[row]

    def fail(self, row: int, reason: str) -> None:
        """Record for a row of the store the reason why it failed."""
        self.failed[row] = reason
        self.sources.pop(row, None)
        place = row - self.rows.start
        for values in self.arrays.values():
            values[place] = 0
        self.arrays["status"][place] = FAILED


def _within(features: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Which rows, bool [B], hold nothing but finite values in the range of a dtype."""
    of_row = (1, 2)
    if features.dtype == np.float16:
        # The exponent's bits show it; numpy would convert the values one after another.
        exponents = features.view(np.uint16) & 0x7C00
        return (exponents != 0x7C00).all(axis=of_row)
    greatest = np.maximum(features.max(axis=of_row), -features.min(axis=of_row))
    is_within: np.ndarray = greatest <= np.finfo(kind).max  # False for NaN
    return is_within


def write_shard(
    store: Path, layout: StoreLayout, shard: Shard, made_from: str
) -> ledger.LedgerEntry:
    """The ledger entry of a complete shard, which is written into a store before it.

    layout: the store's sizes. made_from: digest of the fingerprint.

    Raises:
        ValueError: If a row was neither filled nor failed.
    """
    if not shard.arrays["status"].all():
        missing = shard.rows.start + int(np.argmin(shard.arrays["status"]))
        raise ValueError(f"shard {shard.number}: row {missing} was neither filled nor failed")
    fingerprint = _check_own(store, layout, shard, made_from)
    ledger.erase(store, shard.number)
    checksums = {}
    for name, values in shard.arrays.items():
        file = ledger.shard_file(store, name, shard.number, values.ndim)
        if name in PLAIN:
            shard_file.write_plain(file, values, layout.shard_rows)
        else:
            shard_file.write(file, values, layout.shard_rows, layout.compressor)
        checksums[name] = blake.of_file(file)
    entry = ledger.LedgerEntry(
        shard.number,
        shard.rows.start,
        len(shard.rows),
        shard.failed,
        checksums,
        shard.sources,
        shard_file.values(shard.rows, shard.arrays),
        maker(fingerprint),
    )
    _check_own(store, layout, shard, made_from)
    ledger.write(store, entry)
    return entry


def _check_own(store: Path, layout: StoreLayout, shard: Shard, made_from: str) -> dict[str, Any]:
    """Read the store's fingerprint, and check that it is still this store."""
    current, fingerprint = read_header(store)
    if current != layout or digest(fingerprint) != made_from:
        raise StoreError(
            f"{store}: was replaced by another store in the meantime; this run leaves it alone"
        )
    return fingerprint


def write_failures(
    store: Path, layout: StoreLayout, names: list[str], rows: np.ndarray | None = None
) -> dict[int, str]:
    """The reason of each failed row of the manifest. failures.csv is written from the ledger,
    unless it is up to date.

    layout: the store's sizes. names: what messages call the manifest's items, see `Gallery.names`.
        rows: their rows in the store; None where they are the same.
    """
    text, failed = failures_csv(store, layout, names, rows)
    file = store / "failures.csv"
    is_up_to_date = file.exists() and file.read_bytes() == text.encode()
    if not is_up_to_date:
        with records.rewriting(store, file.name):
            write_text(file, text)
    return failed


def failures_csv(
    store: Path, layout: StoreLayout, names: list[str], rows: np.ndarray | None = None
) -> tuple[str, dict[int, str]]:
    """Compose the content of failures.csv: the text, and row in the manifest -> reason."""
    if rows is None:
        rows = np.arange(layout.total)
    place = {row: place for place, row in enumerate(rows.tolist())}
    failed = {}
    for entry in ledger.entries(store, layout):
        for row, reason in entry.failed.items():
            if row in place:
                failed[place[row]] = reason
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["row", "file", "reason"])
    for row, reason in sorted(failed.items()):
        lines.writerow([row, cell(names[row]), cell(reason)])
    return text.getvalue(), failed

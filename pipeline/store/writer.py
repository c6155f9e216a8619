"""Write a store shard by shard: one owner a shard, data first, then the ledger."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import zarr

from pipeline.files.atomic import sync, write_text
from pipeline.files.digest import digest
from pipeline.store import ledger, shard_file
from pipeline.store.layout import DONE, FAILED, PLAIN, Layout, StoreError, create, describe
from pipeline.store.survey import survey


@dataclass
class Shard:
    """A shard's arrays, filled image by image; images that are never filled must be recorded as failed.

    arrays: name -> [images of the shard, ...]. failed: row in the store -> reason. photographs: row in the store ->
    checksum of its image file.
    """

    number: int
    rows: range
    arrays: dict[str, np.ndarray]
    failed: dict[int, str]
    photographs: dict[int, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, layout: Layout, number: int) -> Shard:
        rows = layout.rows(number)
        arrays = {name: np.zeros((len(rows), *shape), dtype) for name, (shape, dtype) in layout.arrays().items()}
        return cls(number, rows, arrays, {})

    def fill(self, row: int, features: np.ndarray, size: tuple[int, int], extras: Mapping[str, np.ndarray],
             file_bytes: int = 0, photograph: str = "") -> None:
        """Take over one image: features [n, D] float32 with n of at most N items, extras name -> [n, ...].

        size: width and height in pixels. file_bytes: size of its file. photograph: its file's checksum, "" where no
        file was read. Values that the store's dtype cannot hold
        make the image a failed one, never infinities in a store.
        """
        place, count, kind = row - self.rows.start, len(features), self.arrays["features"].dtype
        if count and not np.abs(features).max() <= np.finfo(kind).max:  # not a number compares as False
            self.fail(row, f"the network's features are not finite in {kind}")
            return
        if not 1 <= count <= self.arrays["features"].shape[1]:
            raise ValueError(f"expected 1 to {self.arrays['features'].shape[1]} items, got {count}")
        # torch rounds to float16 as numpy does, nine times as fast.
        torch.from_numpy(self.arrays["features"])[place, :count] = torch.from_numpy(
            np.require(features, requirements=("C", "W")))
        self.arrays["counts"][place] = count
        self.arrays["sizes"][place] = size
        self.arrays["bytes"][place] = file_bytes
        self.arrays["status"][place] = DONE
        if photograph:
            self.photographs[row] = photograph
        for name, values in extras.items():
            self.arrays[name][place, :count] = values

    def fail(self, row: int, reason: str) -> None:
        """Record an image as failed: no items, and why."""
        self.failed[row] = reason
        self.arrays["status"][row - self.rows.start] = FAILED


def write_shard(store: Path, layout: Layout, shard: Shard, made_from: str) -> ledger.Entry:
    """Write a whole shard and then its ledger entry.

    made_from: digest of the fingerprint. Raises ValueError where an image was left out, StoreError where the store has
    become another's.
    """
    if not shard.arrays["status"].all():
        missing = shard.rows.start + int(np.argmin(shard.arrays["status"]))
        raise ValueError(f"shard {shard.number}: image row {missing} was neither filled nor failed")
    _check_own(store, layout, made_from)
    ledger.erase(store, shard.number)
    group = zarr.open_group(store, mode="r+", zarr_format=3)
    checksums = {}
    for name, values in shard.arrays.items():
        file = ledger.shard_file(store, name, shard.number, values.ndim)
        if name in PLAIN:
            array = group[name]
            assert isinstance(array, zarr.Array)
            array[shard.rows.start:shard.rows.stop] = values
            sync(file)
            sync(file.parent)
        else:
            shard_file.write(file, values, layout.shard_images, layout.compressor)
        checksums[name] = ledger.checksum(file)
    entry = ledger.Entry(shard.number, shard.rows.start, len(shard.rows), shard.failed, checksums,
                         shard.photographs)
    _check_own(store, layout, made_from)
    ledger.write(store, entry)
    return entry


def _check_own(store: Path, layout: Layout, made_from: str) -> None:
    there, fingerprint = describe(store)
    if there != layout or digest(fingerprint) != made_from:
        raise StoreError(f"{store}: was replaced by another store in the meantime; this run leaves it alone")


def prepare(path: Path, layout: Layout, fingerprint: Mapping[str, Any], image_ids: np.ndarray, sizes: np.ndarray,
            if_changed: str = "refuse", retry_failed: bool = False) -> list[int]:
    """Create the store, or take up the one that is there. Returns the shards that are still to be written.

    sizes: [I] bytes of each image file, as the manifest has them. A store with another fingerprint or layout is
    refused with what differs, or with if_changed="redo" replaced; where only image files changed, their shards alone
    are done again. retry_failed: shards with failed images too. Call it inside `exclusive`.
    """
    path = path.resolve()
    leaving = path.with_name(path.name + ".removing")
    for rest in (path.with_name(path.name + ".creating"), leaving):
        shutil.rmtree(rest, ignore_errors=True)
    changed, pending = survey(path, layout, fingerprint, sizes, retry_failed)
    if changed and not _is_store(path):
        raise StoreError(f"{path}: is there and is not a feature store; it is left alone, choose another --out")
    if changed and if_changed == "refuse":
        raise StoreError(f"{path}: was made otherwise ({changed}); choose another --out, or --if-changed redo to "
                         "replace it")
    if changed and not pending:
        path.rename(leaving)  # whole or not at all, whenever this ends
        shutil.rmtree(leaving)
    if not path.exists():
        create(path, layout, fingerprint, image_ids)
        return list(range(layout.shards))
    for leftover in path.rglob("*.partial*"):
        leftover.unlink()
    return pending


def _is_store(path: Path) -> bool:
    """Whether a folder is a feature store, of whatever version: nothing else is ever replaced."""
    try:
        attributes = json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
        return "fingerprint_digest" in attributes and "layout" in attributes
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_failures(store: Path, layout: Layout, names: list[str]) -> dict[int, str]:
    """Write failures.csv (row, file, reason) from the ledger. names: [I] file names. Returns row -> reason."""
    text, failed = failures_csv(store, layout, names)
    write_text(store / "failures.csv", text)
    return failed


def failures_csv(store: Path, layout: Layout, names: list[str]) -> tuple[str, dict[int, str]]:
    """What failures.csv should hold, and row -> reason. names: [I] file names."""
    failed = {row: reason for entry in ledger.entries(store, layout) for row, reason in entry.failed.items()}
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["row", "file", "reason"])
    lines.writerows([row, names[row], reason] for row, reason in sorted(failed.items()))
    return text.getvalue(), failed

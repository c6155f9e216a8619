"""Read a store: any rows, in any order, directly from the shard files.

An inner chunk is one row, so a random row costs one `pread` into the caller's array, without zarr's
overhead, a growing memory map or reading of neighbours. The files are plain zarr 3 shards; the
offsets come from the shard's own index.

Shards are read from the folder that was opened first, also when another one has taken its path.
Once that folder is deleted, because the store was rewritten, the store that replaced it is read.
"""

import os
import resource
import threading
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest.sources import Sources, of as sources_of
from pipeline.foundation.manifest.table import Manifest
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.make.features.store import layout as layouts, ledger, shard_file, verify
from pipeline.make.features.store.layout import (
    ABSENT,
    DONE,
    StoreError,
    StoreLayout,
    imported,
    missing,
    read_header,
)

# Files that a store keeps open: all of COCO at 128 rows per shard, if the process may open four
# times as many.
OPEN = max(1, min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))


class FeatureStore:
    """A finished feature store, open for reading. Its rows are numbered as in the manifest, after
    `require`.

    rows: see `rows`; None for all ids of the store in its own order. StoreError if it was edited,
        or is not finished.
    """

    def __init__(self, path: Path, rows: np.ndarray | None = None) -> None:
        self.path = path
        self._reading = threading.RLock()
        self._manifest: Manifest | None = None  # after `require`
        self._opened = _Opened(path, rows)

    @property
    def layout(self) -> StoreLayout:
        """Its sizes."""
        return self._opened.layout

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that its values depend on."""
        return self._opened.fingerprint

    @cached_property
    def place(self) -> dict[str, str]:
        """Option of its engine -> the file that it named when the store was extracted last."""
        return dict(records.require(self.path).facts.get("place", {}))

    @property
    def rows(self) -> np.ndarray:
        """Int64 [M], where the arrays have each id, for all other methods; ABSENT for one that is
        not extracted.
        """
        return self._opened.rows

    def require(self, manifest: Manifest) -> Self:
        """The store with the manifest's ids in its order, by id or else by content; StoreError if
        it lacks one.
        """
        kind = self.layout.kind
        with refusing(InputError, lambda error: f"{self.path}: holds {kind}; {error}", StoreError):
            sources = sources_of(manifest, kind)
        same_ids = self.fingerprint.get("ids") == sources.digest
        if same_ids:
            rows = layouts.find(self._whole("ids"), sources.ids)
        else:
            rows = self._rows_by_content(sources)
        store = self
        if not np.array_equal(rows, self.rows):
            store = self._of(rows)
        is_of_all = same_ids and self.layout.total == len(sources.ids)
        if is_of_all and not np.array_equal(rows, np.arange(self.layout.total)):
            raise StoreError(
                f"{self.path}: its ids are not the manifest's; run `pipeline store verify`"
            )
        differ = ledger.other_files(store.columns("bytes"), sources.sizes)
        changed = np.flatnonzero(store.done & differ)
        if len(changed):
            number = counted(len(changed), self.layout.noun)
            first = sources.names[changed[0]]
            raise StoreError(
                f"{self.path}: {number} changed since, the first {first}; {self._renewed}"
            )
        store._manifest = manifest
        return store

    def _rows_by_content(self, sources: Sources) -> np.ndarray:
        """The rows of another manifest's sources by what they hold; features that depend on ids
        are of no other manifest.
        """
        rows = np.array([ABSENT])
        by_content = not self.fingerprint.get("depends_on_id", True)
        if by_content and sources.checksums is not None:
            checksums = sources.checksums.tolist()
            rows = ledger.rows_of_sources(self.path, self.layout, checksums)
        if not len(rows) or (rows == ABSENT).any():
            raise StoreError(
                f"{self.path}: was made for another manifest's {sources.kind}; {self._renewed}"
            )
        return rows

    def _of(self, rows: np.ndarray | None = None) -> Self:
        """Open the same store with these rows."""
        return type(self)(self.path, rows)

    def _follow(self) -> None:
        """Read the store that has taken this one's path, if it holds the same features of the same
        ids.
        """
        successor = self._of()
        has_same_dtype = successor.layout.dtype == self.layout.dtype
        is_same = has_same_dtype and successor.fingerprint == self.fingerprint
        if self._manifest is None or not is_same:
            raise StoreError(
                f"{self.path}: was replaced while it was read; run the same command again"
            )
        self._continue_with(successor.require(self._manifest))

    def _continue_with(self, successor: Self) -> None:
        self._opened = successor._opened

    @property
    def _renewed(self) -> str:
        """What a user must do to get the manifest's features: an imported store does not grow."""
        if imported(self.fingerprint):
            return "run `pipeline store import` again with --if-changed redo"
        return "run `pipeline extract`, which extracts what is new"

    def require_extracted(self, rows: np.ndarray) -> None:
        """Check that rows, int64 [B], are in the store, done or failed; StoreError if some are
        not.
        """
        absent = int((self.rows[rows] == ABSENT).sum())
        if absent:
            raise StoreError(
                f"{self.path}: {absent} of {len(rows)} {self.layout.kind} are not extracted yet; run the "
                "same `pipeline extract` without --split and --only, or for their split"
            )

    @cached_property
    def identity(self) -> str:
        """SHA-256 over the fingerprint, the dtype and what failed: what a head trained on it
        depends on.
        """
        is_extracted = self.rows != ABSENT
        failed = np.flatnonzero(is_extracted & ~self.done)
        return digest(
            {
                "fingerprint": self.fingerprint,
                "dtype": self.layout.dtype,
                "failed": failed.tolist(),
            }
        )

    def content(self, rows: np.ndarray) -> str:
        """The digest of the ledger's record of rows, int64 [B], see `verify.content`."""
        self.require_extracted(rows)
        return verify.content(self.path, self.rows[rows])

    def check(self, rows: np.ndarray) -> None:
        """Check the bytes of the shards of rows, int64 [B], read once; StoreError if a file differs
        from the ledger.
        """
        self.require_extracted(rows)
        for file, _, exists in verify.changed(self.path, self.rows[rows]):
            fault = "is missing"
            if exists:
                fault = "its bytes have changed since they were written"
            raise StoreError(f"{file}: {fault}; run `pipeline store verify --repair`")

    @property
    def width(self) -> int:
        """The last dimension of what `read` gives: D."""
        return self.layout.dimension

    @property
    def slots(self) -> int:
        """N, the most items of a row."""
        return self.layout.items

    @property
    def ids(self) -> np.ndarray:
        """The ids, int64 [M]."""
        return self.columns("ids")

    @property
    def counts(self) -> np.ndarray:
        """Valid items of each id, int32 [M]."""
        return self.columns("counts")

    @property
    def done(self) -> np.ndarray:
        """Bool [M], True where an id has features; the others failed, or are absent, and must be
        left out.
        """
        return self.columns("status") == DONE

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """The rows of ids, int64 [B], as the other methods take them; StoreError if the store lacks
        one.
        """
        rows = layouts.find(self.ids, ids)
        absent = ids[rows == ABSENT]
        if len(absent):
            raise StoreError(
                f"{self.path}: holds no features of {self.layout.noun} {absent[0]}; {self._renewed}"
            )
        return rows

    def columns(self, name: str) -> np.ndarray:
        """The array [M, ...] of this name (ids, counts, status, sizes or bytes), zero for absent
        ids.
        """
        with self._reading:
            if name not in self._opened.columns:
                whole = self._whole(name)  # which may follow the store
                self._opened.columns[name] = self._opened.of_rows(name, whole)
            return self._opened.columns[name]

    def _whole(self, name: str) -> np.ndarray:
        whole = ledger.column(self.path, name)
        if not self._opened.left():
            return whole
        self._follow()
        return self._whole(name)

    def read(
        self, rows: np.ndarray, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read the features of rows, int64 [B]. A row's values are checked when it is read for the
        first time.

        out: filled instead of a new array if it is given, of the result's shape and dtype,
            contiguous.

        Returns:
            Features [B, N, D] as stored, N the most items of a row in the store, padding zero; and
            counts int64 [B].

        Raises:
            IndexError: For rows out of range.
            ValueError: For failed rows, or another shape of `out`.
            StoreError: For a row with a value that is not finite.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size:
            first = rows.min()
            last = rows.max()
            if first < 0 or last >= len(self.rows):
                raise IndexError(f"rows: expected 0 to {len(self.rows) - 1}, got {first} to {last}")
        done = self.columns("status")[rows] == DONE
        if not done.all():
            self.require_extracted(rows)
            raise ValueError(f"row {rows[~done][0]} failed in extraction and has no features")
        shape = (len(rows), self.layout.items, self.layout.dimension)
        dtype = self.layout.dtype
        if out is None:
            out = np.empty(shape, dtype)
        elif out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
            raise ValueError(
                f"out: expected contiguous {dtype} {shape}, got {out.dtype} {out.shape}"
            )
        counts = self.counts[rows].astype(np.int64)
        self._fill("features", rows, counts, out)
        self._require_finite(self.rows[rows], out)  # once `_fill` has followed the store
        return out, counts

    def _require_finite(self, stored: np.ndarray, features: np.ndarray) -> None:
        """Check features [B, N, D] of rows of the arrays, int64 [B], that are read for the first
        time.
        """
        is_checked = self._opened.finite
        if is_checked[stored].all():
            return
        for row, values in zip(stored, features, strict=True):
            if is_checked[row] or shard_file.all_finite(values):
                continue
            is_finite = np.isfinite(values).all(axis=1)
            item = int(np.argmin(is_finite))
            which = f"{self.layout.noun} {self._whole('ids')[row]} (row {row})"
            raise StoreError(
                f"{self.path}: {which} has a value that is not finite in item {item}; `pipeline "
                "store verify` says whether the store was damaged; extract or import it again"
            )
        is_checked[stored] = True

    def extra(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Another array (boxes, scores, ...) by name, of rows, int64 [B]: [B, N, ...], padding
        zero.
        """
        shape, dtype = self.layout.arrays()[name]
        out = np.empty((len(rows), *shape), dtype)
        self._fill(name, np.asarray(rows), np.full(len(rows), self.layout.items), out)
        return out

    def items(self, row: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The features [n, D] of a row as stored, and name -> [n, ...] of the other arrays."""
        rows = np.array([row])
        features, (count,) = self.read(rows)
        extras = {}
        for name in self.layout.extras:
            extras[name] = self.extra(name, rows)[0, :count]
        return features[0, :count], extras

    def _fill(self, name: str, rows: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
        with self._reading:
            try:
                self._fill_rows(name, self.rows[rows], counts, out)
            except OSError as error:
                if not self._opened.left():
                    raise StoreError(
                        f"{self.path}/{error.filename}: cannot be read ({error.strerror}); run `pipeline "
                        "store verify --repair`"
                    ) from None
                self._follow()
                self._fill(name, rows, counts, out)

    def _fill_rows(self, name: str, rows: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
        if not len(out):
            return
        whole = out.data.cast("B")
        size = out.nbytes // len(out)
        size_of_item = size // out.shape[1]
        valid = (counts * size_of_item).tolist()
        opened = self._opened
        damaged = f"{self.path}: {name} is damaged; run `pipeline store verify --repair`"
        with refusing((RuntimeError, ValueError), damaged, StoreError):
            for place in np.argsort(rows, kind="stable").tolist():
                shard, chunk = divmod(int(rows[place]), opened.layout.shard_rows)
                descriptor = opened.shard(name, shard, out.ndim)
                offset, length = self._index(descriptor, name, shard)[chunk].tolist()
                start = place * size
                target = whole[start : start + size]
                self._chunk(descriptor, offset, length, target, valid[place])

    def _chunk(
        self, descriptor: int, offset: int, length: int, target: memoryview, valid: int
    ) -> None:
        """Read a chunk into memory of a row's size; bytes behind its valid ones become zero."""
        if self.layout.compressor == "zstd":
            shard_file.take(os.pread(descriptor, length, offset), "zstd", target)
            return
        if length != len(target) or os.preadv(descriptor, [target[:valid]], offset) != valid:
            raise ValueError("a chunk is cut short")
        if valid < length:
            target[valid:] = bytes(length - valid)

    def _index(self, descriptor: int, name: str, shard: int) -> np.ndarray:
        """A shard's index: [S, 2] uint64 offset and length of each row's chunk."""
        indices = self._opened.indices
        if (name, shard) not in indices:
            rows = len(self.layout.rows(shard))
            index = shard_file.read_index(descriptor, self.layout.shard_rows, rows)
            indices[name, shard] = index
        return indices[name, shard]


class _Opened:
    """A store's folder, which stays the same one when another is moved to its path, and what was
    read of it.
    """

    def __init__(self, path: Path, rows: np.ndarray | None) -> None:
        lost = (FileNotFoundError, NotADirectoryError)
        with refusing(lost, lambda error: missing(path), StoreError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        # The files that were read last stay open: opening one takes as long as reading half a row.
        self.path = path
        self._files = dict[tuple[str, int], int]()
        weakref.finalize(self, _close, self._descriptor, self._files)
        self.layout, self.fingerprint = read_header(path)
        pending = ledger.pending(path, self.layout)
        if pending:
            command = "extract"
            if imported(self.fingerprint):
                command = "store import"
            raise StoreError(
                f"{path}: {len(pending)} of {self.layout.shards} shards are not finished yet; run the "
                f"same `pipeline {command}` again to resume"
            )
        if rows is None:
            rows = np.arange(self.layout.total)
        if self.left():  # else the sizes of one store would be read with the features of another
            raise StoreError(
                f"{path}: was replaced while it was opened; run the same command again"
            )
        self.rows = rows
        self.columns: dict[str, np.ndarray] = {}  # see `FeatureStore.columns`
        self.indices: dict[tuple[str, int], np.ndarray] = {}  # of shards
        # Rows that were checked and are finite.
        self.finite = np.zeros(self.layout.total, dtype=bool)

    def of_rows(self, name: str, whole: np.ndarray) -> np.ndarray:
        """Take the rows of a column, zero for absent ids; each row has a status."""
        is_stored = self.rows != ABSENT
        values = whole[self.rows[is_stored]]
        if name == "status" and not np.isin(values, (DONE, layouts.FAILED)).all():
            raise StoreError(f"{self.path}: rows without status; run `pipeline store verify`")
        column = np.zeros((len(self.rows), *whole.shape[1:]), whole.dtype)
        column[is_stored] = values
        return column

    def shard(self, name: str, shard: int, dimensions: int) -> int:
        """A descriptor of an array's shard, which stays open until the next call at least."""
        descriptor = self._files.pop((name, shard), None)
        if descriptor is None:
            file = ledger.shard_file(Path(), name, shard, dimensions)
            descriptor = os.open(file, os.O_RDONLY, dir_fd=self._descriptor)
            if len(self._files) >= OPEN:
                oldest = next(iter(self._files))
                os.close(self._files.pop(oldest))
        self._files[name, shard] = descriptor
        return descriptor

    def left(self) -> bool:
        """Whether another folder is at its path, or for a moment none."""
        try:
            at_path = self.path.stat()
        except FileNotFoundError:
            return True
        return not os.path.samestat(os.fstat(self._descriptor), at_path)


def _close(folder: int, files: dict[tuple[str, int], int]) -> None:
    for descriptor in (folder, *files.values()):
        os.close(descriptor)


def provenance(store: FeatureStore) -> dict[str, Any]:
    """The recipe, engine or format, weights and trained in a store's fingerprint, for the records
    of results.
    """
    keys = ("recipe", "engine", "format", "weights", "trained")
    return {key: store.fingerprint[key] for key in keys if key in store.fingerprint}

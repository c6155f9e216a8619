"""Read a store: any rows, in any order, directly from the shard files.

An inner chunk is one image, so a random image costs one `pread` into the caller's array, without zarr's overhead, a
growing memory map or reading of neighbours. The files are plain zarr 3 shards; the offsets come from the shard's own
index.

Shards are read from the folder that was opened first, also when another one has taken its path. Once that folder is
deleted, because the store was rewritten, the store that replaced it is read.
"""

import os
import resource
import threading
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from pipeline.features.store import ledger, shard_file, verify
from pipeline.features.store.layout import ABSENT, DONE, FAILED, StoreError, imported, read_header
from pipeline.files.digest import digest
from pipeline.manifest.table import PHOTOGRAPH, Manifest
from pipeline.parts.errors import refusing

OPEN = max(1, min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
"""Files that a store keeps open: all of COCO at 128 images per shard, if the process may open four times as many."""


class FeatureStore:
    """A finished feature store, open for reading. Images are numbered as in the manifest, after `require`.

    Attributes:
        path: The store.
        layout: Its sizes.
        fingerprint: All that its values depend on.
        rows: Int64 [M], the row of each image in the arrays; ABSENT for one that is not extracted. All other methods
            find an image's row here, and nowhere else.

    Args:
        path: The store.
        rows: As above; None for all images of the store in its own order.

    Raises:
        StoreError: If it is not a store, was edited, or is not finished.
    """

    def __init__(self, path: Path, rows: np.ndarray | None = None) -> None:
        self.path, self._reading = path, threading.RLock()
        with refusing((FileNotFoundError, NotADirectoryError), f"{path}: no feature store there; make it with "
                      "`pipeline extract`", StoreError):
            self._folder = _Folder(path)
        self.layout, self.fingerprint = read_header(path)
        self._manifest: Manifest | None = None  # after `require`
        pending = ledger.pending(path, self.layout)
        if pending:
            raise StoreError(f"{path}: {len(pending)} of {self.layout.shards} shards are not there yet; run the same "
                             f"`pipeline {'import' if imported(self.fingerprint) else 'extract'}` again to resume")
        if self._folder.left():  # else the sizes of one store would be read with the features of another
            raise StoreError(f"{path}: was replaced while it was opened; run the same command again")
        if rows is None:
            rows = self.layout.in_use(self._whole("image_ids")) if self.layout.sizes else np.arange(self.layout.images)
        self.rows = rows
        self._indices: dict[tuple[str, int], np.ndarray] = {}
        self._finite = np.zeros(self.layout.images, dtype=bool)  # rows that were checked and are finite

    def require(self, manifest: Manifest) -> Self:
        """Find the manifest's images in the store: by id, or in a store of another manifest by their photographs.

        Args:
            manifest: The manifest.

        Returns:
            The store with the manifest's images in the manifest's order.

        Raises:
            StoreError: If the store was made for other images, and does not hold all of these photographs.
        """
        ids = manifest.images["image_id"].to_numpy()
        own = self.fingerprint.get("images") == manifest.images_digest
        if own:
            rows = self.layout.find(self._whole("image_ids"), ids)
        else:  # by the photographs alone; features of boxes by image id are of no other manifest
            known = PHOTOGRAPH in manifest.images and "boxes" not in self.fingerprint.get("settings", ["boxes"])
            rows = ledger.rows_of_photographs(self.path, self.layout, manifest.images[PHOTOGRAPH].tolist()) \
                if known else np.array([ABSENT])
            if not len(rows) or (rows == ABSENT).any():
                raise StoreError(f"{self.path}: was made for another manifest's images; {self._renewed}")
        found = self if np.array_equal(rows, self.rows) else self._of(rows)
        if own and not self.layout.sizes and not np.array_equal(self.image_ids, ids):
            raise StoreError(f"{self.path}: its image ids are not the manifest's; run `pipeline verify`")
        changed = np.flatnonzero(found.done & ledger.other_files(found.columns("bytes"),
                                                                 manifest.images["bytes"].to_numpy()))
        if len(changed):
            raise StoreError(f"{self.path}: {len(changed)} image files changed since, the first "
                             f"{manifest.images['file'][changed[0]]}; {self._renewed}")
        found._manifest = manifest
        return found

    def _of(self, rows: np.ndarray | None = None) -> Self:
        """Open the same store with these rows."""
        return type(self)(self.path, rows)

    def _follow(self) -> None:
        """Read the store that took this one's place, if it holds the same features of the same images."""
        now = self._of()
        if self._manifest is None or (now.fingerprint, now.layout.dtype) != (self.fingerprint, self.layout.dtype):
            raise StoreError(f"{self.path}: was replaced while it was read; run the same command again")
        self.__dict__.update({**now.require(self._manifest).__dict__, "_reading": self._reading})

    @property
    def _renewed(self) -> str:
        """What a user must do to get the manifest's features: an imported store does not grow."""
        return "run `pipeline import` again with --if-changed redo" if imported(self.fingerprint) else \
            "run `pipeline extract`, which extracts what is new"

    def require_extracted(self, images: np.ndarray) -> None:
        """Check that images are in the store, done or failed.

        Args:
            images: Int64 [B].

        Raises:
            StoreError: If some were never extracted.
        """
        if absent := int((self.rows[images] == ABSENT).sum()):
            raise StoreError(f"{self.path}: {absent} of {len(images)} images are not extracted yet; run the same "
                             "`pipeline extract` without --split and --only, or for their split")

    @cached_property
    def identity(self) -> str:
        """SHA-256 over the fingerprint, the dtype and which images failed: what a head trained on it depends on."""
        return digest({"fingerprint": self.fingerprint, "dtype": self.layout.dtype,
                       "failed": np.flatnonzero(~self.done & (self.rows != ABSENT)).tolist()})

    def content(self, rows: np.ndarray, like: str = "") -> str:
        """Digest the ledger's record of some rows.

        Args:
            rows: Int64 [B].
            like: A digest that was recorded; the result has the same form, if possible.

        Returns:
            SHA-256, see `verify.content`.
        """
        self.require_extracted(rows)
        return verify.content(self.path, self.rows[rows], like)

    def check(self, rows: np.ndarray) -> None:
        """Check the bytes of the shards that hold some rows; it reads them once.

        Args:
            rows: Int64 [B].

        Raises:
            StoreError: If a file differs from the ledger.
        """
        self.require_extracted(rows)
        for file, _, found in verify.changed(self.path, self.rows[rows]):
            raise StoreError(f"{file}: {'its bytes have changed since they were written' if found else 'is missing'}; "
                             "run `pipeline verify --repair`")

    @property
    def width(self) -> int:
        """The last dimension of what `read` gives: D."""
        return self.layout.dimension

    @property
    def slots(self) -> int:
        """N, the most items of an image."""
        return self.layout.items

    @cached_property
    def image_ids(self) -> np.ndarray:
        """Image ids, int64 [M]."""
        return self.columns("image_ids")

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Find images by their ids.

        Args:
            ids: Int64 [B].

        Returns:
            Int64 [B], their rows as the other methods take them.

        Raises:
            StoreError: If the store does not hold one.
        """
        order = np.argsort(self.image_ids, kind="stable")
        places = np.minimum(np.searchsorted(self.image_ids, ids, sorter=order), len(order) - 1)
        rows = order[places]
        if len(absent := ids[self.image_ids[rows] != ids]):
            raise StoreError(f"{self.path}: holds no features of {absent[0]}; {self._renewed}")
        return rows

    @cached_property
    def counts(self) -> np.ndarray:
        """Valid items of each image, int32 [M]."""
        return self.columns("counts")

    @cached_property
    def done(self) -> np.ndarray:
        """Bool [M], True where the image has features; the others failed, or are absent, and must be left out.

        Raises:
            StoreError: If an image has no status.
        """
        status = self.columns("status")
        if not (np.isin(status, (DONE, FAILED)) | (self.rows == ABSENT)).all():
            raise StoreError(f"{self.path}: images without status; run `pipeline verify`")
        return status == DONE

    def columns(self, name: str) -> np.ndarray:
        """Read one of the arrays that hold a few numbers per image.

        Args:
            name: image_ids, counts, status, sizes or bytes.

        Returns:
            [M, ...], zero for absent images.
        """
        whole, stored = self._whole(name), self.rows != ABSENT
        column = np.zeros((len(self.rows), *whole.shape[1:]), whole.dtype)
        column[stored] = whole[self.rows[stored]]
        return column

    def _whole(self, name: str) -> np.ndarray:
        whole = ledger.column(self.path, name)
        if not self._folder.left():
            return whole
        self._follow()
        return self._whole(name)

    def read(self, rows: np.ndarray, out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Read the features of some images. Each image's values are checked when it is read for the first time.

        Args:
            rows: Int64 [B].
            out: An array to fill instead of a new one, of the result's shape and dtype, contiguous.

        Returns:
            Features [B, N, D] as stored, padding zero, and counts int64 [B]. N is the most items of an image in the
            store.

        Raises:
            IndexError: For rows out of range.
            ValueError: For failed images, or another shape of `out`.
            StoreError: For an image with a value that is not finite.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self.rows)):
            raise IndexError(f"rows: expected 0 to {len(self.rows) - 1}, got {rows.min()} to {rows.max()}")
        if not self.done[rows].all():
            self.require_extracted(rows)
            raise ValueError(f"row {rows[~self.done[rows]][0]} failed in extraction and has no features")
        shape = (len(rows), self.layout.items, self.layout.dimension)
        if out is None:
            out = np.empty(shape, self.layout.dtype)
        elif out.shape != shape or out.dtype != self.layout.dtype or not out.flags.c_contiguous:
            raise ValueError(f"out: expected contiguous {self.layout.dtype} {shape}, got {out.dtype} {out.shape}")
        counts = self.counts[rows].astype(np.int64)
        self._fill("features", rows, counts, out)
        stored = self.rows[rows]  # once `_fill` has followed the store
        if not self._finite[stored].all():
            for row, image in zip(stored, out, strict=True):
                if not self._finite[row] and not shard_file.all_finite(image):
                    item = int(np.argmin(np.isfinite(image).all(axis=1)))
                    raise StoreError(f"{self.path}: image {self._whole('image_ids')[row]} (row {row}) has a value that "
                                     f"is not finite in item {item}; `pipeline verify` says whether the store was "
                                     "damaged; extract or import it again")
            self._finite[stored] = True
        return out, counts

    def extra(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Read another array (boxes, scores, ...) of some images.

        Args:
            name: The array.
            rows: Int64 [B].

        Returns:
            [B, N, ...], padding zero.
        """
        shape, dtype = self.layout.arrays()[name]
        out = np.empty((len(rows), *shape), dtype)
        self._fill(name, np.asarray(rows), np.full(len(rows), self.layout.items), out)
        return out

    def items(self, image: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Read all that the store holds of an image's items.

        Args:
            image: Its number.

        Returns:
            Features [n, D] as stored, and name -> [n, ...] of the other arrays.
        """
        row = np.array([image])
        features, (count,) = self.read(row)
        return features[0, :count], {name: self.extra(name, row)[0, :count] for name in self.layout.extras}

    def _fill(self, name: str, images: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
        with self._reading:
            try:
                self._fill_rows(name, self.rows[images], counts, out)
            except OSError as error:
                if not self._folder.left():
                    raise StoreError(f"{self.path}/{error.filename}: cannot be read ({error.strerror}); run `pipeline "
                                     "verify --repair`") from None
                self._follow()
                self._fill(name, images, counts, out)

    def _fill_rows(self, name: str, rows: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
        if not len(out):
            return
        whole, size = out.data.cast("B"), out.nbytes // len(out)
        valid = (counts * (size // out.shape[1])).tolist()
        for place in np.argsort(rows, kind="stable").tolist():
            shard, image = divmod(int(rows[place]), self.layout.shard_images)
            descriptor = self._folder.shard(name, shard, out.ndim)
            offset, length = self._index(descriptor, name, shard)[image].tolist()
            self._chunk(descriptor, offset, length, whole[place * size:(place + 1) * size], valid[place])

    def _chunk(self, descriptor: int, offset: int, length: int, target: memoryview, valid: int) -> None:
        if self.layout.compressor == "zstd":
            with refusing((RuntimeError, ValueError), f"{self.path}: a chunk is damaged; run `pipeline verify "
                          "--repair`", StoreError):
                shard_file.take(os.pread(descriptor, length, offset), "zstd", target)
            return
        if length != len(target) or os.preadv(descriptor, [target[:valid]], offset) != valid:
            raise StoreError(f"{self.path}: a chunk is cut short; run `pipeline verify --repair`")
        if valid < length:
            target[valid:] = bytes(length - valid)

    def _index(self, descriptor: int, name: str, shard: int) -> np.ndarray:
        """A shard's index: [S, 2] uint64 offset and length of each image's chunk."""
        if (name, shard) not in self._indices:
            index = shard_file.read_index(descriptor, self.layout.shard_images)
            if index is None or (index[:len(self.layout.rows(shard))] == shard_file.MISSING).any():
                raise StoreError(f"{self.path}: shard {shard} of {name} is damaged; run `pipeline verify --repair`")
            self._indices[name, shard] = index
        return self._indices[name, shard]


class _Folder:
    """An open folder, which stays the same one when another folder is moved to its path, and files in it.

    The files that were read last stay open: opening one takes as long as reading half an image.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._files: dict[tuple[str, int], int] = {}
        weakref.finalize(self, _close, self._descriptor, self._files)

    def shard(self, name: str, shard: int, dimensions: int) -> int:
        """A descriptor of an array's shard, which stays open until the next call at least."""
        descriptor = self._files.pop((name, shard), None)
        if descriptor is None:
            descriptor = os.open(ledger.shard_file(Path(), name, shard, dimensions), os.O_RDONLY,
                                 dir_fd=self._descriptor)
            if len(self._files) >= OPEN:
                os.close(self._files.pop(next(iter(self._files))))
        self._files[name, shard] = descriptor
        return descriptor

    def left(self) -> bool:
        """Whether another folder is at its path, or for a moment none."""
        try:
            return not os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return True


def _close(folder: int, files: dict[tuple[str, int], int]) -> None:
    for descriptor in (folder, *files.values()):
        os.close(descriptor)


def provenance(store: FeatureStore) -> dict[str, Any]:
    """Summarise what made a store, for the records of results.

    Args:
        store: The store.

    Returns:
        Those of recipe, engine, weights and trained that its fingerprint holds.
    """
    keys = ("recipe", "engine", "weights", "trained")
    return {key: store.fingerprint[key] for key in keys if key in store.fingerprint}

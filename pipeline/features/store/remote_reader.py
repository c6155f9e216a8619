"""Read a store in an object store: its description is copied here, and rows are read by ranges of
bytes.
"""

from pathlib import Path
from typing import Self

import numpy as np

from pipeline.features.store import ledger, remote_store, shard_file
from pipeline.features.store.layout import StoreError
from pipeline.features.store.reader import FeatureStore
from pipeline.files import remote
from pipeline.parts.errors import refusing

# The most bytes between two rows of a shard that are read with them; another request would take
# about as long.
GAP = 8_000_000


class RemoteFeatureStore(FeatureStore):
    """A finished store in an object store, read as `FeatureStore` is. local: the folder for its
    description.
    """

    # A batch costs a request for each shard that it touches, or a few if its rows are far apart in
    # it. A compressed store costs one more request for the index of each shard. The description is
    # a few numbers per row; existing files are not downloaded again.

    def __init__(self, store: Path, local: Path, rows: np.ndarray | None = None) -> None:
        self.store, self.local, folder = store, local, remote_store.own_folder(store, local)
        self.sizes = remote_store.describe(store, folder)
        super().__init__(folder, rows)

    def _of(self, rows: np.ndarray | None = None) -> Self:
        return type(self)(self.store, self.local, rows)

    def _continue_with(self, successor: Self) -> None:
        super()._continue_with(successor)
        self.sizes = successor.sizes

    def _fill_rows(self, name: str, rows: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
        order, size = np.argsort(rows, kind="stable"), self.layout.shard_rows
        shards = np.unique(rows // size).tolist()
        files = {
            shard: ledger.shard_file(Path(), name, shard, out.ndim).as_posix() for shard in shards
        }
        if self.layout.compressor == "none":
            chunk = out[:1].nbytes
            start, length = rows % size * chunk, np.full(len(rows), chunk)
        else:
            self._read_indices(name, files)
            start, length = (
                np.array(
                    [self._opened.indices[name, row // size][row % size] for row in rows.tolist()],
                    np.int64,
                )
                .reshape(-1, 2)
                .T
            )
        apart = (np.diff(rows[order] // size) != 0) | (np.diff(start[order]) > GAP)
        together = [each for each in np.split(order, np.flatnonzero(apart) + 1) if len(each)]
        ranges = [
            (
                files[int(rows[each[0]]) // size],
                int(start[each[0]]),
                int(start[each[-1]] + length[each[-1]]),
            )
            for each in together
        ]
        contents = self._read(ranges)
        for each, (file, first, _), content in zip(together, ranges, contents, strict=True):
            for place in each.tolist():
                here = int(start[place]) - first
                self._take(content[here : here + int(length[place])], out[place], file)

    def _read_indices(self, name: str, files: dict[int, str]) -> None:
        lacking = [shard for shard in files if (name, shard) not in self._opened.indices]
        ends = [self.sizes.get(files[shard], 0) for shard in lacking]
        tail = self.layout.shard_rows * 16 + shard_file.CRC
        ranges = [
            (files[shard], max(0, end - tail), end)
            for shard, end in zip(lacking, ends, strict=True)
        ]
        for shard, end, raw in zip(lacking, ends, self._read(ranges), strict=True):
            with refusing(ValueError, self._damaged(files[shard]), StoreError):
                self._opened.indices[name, shard] = shard_file.index_of(
                    raw, self.layout.shard_rows, len(self.layout.rows(shard)), end
                )

    def _read(self, ranges: list[tuple[str, int, int]]) -> list[bytes]:
        with refusing(
            OSError,
            lambda error: f"{remote.address(self.store)}: cannot be read ({error})",
            StoreError,
        ):
            return remote.read_ranges(self.store, ranges)

    def _take(self, chunk: bytes, out: np.ndarray, file: str) -> None:
        with refusing((RuntimeError, ValueError), self._damaged(file), StoreError):
            shard_file.take(chunk, self.layout.compressor, memoryview(out.data).cast("B"))

    def _damaged(self, file: str) -> str:
        return f"{remote.address(self.store)}/{file}: is damaged; make it again where it was made"

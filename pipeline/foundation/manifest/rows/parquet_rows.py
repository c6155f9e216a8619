"""Parquet with images' bytes, as img2dataset and Hugging Face's datasets write it, or with their
names or addresses.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pipeline.foundation.files import containers
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import table
from pipeline.foundation.manifest.rows.row_file import Batch, RowFile
from pipeline.foundation.parts.errors import refusing


class ParquetRows(RowFile):
    """A Parquet file, see `row_file.RowFile`; its images' names begin with `name`, its path below
    their folder.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self._name = name or path.name
        with refusing((OSError, ValueError), str):
            opened = containers.opened(path)
            assert isinstance(opened, containers.Parquet)
            self._file = opened
            self.names = opened.columns
            self.images = None
            if opened.column and opened.sizes():
                self.images = opened.columns.index(opened.column)
                self.by_cells = {"image": self.images}
        self.title = "Parquet"
        if opened.is_of_hugging_face:
            self.title = "Parquet of Hugging Face's datasets"
        with self._readable():
            readable = [column for column in range(len(self.names)) if column != self.images]
            batch = next(opened.batches(readable, 1), [])
        first_cells = {}
        for column, values in zip(readable, batch, strict=False):
            if values:
                first_cells[column] = values[0]
        self.first: Sequence[Any] = []
        if first_cells:
            self.first = [first_cells.get(column) for column in range(len(self.names))]

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        plain_columns = [column for column in columns if column != self.images]
        sizes = self._file.sizes() if self.images in columns else {}
        first_row = 0
        with self._readable():
            for cells_of_columns in self._file.batches(plain_columns, table.AT_ONCE):
                rows = range(first_row, first_row + len(cells_of_columns[0]))
                image_names = [f"{self._name}/{row}" if str(row) in sizes else None for row in rows]
                of_column = dict(zip(plain_columns, cells_of_columns, strict=True))
                if self.images is not None:
                    of_column[self.images] = image_names
                yield Batch(rows, [of_column[column] for column in columns])
                first_row = rows.stop

    def _readable(self) -> AbstractContextManager[None]:
        """Refuse a file that is no Parquet."""
        path = self.path
        return refusing(
            (OSError, ValueError), lambda error: f"{path}: not readable as Parquet ({error})"
        )

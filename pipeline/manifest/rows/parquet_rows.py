"""Parquet with images' bytes, as img2dataset and Hugging Face's datasets write it, or with their
names or addresses.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.files import containers
from pipeline.files.left_out import LeftOut
from pipeline.manifest import table
from pipeline.manifest.rows.row_file import Batch, RowFile
from pipeline.parts.errors import refusing


class ParquetRows(RowFile):
    """A Parquet file, see `row_file.RowFile`; its images' names begin with `name`, its path below
    their folder.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path, self._name = path, name or path.name
        with refusing((OSError, ValueError), str):
            opened = containers.opened(path)
            assert isinstance(opened, containers.Parquet)
            self._file, self.names = opened, opened.columns
            self.images = (
                opened.columns.index(opened.column) if opened.column and opened.sizes() else None
            )
        self.title = "Parquet" + (
            " of Hugging Face's datasets" if opened.is_of_hugging_face else ""
        )
        with refusing(
            (OSError, ValueError), lambda error: f"{path}: not readable as Parquet ({error})"
        ):
            readable = [column for column in range(len(self.names)) if column != self.images]
            first = next(opened.batches(readable, 1), [])
            self.first: Sequence[Any] = [values[0] for values in first if values]

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        plain = [column for column in columns if column != self.images]
        sizes = self._file.sizes() if self.images in columns else {}
        first = 0
        with refusing(
            (OSError, ValueError), lambda error: f"{self.path}: not readable as Parquet ({error})"
        ):
            for values in self._file.batches(plain, table.AT_ONCE):
                rows = range(first, first + len(values[0]))
                names = [f"{self._name}/{row}" if str(row) in sizes else None for row in rows]
                of_column = dict(zip(plain, values, strict=True))
                yield Batch(
                    rows,
                    [names if column == self.images else of_column[column] for column in columns],
                )
                first = rows.stop

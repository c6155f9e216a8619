"""What files of rows have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.foundation.files.left_out import LeftOut


class Batch(NamedTuple):
    """Some rows: where each is in the file, such as line 7, and the values of the requested
    columns.
    """

    places: Sequence[int]
    columns: list[list[Any]]


class RowFile(ABC):
    """A file with columns, read some rows at a time."""

    path: Path
    title: str  # Its format, for messages, such as "CSV separated by ;, UTF-8"
    names: Sequence[str]
    first: Sequence[Any]  # The values of its first row, for messages
    # Role -> the column whose cells show that it has it, whatever its name.
    by_cells: Mapping[str, int] = {}
    images: int | None = None  # The column of images' bytes; None if images are files of their own
    unit: str = "row"  # What `Batch.places` count, "line" or "row"

    @abstractmethod
    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read some columns, given by number, at most `AT_ONCE` rows at a time; left_out gets what
        cannot be read.
        """
        # Of the column `images`, the values are names of images, None for a row that has none.

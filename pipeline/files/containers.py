"""Files of many images: WebDataset's tars and Parquet, as img2dataset writes them, here or in an object store.

An image in one is a path below it: `00000.tar/000000042.jpg`, or its row, `00000.parquet/42`. Nothing is unpacked. A
file of an object store is brought here whole, for its images are read one after another.
"""

import errno
import os
import tarfile
import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from pipeline.files import remote

SUFFIXES = (".tar", ".parquet")
IMAGE_COLUMNS = ("jpg", "jpeg", "png", "webp", "image", "img", "bytes")
"""Columns of Parquet in which images are looked for; one may be a struct with a field `bytes`, as of Hugging Face."""
OPEN = 4  # files that a process keeps open
LARGEST = 1 << 28  # bytes of a member that are read; a damaged header may tell of more
FRESH = 60.0  # seconds for which a file of an object store is taken for unchanged


class Container(Protocol):
    """An open file of many images."""

    def read(self, name: str) -> bytes:
        """Read an image.

        Args:
            name: Its name in the file.

        Returns:
            Its bytes.

        Raises:
            OSError: If it is not there or cannot be read.
        """
        ...

    def sizes(self) -> dict[str, int]:
        """List the images.

        Returns:
            Name -> size in bytes, in the file's order.
        """
        ...


class Tar:
    """An uncompressed tar.

    Args:
        file: A file of this machine.
    """

    def __init__(self, file: Path) -> None:
        self._file = file.open("rb")
        self._members: dict[str, tuple[int, int]] = {}
        with tarfile.open(fileobj=self._file, mode="r:") as members:
            for member in members:
                name = member.name.removeprefix("./")
                if member.isreg() and name in self._members:
                    raise ValueError(f"holds {name!a} twice")
                if member.isreg():
                    self._members[name] = member.offset_data, member.size

    def read(self, name: str) -> bytes:
        """Read an image, see `Container.read`."""
        if name not in self._members:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        offset, size = self._members[name]
        if size > LARGEST:
            raise OSError(errno.EFBIG, f"has {size:,} bytes, more than {LARGEST:,}", name)
        return os.pread(self._file.fileno(), size, offset)

    def sizes(self) -> dict[str, int]:
        """List the members, see `Container.sizes`."""
        return {name: size for name, (_, size) in self._members.items()}


class Parquet:
    """A Parquet file with a column of images' bytes.

    Args:
        file: A file of this machine.

    Raises:
        OSError: If there is no such column.
    """

    def __init__(self, file: Path) -> None:
        from pyarrow import parquet

        self._file: Any = parquet.ParquetFile(file)
        self.columns: list[str] = self._file.schema_arrow.names
        self.column = next((name for name in IMAGE_COLUMNS if name in self.columns and self._holds_bytes(name)), None)
        counts = [self._file.metadata.row_group(group).num_rows for group in range(self._file.num_row_groups)]
        self._ends = list(accumulate(counts))
        self._lock = threading.Lock()
        self._group: tuple[int, Any] = (-1, None)
        self._sizes: dict[str, int] = {}

    def _holds_bytes(self, name: str) -> bool:
        from pyarrow import types

        kind = self._file.schema_arrow.field(name).type
        if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            kind = kind.field("bytes").type
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    def read(self, name: str) -> bytes:
        """Read the image of a row, see `Container.read`."""
        row = int(name) if name.isdecimal() else -1
        if not 0 <= row < max(self._ends, default=0):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        group = bisect_right(self._ends, row)
        with self._lock:
            if self._group[0] != group:
                self._group = group, self._read(group)
            found = self._group[1][row - (self._ends[group - 1] if group else 0)].as_py()
        content = found.get("bytes") if isinstance(found, dict) else found
        if content is None:
            raise OSError(errno.ENODATA, "the row has no image", name)
        return bytes(content)

    def _read(self, group: int) -> Any:
        if self.column is None:
            raise OSError(f"no column of images' bytes; expected one of {', '.join(IMAGE_COLUMNS)}, "
                          f"got {', '.join(self.columns)}")
        return self._file.read_row_group(group, columns=[self.column]).column(0)

    def sizes(self) -> dict[str, int]:
        """List the rows that have an image, see `Container.sizes`."""
        found, first = self._sizes, 0
        for group in range(0 if found else self._file.num_row_groups):
            values = self._read(group)
            for place, value in enumerate(values):
                content = value.as_py()
                content = content.get("bytes") if isinstance(content, dict) else content
                if content is not None:
                    found[str(first + place)] = len(content)
            first += len(values)
        return found

    def texts(self, names: list[str]) -> dict[str, list[Any]]:
        """Read columns whole.

        Args:
            names: The columns.

        Returns:
            Column -> its values.
        """
        found: dict[str, list[Any]] = self._file.read(columns=names).to_pydict()
        return found


_opening = threading.Lock()
_opened: OrderedDict[tuple[str, int], Container] = OrderedDict()
_looked_at: dict[str, tuple[float, Path]] = {}  # a file of an object store -> when, and its copy


def inside(path: Path) -> tuple[Path, str] | None:
    """Split the path of an image that lies in a container.

    Args:
        path: A path.

    Returns:
        The container, and the image's name in it; None for a path that has no container in it.
    """
    if not any(suffix in str(path).lower() for suffix in SUFFIXES):
        return None  # soon said of a million photographs
    for place, part in enumerate(path.parts[:-1]):
        container = Path(*path.parts[:place + 1])
        if part.lower().endswith(SUFFIXES) and (remote.address(path) or container.is_file()):
            return container, "/".join(path.parts[place + 1:])
    return None


def sizes(folder: Path, files: list[str]) -> dict[str, int]:
    """Look up the sizes of images that lie in containers or in an object store.

    Args:
        folder: The folder of images.
        files: Their paths below it.

    Returns:
        File -> size in bytes, -1 for one that is not there. Plain files of this machine are left out.

    Raises:
        OSError: If a container cannot be read.
    """
    listed = remote.listed(folder) if remote.address(folder) else None
    found = {}
    for file in files:
        within = inside(folder / file)
        if within is not None:
            found[file] = opened(within[0]).sizes().get(within[1], -1)
        elif listed is not None:
            found[file] = listed.get(file, -1)
    return found


def opened(path: Path) -> Container:
    """Open a container, once in a process while it is in use and unchanged.

    Args:
        path: The file.

    Returns:
        The container.

    Raises:
        OSError: If it cannot be read.
    """
    with _opening:
        file = _here(path)
        key = str(file), file.stat().st_mtime_ns if file is path else 0
        if key not in _opened:
            try:
                _opened[key] = Tar(file) if path.suffix.lower() == ".tar" else Parquet(file)
            except (tarfile.TarError, ValueError, EOFError) as error:  # pyarrow's errors are ValueErrors
                raise OSError(f"{path}: not readable as {path.suffix[1:]} ({error})".splitlines()[0]) from None
        _opened.move_to_end(key)
        while len(_opened) > OPEN:
            _opened.popitem(last=False)
        return _opened[key]


def _here(path: Path) -> Path:
    where = remote.address(path)
    if where is None:
        return path
    when, file = _looked_at.get(where, (-FRESH, path))
    if time.monotonic() - when < FRESH and (str(file), 0) in _opened:
        return file
    file = remote.copy(path)
    _looked_at[where] = time.monotonic(), file
    return file

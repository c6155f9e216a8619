"""Files of many images: WebDataset's tars and Parquet, as img2dataset writes them, here or in an
object store.

An image's path continues that of its file: `00000.tar/000000042.jpg`, or the row,
`00000.parquet/42`. Nothing is unpacked. A file of an object store is downloaded whole, because its
images are read one after another.
"""

import errno
import os
import re
import tarfile
import threading
import time
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from pipeline.foundation.files import archives, remote, unfetched
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.parts.errors import refusing

SUFFIXES = (".tar", ".parquet")
PACKED = re.compile("|".join(map(re.escape, SUFFIXES)), re.IGNORECASE)
# Columns of Parquet in which images are looked for; one may be a struct with a field `bytes`, as of
# Hugging Face.
IMAGE_COLUMNS = (
    "jpg",
    "jpeg",
    "png",
    "webp",
    "image",
    "images",
    "img",
    "bytes",
    "imagebytes",
    "imgbytes",
)
MOST_COLUMNS = 10_000  # of a table of captions
OBJECT = 64  # bytes of a value of a list, beside its content, while it is read
ROWS = 256  # rows of Parquet that are decoded at once
OPEN = 4  # files that a process keeps open
LARGEST = 1 << 28  # bytes of the largest member that is read; a damaged header may claim more
FRESH = 60.0  # seconds for which a file of an object store is assumed to be unchanged


class Tar:
    """An uncompressed tar of this machine."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("rb")
        self._members: dict[str, tuple[int, int]] = {}
        self._with_holes = set[str]()
        headers: Any = archives.Headers(self._file)
        with tarfile.open(fileobj=headers, mode="r:") as members:
            for member in members:
                name = member.name.removeprefix("./")
                if member.isreg() and name in self._members:
                    raise ValueError(f"holds {name!a} twice")
                if member.issparse():
                    self._with_holes.add(name)
                if member.isreg():
                    self._members[name] = member.offset_data, member.size

    def read(self, name: str) -> bytes:
        """Read an image by its name in the file."""
        if name not in self._members:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if name in self._with_holes:
            raise OSError(
                errno.EINVAL, "is stored with holes, tar's --sparse, which is not read", name
            )
        offset, size = self._members[name]
        if size > LARGEST:
            raise OSError(errno.EFBIG, f"has {size:,} bytes, more than {LARGEST:,}", name)
        return os.pread(self._file.fileno(), size, offset)

    def sizes(self) -> dict[str, int]:
        """List name -> size in bytes, in the file's order."""
        return {name: size for name, (_, size) in self._members.items()}


class Parquet:
    """A Parquet file of this machine with a column of images' bytes."""

    def __init__(self, file: Path) -> None:
        from pyarrow import parquet

        self._path = file
        metadata = parquet.read_metadata(file)
        if metadata.num_columns > MOST_COLUMNS:
            raise ValueError(
                f"has {metadata.num_columns:,} columns, more than {MOST_COLUMNS:,}; leave those of images "
                "and captions"
            )
        self._file: Any = parquet.ParquetFile(file, metadata=metadata)
        self._schema: Any = self._file.schema_arrow
        self.columns: list[str] = self._schema.names
        for name, count in Counter(self.columns).most_common(1):
            if count > 1:
                raise ValueError(f"has {count} columns called {name[:40]!a}; leave one")
        known = {
            name.lower().replace("_", ""): name
            for name in reversed(self.columns)
            if self._holds_bytes(name)
        }
        self.column = next((known[name] for name in IMAGE_COLUMNS if name in known), None)
        counts = [
            self._file.metadata.row_group(group).num_rows
            for group in range(self._file.num_row_groups)
        ]
        self._ends = list(accumulate(counts))
        self._lock = threading.Lock()
        self._group: tuple[int, Any] = (-1, None)
        self._sizes: dict[str, int] = {}

    def _holds_bytes(self, name: str) -> bool:
        from pyarrow import types

        kind = self._schema.field(name).type
        if types.is_list(kind) or types.is_large_list(kind):
            kind = kind.value_type  # of a list of images, the first is meant
        if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            kind = kind.field("bytes").type
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    def read(self, name: str) -> bytes:
        """Read the image of a row, as `Tar.read`."""
        row = int(name) if name.isdecimal() else -1
        if not 0 <= row < max(self._ends, default=0):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        group = bisect_right(self._ends, row)
        with self._lock:
            if self._group[0] != group:
                self._group = group, self._read(group)
            content = self._group[1][row - (self._ends[group - 1] if group else 0)].as_py()
        if content is None:
            raise OSError(errno.ENODATA, "the row has no image", name)
        return bytes(content)

    def _read(self, group: int) -> Any:
        import pyarrow as pa
        from pyarrow import compute, types

        if self.column is None:
            raise OSError(
                f"no column of images; expected {', '.join(IMAGE_COLUMNS)}, got {', '.join(self.columns)}"
            )
        kind = self._file.schema_arrow.field(self.columns.index(self.column)).type
        batches = self._batches([self.column], ROWS, [group])
        values = pa.chunked_array([batch.column(0) for batch in batches], kind)
        if types.is_list(values.type) or types.is_large_list(values.type):
            some = compute.if_else(
                compute.greater(compute.list_value_length(values), 0), values, None
            )
            values = compute.list_element(compute.fill_null(some, [None]), 0)
        return compute.struct_field(values, "bytes") if types.is_struct(values.type) else values

    def sizes(self) -> dict[str, int]:
        """List the rows that have an image, as `Tar.sizes`."""
        from pyarrow import compute

        if not self._sizes:
            groups = (
                compute.binary_length(self._read(group))
                for group in range(self._file.num_row_groups)
            )
            lengths = enumerate(length.as_py() for group in groups for length in group)
            self._sizes = {str(row): length for row, length in lengths if length is not None}
        return self._sizes

    @property
    def is_of_hugging_face(self) -> bool:
        """Whether the library `datasets` wrote it."""
        return b"huggingface" in (self._file.schema_arrow.metadata or {})

    def batches(self, columns: Sequence[int], rows: int) -> Iterator[list[list[Any]]]:
        """Read columns, given by their numbers: the values of at most so many rows at a time."""
        names = [self.columns[column] for column in columns]
        values: list[list[Any]] = [[] for _ in names]
        read = 0
        at_once = min(rows, ROWS)
        for batch in self._batches(names, at_once):
            for column, name in zip(values, names, strict=True):
                column += _plain(batch.column(name))
            read += len(batch)
            if read + at_once > rows:
                yield values
                values = [[] for _ in names]
                read = 0
        if read:
            yield values

    def _batches(
        self, names: Sequence[str], rows: int, groups: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Read columns so many rows at a time; InputError where values repeat beyond the bound."""
        import pyarrow as pa

        expansion = Expansion(self._path, "write it again with fewer or smaller values")
        for batch in self._file.iter_batches(rows, row_groups=groups, columns=list(names)):
            for column in batch.columns:
                is_coded = pa.types.is_dictionary(column.type)
                values = column.dictionary_decode() if is_coded else column
                is_of_lists = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
                of_lists = len(column.flatten()) if is_of_lists else 0
                expansion.take(values.nbytes + OBJECT * of_lists)
            yield batch


def _plain(values: Any) -> list[Any]:
    """A column's values; ValueError for days and times that Python does not have."""
    with refusing(OverflowError, str, ValueError):
        plain: list[Any] = values.to_pylist()
    return plain


# An open file of many images.
Container = Tar | Parquet
_opening = threading.Lock()
_opened: OrderedDict[tuple[str, int], Container] = OrderedDict()
_looked_at: dict[str, tuple[float, Path]] = {}  # a file of an object store -> when, and its copy


def inside(path: Path | str) -> tuple[Path, str] | None:
    """Split the path of an image in a container into the container and the name in it; None for
    another path.
    """
    if not PACKED.search(str(path)):
        return None  # soon said of a million photographs
    path = Path(path)
    for place, part in enumerate(path.parts[:-1]):
        container = Path(*path.parts[: place + 1])
        if part.lower().endswith(SUFFIXES) and (remote.address(path) or container.is_file()):
            return container, "/".join(path.parts[place + 1 :])
    return None


def sizes(folder: Path, files: list[str]) -> dict[str, int]:
    """The sizes in bytes of images in containers or an object store, -1 for a missing one; plain
    files are left out.
    """
    listed = remote.listed(folder) if remote.address(folder) else None
    bytes_of = {}
    base = str(folder)
    for file in files:
        within = inside(f"{base}/{file}")
        if within is not None:
            bytes_of[file] = opened(within[0]).sizes().get(within[1], -1)
        elif listed is not None:
            bytes_of[file] = listed.get(file, -1)
    return bytes_of


def opened(path: Path) -> Container:
    """Open a container, or return it if this process has it open and it is unchanged; OSError if it
    cannot be read.
    """
    with _opening:
        file = _here(path)
        if file is path and not path.exists():
            what = unfetched.stand_in(path)
            if what:
                raise OSError(f"{path}: is {what}")
        modified = 0
        if file is path:
            modified = file.stat().st_mtime_ns
        key = (str(file), modified)
        if key not in _opened:
            try:
                if path.suffix.lower() == ".tar":
                    _opened[key] = Tar(file)
                else:
                    _opened[key] = Parquet(file)
            # pyarrow's errors are ValueErrors, or OSErrors without a number.
            except (tarfile.TarError, ValueError, EOFError, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                wrong = f"not readable as {path.suffix[1:]} ({error})".splitlines()[0]
                what = unfetched.stand_in(file)
                if what:
                    wrong = f"is {what}"
                raise OSError(f"{path}: {wrong}") from None
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

"""A manifest's file: one Parquet table, whose columns are read when they are needed, some rows at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.foundation.files import remote
from pipeline.foundation.manifest.columns import AT_ONCE, columns_of
from pipeline.foundation.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet


class TableFile:
    """The rows of a manifest in its file, which stays open: a file that replaces it is not read."""

    def __init__(self, file: Path, path: Path) -> None:
        from pyarrow import parquet

        self.path = path  # for messages: `file` may be a copy from an object store
        self.opened: parquet.ParquetFile = parquet.ParquetFile(file)
        self.columns: list[str] = self.opened.schema_arrow.names
        if not self.opened.metadata.num_rows:
            raise no_manifest(path, "it has no rows")
        self.types = {field.name: self._type(field) for field in self.opened.schema_arrow}

    def _type(self, field: pa.Field) -> pa.DataType:
        """The type of a manifest's column. The file may have another type of the same values;
        others are refused.
        """
        import pyarrow as pa

        stored_type = field.type
        if pa.types.is_dictionary(stored_type):
            stored_type = stored_type.value_type
        manifest_type = columns_of(self.columns).get(field.name)
        is_text = pa.types.is_string(stored_type) or pa.types.is_large_string(stored_type)
        if manifest_type in (None, "str") and is_text:
            return stored_type
        if manifest_type in (None, "int64") and pa.types.is_signed_integer(stored_type):
            return pa.int64()
        if manifest_type in (None, "float64") and pa.types.is_floating(stored_type):
            return pa.float64()
        raise no_manifest(self.path, f"its column {field.name} is of type {field.type}")

    def read(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns, some rows at a time."""
        import pyarrow as pa

        rows = 0
        with manifest_at(self.path):
            for batch in self.opened.iter_batches(AT_ONCE, columns=list(columns)):
                # pandas' metadata in the file is ignored
                values = {name: batch.column(name).cast(self.types[name]) for name in columns}
                table = pa.table(values)
                table.validate(full=True)
                for name in columns:
                    if table[name].null_count and name not in ("start", "end"):
                        raise no_manifest(self.path, f"a row has no {name}")
                rows += len(table)
                yield table.to_pandas()
        if rows != self.opened.metadata.num_rows:
            raise no_manifest(self.path)

    def __reduce__(self) -> tuple[Callable[[Path], TableFile], tuple[Path]]:
        return _reopened, (self.path,)


def _reopened(path: Path) -> TableFile:
    file = remote.copy(path) if remote.address(path) else path
    return TableFile(file, path)


def manifest_at(path: Path) -> AbstractContextManager[None]:
    """Refuse a file that is no manifest."""
    import pyarrow as pa

    return refusing(
        (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException),
        str(no_manifest(path)),
    )


def no_manifest(path: Path, why: str = "") -> InputError:
    """Say that a file is no manifest, and why."""
    if why:
        why = f", {why}"
    return InputError(f"{path}: not a manifest{why}; make it with `pipeline manifest`")

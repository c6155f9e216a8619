"""Columns of a table: ids as whole numbers or texts, numbers as they are stored, and lists of the
best as rows.
"""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.files import regular
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

# The whole numbers up to here are the same in float64.
EXACT = 1 << 53
MOST_COLUMNS = 50_000  # of a matrix, and of a table


def opened(path: Path, expansion: Expansion) -> "parquet.ParquetFile":
    """Open a file of Parquet whose texts are read as dictionaries, however often one repeats.

    InputError if it has two columns of one name, or texts beyond the bound.
    """
    from pyarrow import parquet

    # pyarrow would wait for the writer of a pipe, deaf to signals
    with refusing(regular.NoRegularFile, f"{path}: is no regular file; name a file"):
        regular.require(path)
    metadata = parquet.read_metadata(path)
    if metadata.num_columns > MOST_COLUMNS:
        raise InputError(
            f"{path}: has {metadata.num_columns:,} columns, more than {MOST_COLUMNS:,}; save the matrix as "
            ".npy"
        )
    top_level = {*metadata.schema.names}
    texts = set[str]()
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            if chunk.physical_type == "BYTE_ARRAY":
                expansion.require(chunk.total_uncompressed_size)
                texts |= {chunk.path_in_schema} & top_level
    file = parquet.ParquetFile(path, read_dictionary=sorted(texts))
    names = Counter(file.schema_arrow.names)
    if len(names) < names.total():
        name, count = names.most_common(1)[0]
        raise InputError(f"{path}: has {count} columns called {name[:40]!a}; leave one")
    return file


def decoded(column: "pa.ChunkedArray", expansion: Expansion) -> "pa.ChunkedArray":
    """A column whose texts are no dictionary, if they are within the bound."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    if is_text(kind) or pa.types.is_binary(kind):
        expansion.require(sum(map(_length, column.chunks)))
    return column.cast(kind)


def _length(chunk: "pa.DictionaryArray") -> int:
    """The bytes of all texts of a dictionary's array."""
    from pyarrow import compute

    lengths = compute.take(compute.binary_length(chunk.dictionary), chunk.indices)
    total = compute.sum(compute.cast(lengths, "int64"))
    return int(total.as_py() or 0)


def ids(column: "pa.ChunkedArray", what: str) -> "pa.ChunkedArray":
    """A column of ids as int64 or text, "" where one is missing. Whole numbers that were stored as
    floats, as pandas does where one is missing, are read as such; InputError for other values.
    """
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_unsigned_integer(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise _unlike(what, column, f"ids are whole numbers or texts ({error})") from None
    elif not (pa.types.is_integer(kind) or is_text(kind)):
        raise _unlike(what, column, "expected whole numbers or texts")
    if column.null_count == 0 and not is_text(column.type):
        return column.cast(pa.int64())
    return compute.fill_null(column.cast(pa.string()), "")


def is_text(kind: "pa.DataType") -> bool:
    """Whether a column holds texts, or texts by number."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    kinds = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return any(is_kind(kind) for is_kind in kinds)


def numbers(column: "pa.ChunkedArray", what: str) -> np.ndarray:
    """A column of numbers in the type that it is stored in, NaN where one is missing; InputError
    for other values.
    """
    import pyarrow as pa

    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise _unlike(what, column, "expected numbers")
    values: np.ndarray = column.to_numpy()
    return values


def as_floats(values: np.ndarray, what: str) -> Floats:
    """Numbers as float64, which must hold each whole one exactly."""
    if values.dtype.kind in "iuO" and len(values):
        largest = max(abs(int(values.min())), abs(int(values.max())))
        if largest > EXACT:
            raise InputError(
                f"{what} holds whole numbers beyond 2^53, such as {largest}, whose order float64 does not "
                "keep: scale them"
            )
    return values.astype(np.float64)


def in_rows(table: "pa.Table", spelt: Mapping[str, str], first_row: int, value: str) -> "pa.Table":
    """A table whose cells hold lists of candidates, and their scores in the same order, with a row
    for each candidate.

    spelt: what the file calls each column. first_row: the number of the first row, for messages.
        value: the column of scores.
    """
    import pyarrow as pa
    from pyarrow import compute

    lists = {}
    sizes = {}
    for name in table.column_names:
        if _is_list(table[name].type):
            lists[name] = _as_list(table[name])
            lengths = compute.list_value_length(lists[name])
            sizes[name] = compute.fill_null(lengths, 0).to_numpy()
    if not lists:
        return table
    first, *others = lists
    if value in table.column_names and (value not in lists or not others):
        alone = value
        if value not in lists:
            alone = first
        raise InputError(
            f"only its column {spelt[alone]} holds lists: candidates and their scores are listed in the same "
            "order"
        )
    for name in others:
        different = sizes[name] != sizes[first]
        if different.any():
            row = int(np.argmax(different))
            candidates = sizes[first][row]
            scores = sizes[name][row]
            raise InputError(
                f"row {first_row + row} has {candidates} in {spelt[first]} and "
                f"{scores} in {spelt[name]}: each candidate of a list needs its own score"
            )
    parents = pa.array(np.repeat(np.arange(len(table)), sizes[first]))
    columns = {}
    for name in table.column_names:
        if name in lists:
            columns[name] = compute.list_flatten(lists[name])
        else:
            columns[name] = table[name].take(parents)
    return pa.table(columns)


def as_array(column: "pa.ChunkedArray") -> npt.NDArray[Any]:
    """A column of whole numbers as int64, or one of texts as objects, "" where one is missing."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_integer(column.type):
        numbers: npt.NDArray[Any] = column.to_numpy()
        return numbers
    texts: npt.NDArray[Any] = compute.fill_null(column.cast(pa.string()), "").to_numpy()
    return texts


def refuse_rounded(texts: npt.NDArray[Any], values: Floats, what: str) -> None:
    """Refuse whole numbers in text that are others in float64."""
    beyond = np.isfinite(values) & (np.abs(values) >= EXACT)
    for row in np.flatnonzero(beyond).tolist():
        text = texts[row].strip()
        if not text.lstrip("+-").isdecimal():
            continue
        exact = Decimal(text)  # Python makes no int of thousands of digits
        if exact != Decimal(values[row]):
            as_floats(np.array([int(exact)], object), what)


def _is_list(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    kinds = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return any(is_kind(kind) for is_kind in kinds)


def _as_list(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    import pyarrow as pa

    return column.cast(pa.large_list(column.type.value_type))


def _unlike(what: str, column: "pa.ChunkedArray", expected: str) -> InputError:
    values = column.drop_null()
    such = ""
    if len(values):
        text = str(values[0].as_py())
        such = f", such as {text[:40]!a}"
    return InputError(f"{what} is {column.type}{such}; {expected}")

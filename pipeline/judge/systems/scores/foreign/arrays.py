"""Named arrays, as the files of all tools hold them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from pipeline.foundation import files
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.judge.systems.scores.foreign.words import Name

# numpy has no bfloat16: the upper half of a float32 with the same value.
BFLOAT16 = "bfloat16"
# How values are stored that are texts, and those that no array of numbers or texts can hold.
TEXT = "text"
UNREADABLE = "objects"
SINGLE = (int, float, str, bytes, type(None), np.generic)
# The whole numbers up to here are the same in float64.
EXACT = 1 << 53


@dataclass(frozen=True)
class Array:
    """An array of a file, read when it is needed."""

    shape: tuple[int, ...]
    stored: str  # how its values are stored: float16, bfloat16, int64, text
    # reads its values, exactly as stored: no rounding makes or breaks a tie
    read: Callable[[], np.ndarray]
    # a zarr array, whose cells are read in blocks; None if it is read at once or mapped
    blocks: Any = None
    keys: np.ndarray | None = None  # of a dict: the key of each value; else None
    parts: int = 0  # the shards or batches whose rows are joined; 0 for an array that is one

    @classmethod
    def of(cls, values: np.ndarray, keys: np.ndarray | None = None) -> "Array":
        """Take an array in memory, or memory-mapped; of a dict its values and keys."""
        return cls(values.shape, stored_as(values.dtype), lambda: values, keys=keys)

    def __str__(self) -> str:
        described = f"{self.stored} {list(self.shape)}"
        if self.keys is not None:
            described = f"dict of {described}"
        if self.parts:
            described += f" of {counted(self.parts, 'part')}"
        return described

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers when they are read; 0 for texts."""
        if self.stored in (TEXT, UNREADABLE):
            return 0
        dtype = np.dtype(np.float32)
        if self.stored != BFLOAT16:
            dtype = np.dtype(self.stored)
        return prod(self.shape) * dtype.itemsize

    @property
    def is_real(self) -> bool:
        """Whether it holds numbers with a fraction."""
        return self.stored.startswith(("float", BFLOAT16))

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.stored.startswith(("int", "uint"))


@dataclass(frozen=True)
class Arrays:
    """What a file holds."""

    title: str  # what it was recognised as: "a NumPy archive"
    arrays: Mapping[str, Array]  # by name; "" for a file with one array without a name


def stored_as(dtype: np.dtype[Any]) -> str:
    """Name how values are stored, see `Array.stored`."""
    if dtype.hasobject and dtype.kind != "T":
        return UNREADABLE
    if dtype.kind in "UST":
        return TEXT
    return str(dtype.newbyteorder("="))


def of_bfloat16(bits: np.ndarray) -> np.ndarray:
    """The values of bfloat16 as float32, which has them all. bits: uint16, any shape."""
    wide = bits.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def of_tree(title: str, tree: Any, path: object) -> Arrays:
    """The arrays in dicts and lists; names of inner ones are joined by dots. Lists of numbers or
    texts are arrays, and so are dicts and lists that say which image each caption is of.
    """
    found = dict(_leaves(tree, "", path))
    if not found:
        raise InputError(
            f"{path}: holds no array, but {type(tree).__name__}; save the scores or vectors as one"
        )
    return Arrays(title, found)


def _leaves(tree: Any, name: str, path: object) -> Iterator[tuple[str, Array]]:
    if isinstance(tree, np.ndarray):
        yield name, Array.of(tree)
    elif isinstance(tree, Array):
        yield name, tree
    elif isinstance(tree, Mapping) and tree:
        inner = None
        if name:
            inner = _of_dict(tree, name, path)
        if inner is not None:
            yield name, inner
            return
        for key, value in tree.items():
            yield from _leaves(value, _below(name, key), path)
    elif _is_list(tree) and tree and _are_rows_of_names(tree, name):
        for key in _names_of_columns(tree):
            column = [row.get(key) for row in tree]
            yield _below(name, key), _of_column(column, f"{name}.{key}", path)
    elif _is_list(tree) and tree:
        inner = _of_batches(tree, name, path) or _of_list(tree, name, path)
        if inner is not None:
            yield name, inner
            return
        for number, value in enumerate(tree):
            yield from _leaves(value, _below(name, number), path)
    elif isinstance(tree, set | frozenset) and tree:
        yield name, _unreadable(tree, "a set", name, path)
    elif Name.of(name).is_of_ids and tree is not None:
        yield name, _unreadable([tree], _alone(tree), name, path)


def _below(name: str, key: object) -> str:
    """The name of what a dict or list of that name holds by a key."""
    if name:
        return f"{name}.{key}"
    return str(key)


def _alone(value: Any) -> str:
    """What stands where ids should."""
    if isinstance(value, str | bytes):
        return "one text"
    kind = type(value).__name__
    if _is_single(value):
        return f"one {kind}"
    return f"an empty {kind}"


def require_stored(arrays: Iterable[Array], path: Path) -> None:
    """Refuse arrays that take more memory, each by itself, than their file may become: it may
    refer to one array by many names.
    """
    expansion = files.expansion.Expansion(path, "save an array of its own for each name")
    for each in arrays:
        expansion.take(each.nbytes)


def joined(parts: Sequence[Array], place: str, path: object = None) -> Array:
    """The array of which these are consecutive rows.

    place: what messages call them. path: the file that has them all; None for one each.
    """
    first = parts[0]
    for each in parts:
        has_rows_alike = bool(each.shape) and each.shape[1:] == first.shape[1:]
        if not has_rows_alike or each.stored != first.stored:
            raise InputError(
                f"{place}: its parts {first} and {each} are no rows of one array; name those that are "
                "meant"
            )
    rows = sum(each.shape[0] for each in parts)

    def read() -> np.ndarray:
        if path is not None:
            require_stored(parts, Path(str(path)))
        return np.concatenate([each.read() for each in parts])

    return Array((rows, *first.shape[1:]), first.stored, read, parts=len(parts))


def _of_batches(tree: Sequence[Any], name: str, path: object) -> Array | None:
    """A list of batches, of which the last may be smaller, as one array; None for others.

    Two arrays without the name of a side may be images and captions, so they are no batches.
    """
    if len(tree) < 2 or not all(map(_is_array, tree)):
        return None
    parts = [_as_array(batch) for batch in tree]
    sizes = [batch.shape[0] for batch in parts]
    first = sizes[0]
    last = sizes[-1]
    kinds = {(batch.shape[1:], batch.stored) for batch in parts}
    are_even = len({*sizes[:-1]}) == 1 and 0 < last <= first
    if len(kinds) > 1 or not are_even:
        return None
    words = Name.of(name)
    is_one_side = words.side is not None and words.maps is None and words.direction is None
    has_a_rest = last < first and len(parts) > 2
    if is_one_side or has_a_rest:
        return joined(parts, name, path)
    return None


def _as_array(values: np.ndarray | Array) -> Array:
    if isinstance(values, Array):
        return values
    return Array.of(values)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | Array) and len(value.shape) > 0


def _of_dict(tree: Mapping[Any, Any], name: str, path: object) -> Array | None:
    """A dict of single values, or of lists of captions or images, as one array; None for others."""
    keys = [*tree]
    values = [*tree.values()]
    if not values:
        return None
    if all(map(_is_single, values)):
        return of_values(values, name, path, keys)
    if not Name.of(name).tells_owners or not all(map(_is_row, values)):
        return None
    repeated: list[Any] = []
    for key, row in tree.items():
        repeated += [key] * len(row)
    return of_values([*chain.from_iterable(values)], name, path, repeated)


def _of_list(tree: Sequence[Any], name: str, path: object) -> Array | None:
    """A list of single values, or of lists of them, as one array; None for others."""
    if any(map(_is_single, tree)):
        return of_values(tree, name, path)
    if not all(map(_is_row, tree)):
        if all(map(_is_dict_of_values, tree)):
            return _unreadable(tree, "a list of dicts", name, path)
        return None
    values = of_values([*chain.from_iterable(tree)], name, path)
    widths = [len(row) for row in tree]
    if values.stored != UNREADABLE and len({*widths}) == 1:
        rows = values.read().reshape(len(tree), widths[0])
        return Array.of(rows)
    if Name.of(name).tells_owners:
        numbers = np.repeat(np.arange(len(tree)), widths)
        return Array.of(values.read(), numbers)
    return _unreadable(tree, f"a list of {type(tree[0]).__name__}s", name, path)


def _is_dict_of_values(row: Any) -> bool:
    """Whether it is a dict that holds single values."""
    return isinstance(row, Mapping) and bool(row) and all(map(_is_single, row.values()))


def _are_rows_of_names(tree: Sequence[Any], name: str) -> bool:
    """Whether a list holds a dict for each row, as COCO's annotations do, and no arrays."""
    are_dicts = all(isinstance(each, Mapping) and each for each in tree)
    if not are_dicts or Name.of(name).is_of_ids:
        return False
    values = chain.from_iterable(row.values() for row in tree)
    return not any(map(_is_array, values))


def _names_of_columns(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """The names that any row has; first the id, by which other rows call it."""
    keys = dict.fromkeys(chain.from_iterable(rows))
    names = [key for key in keys if isinstance(key, str)]
    return sorted(names, key=lambda name: name != "id")


def _of_column(values: Sequence[Any], name: str, path: object) -> Array:
    """What rows have of one name, as one array."""
    if all(map(_is_single, values)):
        return of_values(values, name, path)
    return _unreadable(values, "a column of lists", name, path)


def _is_list(tree: Any) -> bool:
    return isinstance(tree, Sequence) and not isinstance(tree, str | bytes)


def _is_single(value: Any) -> bool:
    if isinstance(value, np.ndarray | Array):
        return len(value.shape) == 0
    return isinstance(value, SINGLE)


def _is_row(value: Any) -> bool:
    return _is_list(value) and all(map(_is_single, value))


def of_values(
    values: Sequence[Any], name: str, path: object, keys: Sequence[Any] | None = None
) -> Array:
    """The array of a list of numbers or of texts, with the keys of a dict; one of several kinds,
    which no array can hold exactly, is listed and cannot be read.
    """
    plain = [*map(_plain, values)]
    kinds = {type(value) for value in plain}
    known = None
    what = "a list"
    if keys is not None:
        known = _keys(keys)
        what = "a dict"
    if kinds == {bytes}:
        plain = [value.decode(errors="replace") for value in plain]
        kinds = {str}
    if kinds == {str}:
        return Array((len(plain),), TEXT, partial(_texts, plain, path), keys=known)
    if kinds in ({bool}, {float}):
        return Array.of(np.array(plain), known)
    if kinds == {int}:
        for dtype in (np.int64, np.uint64):
            limits = np.iinfo(dtype)
            if limits.min <= min(plain) and max(plain) <= limits.max:
                return Array.of(np.array(plain, dtype), known)
    are_exact = all(type(value) is not int or abs(value) <= EXACT for value in plain)
    if kinds == {int, float} and are_exact:
        return Array.of(np.array(plain, np.float64), known)
    names = sorted(kind.__name__ for kind in kinds)
    words = " and ".join(names).replace("NoneType", "None")
    return _unreadable(values, f"{what} of {words}", name, path)


def _plain(value: Any) -> Any:
    """A value of NumPy as Python's own."""
    if isinstance(value, Array):
        value = value.read()
    if isinstance(value, np.ndarray | np.generic):
        return value.item()
    return value


def _keys(keys: Sequence[Any]) -> np.ndarray:
    """The keys of a dict, as whole numbers or as texts."""
    if all(type(key) is int and abs(key) < EXACT for key in keys):
        return np.array(keys, np.int64)
    return np.array([str(key) for key in keys])


def _unreadable(values: Any, what: str, name: str, path: object) -> Array:
    why = f"{path}: {name} is {what}; save numbers, or texts, as one array"
    why = why.replace(":  ", ": it ")  # what has no name
    return Array((len(values),), UNREADABLE, partial(_refuse, why))


def _texts(values: Sequence[str], path: object) -> np.ndarray:
    return files.expansion.Expansion(Path(str(path))).texts(values)


def _refuse(why: str) -> NoReturn:
    raise InputError(why)

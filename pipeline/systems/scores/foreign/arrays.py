"""Named arrays, as the files of all tools hold them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.parts.errors import InputError

# numpy has no bfloat16: the upper half of a float32 with the same value.
BFLOAT16 = "bfloat16"


@dataclass(frozen=True)
class Array:
    """An array of a file, read when it is needed."""

    shape: tuple[int, ...]
    stored: str  # how its values are stored: float16, bfloat16, int64, text
    read: Callable[
        [], np.ndarray
    ]  # reads its values, exactly as stored: no rounding makes or breaks a tie
    blocks: Any = (
        None  # a zarr array, whose cells are read in blocks; None if it is read at once or mapped
    )

    @classmethod
    def of(cls, values: np.ndarray) -> "Array":
        """Take an array in memory, or memory-mapped."""
        return cls(
            values.shape,
            "text" if values.dtype.kind in "US" else str(values.dtype.newbyteorder("=")),
            lambda: values,
        )

    def __str__(self) -> str:
        return f"{self.stored} {list(self.shape)}"

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


def of_bfloat16(bits: np.ndarray) -> np.ndarray:
    """The values of bfloat16 as float32, which has them all. bits: uint16, any shape."""
    wide = bits.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def of_tree(title: str, tree: Any, path: object) -> Arrays:
    """The arrays in dicts and lists; names of inner ones are joined by dots. Lists of numbers or
    texts are arrays.
    """
    found = dict(_leaves(tree, ""))
    if not found:
        raise InputError(
            f"{path}: holds no array, but {type(tree).__name__}; save the scores or vectors as one"
        )
    return Arrays(title, found)


def _leaves(tree: Any, name: str) -> Iterator[tuple[str, Array]]:
    if isinstance(tree, np.ndarray):
        yield name, Array.of(tree)
    elif isinstance(tree, Array):
        yield name, tree
    elif isinstance(tree, Mapping):
        for key, each in tree.items():
            yield from _leaves(each, f"{name}.{key}" if name else str(key))
    elif isinstance(tree, Sequence) and not isinstance(tree, str | bytes) and tree:
        if all(isinstance(each, str) for each in tree) or all(
            type(each) in (int, float) for each in tree
        ):
            yield name, Array.of(np.array(tree))
        elif not isinstance(tree[0], str | int | float):
            yield from _leaves({str(number): each for number, each in enumerate(tree)}, name)

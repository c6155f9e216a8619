"""Arrays come back exactly, from any numpy and any protocol; everything else is refused, and
nothing runs.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.files import restricted_pickle
from pipeline.foundation.parts.errors import InputError

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
    "scalar": np.array(7, dtype=np.int64),
    "empty": np.zeros((0, 4), np.float16),
    "flags": np.array([True, False]),
}


def written(tmp_path: Path, value: Any, protocol: int = 2) -> Path:
    path = tmp_path / "weights.pkl"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_in_containers_come_back(tmp_path: Path, protocol: int) -> None:
    value = {
        "model": OrderedDict(ARRAYS),
        "__author__": "somebody",
        "steps": [1, 2.5, None, (np.float32(3),)],
        "objects": np.array([[1, 2.5], [3, 4]], object),
    }
    read = restricted_pickle.load(written(tmp_path, value, protocol))
    assert read["__author__"] == "somebody"
    assert read["steps"] == [1, 2.5, None, (3.0,)]
    assert read["objects"].tolist() == [[1, 2.5], [3, 4]]  # in rows and columns
    assert list(read["model"]) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert read["model"][name].dtype == array.dtype
        np.testing.assert_array_equal(read["model"][name], array)


def test_arrays_that_python_2_wrote_come_back(tmp_path: Path) -> None:
    # Python 2 wrote an array's bytes as a str, and numpy's modules had their old names.
    pieces = [
        b"\x80\x02}U\x01wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R",
        b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff",
        b"K\x00tb\x89U\x08" + np.array([1.5, -2.0], "<f4").tobytes() + b"tbs.",
    ]
    path = tmp_path / "old.pkl"
    path.write_bytes(b"".join(pieces))
    assert len(list(pickletools.genops(path.read_bytes()))) > 20
    np.testing.assert_array_equal(
        restricted_pickle.load(path)["w"], np.array([1.5, -2.0], np.float32)
    )


class Bomb:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call, self.arguments


@pytest.mark.specification
@pytest.mark.parametrize(
    ("call", "named"),
    [
        (os.mkdir, "mkdir"),
        (eval, "eval"),
        (getattr, "getattr"),
        (np.load, "load"),
        (np.memmap, "memmap"),
        (io.open, "open"),
        (pickle.loads, "loads"),
    ],
)
def test_a_pickle_that_calls_anything_is_refused_unrun(
    tmp_path: Path, call: Any, named: str
) -> None:
    target = tmp_path / "made"
    arguments = {
        "mkdir": (str(target),),
        "eval": (f"__import__('os').mkdir({str(target)!r})",),
        "open": (str(target), "w"),
    }.get(named, (str(target),))
    with pytest.raises(InputError, match=named):
        restricted_pickle.load(
            written(tmp_path, {"weight": ARRAYS["matrix"], "more": [Bomb(call, *arguments)]})
        )
    assert not target.exists()


@pytest.mark.parametrize(
    "value", [np.array([object()]), np.array(["text"]), np.zeros(2, [("a", "f4")])]
)
def test_an_array_of_anything_but_numbers_is_refused(tmp_path: Path, value: np.ndarray) -> None:
    with pytest.raises(InputError):
        restricted_pickle.load(written(tmp_path, {"weight": value}))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not a pickle",
        pickle.dumps(ARRAYS)[:-40],
        b"cnumpy\nndarray\n(K\x02tR.",
        b"\x80\x02cnumpy\ndtype\nU\x01O\x85R.",
    ],
)
def test_what_is_no_whole_pickle_is_refused_in_one_line(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "broken.pkl"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"broken\.pkl") as caught:
        restricted_pickle.load(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        restricted_pickle.load(tmp_path / "none.pkl")

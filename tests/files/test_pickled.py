"""Pickles made to take memory or time, to reach objects or to end in a traceback: each is refused
in one line, and nothing is named, called or changed.
"""

from __future__ import annotations

import pickle
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.files import expansion, restricted_pickle
from pipeline.foundation.parts.errors import InputError

TWO, FOUR, FIVE = b"\x80\x02", b"\x80\x04", b"\x80\x05"
HUGE = pickle.encode_long(10**5000)


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def name(module: str, function: str) -> bytes:
    return f"c{module}\n{function}\n".encode()


def marked(*values: bytes) -> bytes:
    return b"(" + b"".join(values) + b"t"


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def entry(key: bytes, value: bytes) -> bytes:
    return b"}" + key + value + b"s"


def array(shape: bytes, dtype: bytes, values: bytes) -> bytes:
    begun = name("numpy.core.multiarray", "_reconstruct")
    arguments = marked(name("numpy", "ndarray"), marked(number(0)), text("b"))
    return begun + arguments + b"R" + marked(number(1), shape, dtype, b"\x89", values) + b"b"


def dtype(kind: str) -> bytes:
    return name("numpy", "dtype") + marked(text(kind), b"\x89", b"\x88") + b"R"


def laughs() -> bytes:
    """A list of ten lists of ten lists, and so on, of 10^12 texts."""
    content = b"(" + text("x") + b"lq\0"
    for level in range(12):
        content += b"0(" + b"h" + (bytes([level]) + b"h") * 9 + bytes([level]) + b"l"
        content += b"q" + bytes([level + 1])
    return content


CALL = name("_codecs", "encode") + marked(text("a"), text("latin1"))
EIGHT = b"C\x08" + bytes(8)
FLOAT = dtype("f4")
HOSTILE: dict[str, tuple[bytes, str]] = {
    "references that expand": (TWO + laughs(), "become more than"),
    "a list in itself": (TWO + b"]q\0h\0a", "contains itself"),
    "a dict in itself": (TWO + b"}q\0" + text("a") + b"h\0s", "contains itself"),
    "a tuple in its list": (TWO + b"]q\0h\0\x85a", "contains itself"),
    "an array in itself": (
        TWO
        + name("numpy.core.multiarray", "_reconstruct")
        + marked(name("numpy", "ndarray"))
        + b"Rq\1"
        + marked(number(1), marked(number(1)), dtype("O"), b"\x89", b"(h\1l")
        + b"b",
        "contains itself",
    ),
    "2,000 levels": (TWO + b"]" * 2000 + b"a" * 1999, "nested more than 100 levels"),
    "many levels": (TWO + b")" + b"\x85" * 10**5, "nested more than 100 levels"),
    "a deep key": (TWO + b"})" + b"\x85" * 10**5 + b"Ns", "has a tuple as a key"),
    "a list as a key": (TWO + entry(b"]", b"N"), "has a list as a key"),
    "a list in a set": (FOUR + b"\x8f(]\x90", "has a list as a key"),
    "many dicts": (TWO + b"(" + b"}" * (1 << 18) + b"l", "become more than"),
    "a key of 10^5000": (
        TWO + entry(b"\x8b" + struct.pack("<i", len(HUGE)) + HUGE, b"N"),
        "whole number of 2,077 bytes",
    ),
    "a number of 3,000 digits": (b"I" + b"9" * 3000 + b"\n", "whole number of 3,000 digits"),
    "bytes that are not there": (FOUR + b"\x8e" + struct.pack("<Q", 1 << 36), "cut short"),
    "text that is not there": (FOUR + b"\x8d" + struct.pack("<Q", 1 << 40), "cut short"),
    "bytes to change": (FIVE + b"\x96" + struct.pack("<Q", 1 << 36), "cut short"),
    "half a surrogate pair": (TWO + b"X\3\0\0\0\xed\xa0\x80", "is damaged"),
    "a value of nowhere": (TWO + b"h\7", "is damaged"),
    "nothing on the stack": (TWO + b"0", "is damaged"),
    "an odd dict": (TWO + b"(" + text("a") + b"d", "is damaged"),
    "a mark that is not there": (TWO + b"t", "is damaged"),
    "no end": (TWO, "is damaged"),
    "bytes beside it": (FIVE + b"\x97", "has the instruction"),
    "a registered extension": (TWO + b"\x82\1", "has the instruction"),
    "a value that is elsewhere": (TWO + b"P/etc/passwd\n", "values that are in no pickle"),
    "a name of no text": (FOUR + b"NN\x93", "a name that is no text"),
    "a name by itself": (TWO + name("numpy", "dtype"), r"holds numpy\.dtype itself"),
    "a name within a name": (
        FOUR + text("numpy") + text("ndarray.__reduce__") + b"\x93",
        r"holds numpy\.ndarray\.__reduce__",
    ),
    "a name with an escape": (TWO + name("\x1b[31mos", "x"), r"holds \\x1b\[31mos\.x"),
    "a function as a call's result": (TWO + CALL + b"R" + b")R", "calls what is no name"),
    "a call without a tuple": (TWO + name("_codecs", "encode") + b"]R", "calls what is no name"),
    "an encoding that inflates": (
        TWO + name("_codecs", "encode") + marked(text("a"), text("zip")) + b"R",
        "array without bytes",
    ),
    "a call of an array": (
        TWO + name("numpy", "ndarray") + marked(marked(number(10**9))) + b"R",
        r"calls numpy\.ndarray",
    ),
    "a state for a function": (
        TWO + name("_codecs", "encode") + entry(text("x"), b"N") + b"b",
        "changes what",
    ),
    "a state for a class": (
        TWO + name("numpy", "dtype") + entry(text("x"), b"N") + b"b",
        "changes",
    ),
    "a state for a list": (TWO + b"]}b", "changes"),
    "a state for an OrderedDict": (
        TWO + name("collections", "OrderedDict") + b")R" + entry(text("items"), b"N") + b"b",
        "changes",
    ),
    "two states": (TWO + array(marked(number(2)), FLOAT, EIGHT) + b")b", "changes"),
    "items in a list": (TWO + b"]NNs", "is no dict"),
    "values in a dict": (TWO + b"}Na", "is no list"),
    "arguments by name": (
        FOUR + name("numpy", "dtype") + b")" + entry(text("x"), b"N") + b"\x92",
        "by name",
    ),
    "a dtype alone": (TWO + entry(text("a"), FLOAT), "dtype without an array"),
    "an array that was begun": (
        TWO
        + name("numpy.core.multiarray", "_reconstruct")
        + marked(name("numpy", "ndarray"))
        + b"R",
        "without values",
    ),
    "a negative side": (
        TWO + array(marked(number(-1), number(2)), FLOAT, EIGHT),
        r"has the shape \(-1, 2\)",
    ),
    "more sides than values": (
        TWO + array(marked(*[number(2**31 - 1)] * 8), FLOAT, EIGHT),
        "8 bytes instead of an array",
    ),
    "a shape that is a list": (TWO + array(b"]", FLOAT, EIGHT), "has the shape"),
    "an array in an array": (TWO + array(marked(number(1)), dtype("(9,9)f8"), EIGHT), "dtype"),
    "void": (TWO + array(marked(number(1)), dtype("V2147483647"), EIGHT), "dtype"),
    "pointers as values": (TWO + array(marked(number(1)), dtype("O"), EIGHT), "other values than"),
    "a scalar of pointers": (
        TWO + name("numpy.core.multiarray", "scalar") + marked(dtype("O"), EIGHT) + b"R",
        "8 bytes instead of",
    ),
    "protocol 5's array without bytes": (
        FIVE
        + name("numpy.core.numeric", "_frombuffer")
        + marked(b"]", FLOAT, marked(number(2)), text("C"))
        + b"R",
        "array without bytes",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_pickle_is_refused_in_one_line(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "ALLOWED", 1 << 23)
    content, said = HOSTILE[what]
    (tmp_path / "a.pkl").write_bytes(content + b".")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=said) as caught:
            restricted_pickle.load(tmp_path / "a.pkl")
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(str(tmp_path / "a.pkl"))
    assert str(caught.value).isprintable()


def test_a_place_of_the_memo_takes_no_memory_for_those_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(TWO + b"Nr" + struct.pack("<I", 1 << 29) + b".")
    tracemalloc.start()
    try:
        assert restricted_pickle.load(tmp_path / "a.pkl") is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_values_that_are_shared_are_made_once(tmp_path: Path) -> None:
    values, listed = np.arange(3.0), [1, 2]
    held = {"a": values, "b": values, "c": [listed, listed]}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(held))
    read = restricted_pickle.load(tmp_path / "a.pkl")
    assert read["a"] is read["b"]
    assert read["c"][0] is read["c"][1]
    assert (read["a"].tolist(), read["c"]) == ([0.0, 1.0, 2.0], [[1, 2], [1, 2]])


def test_an_array_is_no_part_of_what_a_file_becomes(tmp_path: Path) -> None:
    """However large it is, since the file has its values."""
    values = np.arange(1 << 20)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"sims": values}))
    assert np.array_equal(restricted_pickle.load(tmp_path / "a.pkl")["sims"], values)

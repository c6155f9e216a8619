"""Arrays of an .npz are numpy's, and a member that declares another size or checksum than it has is
refused.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy_format

from pipeline.foundation.files import npz

ARRAYS: dict[str, np.ndarray] = {
    "floats": np.arange(12, dtype=np.float32).reshape(3, 4),
    "by_columns": np.asfortranarray(np.eye(3, 5)),
    "big_endian": np.arange(3, dtype=">i8"),
    "scalar": np.array(7),
    "empty": np.ones((0, 4)),
    "long": np.zeros((40, 2048), np.float16),
}


def member(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    stream = io.BytesIO()
    npy_format.write_array(stream, array, version)
    return stream.getvalue()


@pytest.mark.specification
@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_arrays_are_those_of_numpy(write: Callable[..., None], tmp_path: Path) -> None:
    write(tmp_path / "a.npz", **ARRAYS)
    with (tmp_path / "a.npz").open("rb") as file:
        read = npz.Arrays(file)
        assert list(read.members) == list(ARRAYS)
        for name, expected in ARRAYS.items():
            found = read.array(name)
            assert read.shape(name) == found.shape == expected.shape
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(version: tuple[int, int]) -> None:
    assert read(member(ARRAYS["floats"], version)).tolist() == ARRAYS["floats"].tolist()


def zipped(content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        file.writestr("x.npy", content)
    return stream.getvalue()


def read(
    content: bytes, method: int = zipfile.ZIP_DEFLATED, change: Callable[[bytes], bytes] = bytes
) -> Any:
    """The array of a zip with this member, the zip's bytes changed."""
    return npz.Arrays(io.BytesIO(change(zipped(content, method)))).array("x")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_of_another_size_than_its_header_says(method: int) -> None:
    content = member(ARRAYS["floats"])
    assert read(content, method).tolist() == ARRAYS["floats"].tolist()
    for wrong in (content[:-1], content + b"\0", content[:40]):
        with pytest.raises(ValueError):  # noqa: PT011  # numpy refuses a header that is cut off
            read(wrong, method)


def central(content: bytes, offset: int, value: int) -> bytes:
    """Another number in the member's entry of the zip's directory."""
    at = content.index(b"PK\1\2") + offset
    return content[:at] + value.to_bytes(4, "little") + content[at + 4 :]


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [
        (16, 1, "x.npy: is damaged"),  # the checksum
        (24, 200_000, "x.npy: is damaged"),  # the size
        (24, 100, "ecompress"),
        (24, npz.LARGEST + 1, "declares 268,435,457 bytes, more than .*; save them as \\.npy"),
        (20, npz.LARGEST + 1, "x.npy: declares 268,435,457 bytes"),  # the size in the file
    ],
)
def test_a_member_that_is_not_what_it_declares(offset: int, value: int, said: str) -> None:
    with pytest.raises(Exception, match=said):
        read(member(ARRAYS["long"]), change=lambda content: central(content, offset, value))


@pytest.mark.specification
def test_a_small_file_that_would_become_large() -> None:
    """Of a header that tells of 4 GB nothing is allocated."""
    stream = io.BytesIO()
    npy_format.write_array_header_1_0(
        stream, {"shape": (1 << 14, 1 << 16), "fortran_order": False, "descr": "<f4"}
    )
    with pytest.raises(
        ValueError, match=r"expected 4,294,967,\d+ bytes for an array \[16384, 65536\]"
    ):
        read(stream.getvalue() + b"\0" * 1000)


@pytest.mark.parametrize(
    ("version", "length", "said"),
    [
        (b"\1\0", 0, "declares 0 bytes"),
        (b"\1\0", 1, "declares 1 bytes"),
        (b"\2\0", 0xFFFFFFFF, "declares 4,294,967,295 bytes"),
        (b"\4\0", 118, r"got 4\.0"),
    ],
)
def test_a_header_that_would_inflate_the_whole_member(
    version: bytes, length: int, said: str
) -> None:
    content = (
        b"\x93NUMPY"
        + version
        + length.to_bytes(2 if version == b"\1\0" else 4, "little")
        + b" " * 1000
    )
    for ask in (npz.Arrays.array, npz.Arrays.shape):
        with pytest.raises(ValueError, match=said):
            ask(npz.Arrays(io.BytesIO(zipped(content))), "x")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_numpy_never_writes(method: int) -> None:
    """These methods inflate without a limit, whatever size is declared."""
    for ask in (npz.Arrays.array, npz.Arrays.shape):
        with pytest.raises(ValueError, match="not compressed as numpy"):
            ask(npz.Arrays(io.BytesIO(zipped(member(ARRAYS["floats"]), method))), "x")


def test_an_encrypted_member() -> None:
    def encrypted(content: bytes) -> bytes:
        at = content.index(b"PK\1\2") + 8
        return content[:at] + b"\1" + content[at + 1 :]

    with pytest.raises(ValueError, match=r"x\.npy: is encrypted"):
        read(member(ARRAYS["floats"]), change=encrypted)


def test_bytes_are_never_taken_for_objects() -> None:
    stream = io.BytesIO()
    npy_format.write_array_header_1_0(
        stream, {"shape": (2,), "fortran_order": False, "descr": "|O"}
    )
    with pytest.raises(ValueError, match="x: holds a pickle"):
        read(stream.getvalue() + b"\x10" * 16)

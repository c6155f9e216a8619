"""Arrays made to exhaust memory, to wait for ever or to end with a traceback: each is refused in
one line.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.files import npy, npz, zarr_arrays
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors.given_boxes import GivenBoxes


@contextmanager
def within(most: int) -> Iterator[None]:
    """The block takes at most so many bytes at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(text))
    return b"\x93NUMPY" + version + size + text.encode()


def described(shape: str, dtype: str = "'<f4'", order: str = "False") -> bytes:
    return header(f"{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}, }}\n")


NPY = {
    "a negative size": (described("(-4, 20)") + bytes(320), r"shape \[-4, 20\]"),
    "5,000 brackets": (header("(" * 5000), "header of an array is damaged"),
    "a tower of brackets": (header("[" * 9000 + "]" * 900), "header of an array is damaged"),
    "a long header": (header(" " * 60000), "declares 60,000 bytes"),
    "a header longer than the file": (
        header("x" * 9)[:-20] + b"\xff\x20",
        "expected an array|declares|damaged",
    ),
    "more cells than an integer holds": (described(f"({2**62}, {2**62})"), "bytes instead of"),
    "more cells than bytes": (
        described("(1000000000, 5000000000)") + bytes(80),
        "168 bytes instead of",
    ),
    "values without bytes": (described("(1000000000, 5000000000)", "'|V0'"), "has no values"),
    "text without bytes": (described("(1000000000, 5)", "'<U0'"), "has no values"),
    "a structure": (described("(4, 20)", "[('a', '<f4')]") + bytes(320), "expected float16"),
    "complex numbers": (described("(4, 20)", "'<c8'") + bytes(640), "expected float16"),
    "long doubles": (described("(4, 20)", "'<f16'") + bytes(1280), "expected float16"),
    "dates": (described("(4, 20)", "'<M8[s]'") + bytes(640), "expected float16"),
    "truth as a size": (described("(True, 5)") + bytes(20), "shape"),
    "objects": (described("(4, 20)", "'|O'") + b"cos\nsystem\n.", "names os.system"),
    "no axis": (described("()") + bytes(4), r"received \[\]"),
    "an empty axis": (described("(0, 5)"), r"received \[0, 5\]"),
    "version 9": (b"\x93NUMPY\x09\x00" + bytes(100), "got 9.0"),
    "nothing": (b"", "expected an array"),
}


@pytest.mark.specification
@pytest.mark.parametrize("what", NPY)
def test_a_hostile_npy_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    content, said = NPY[what]
    (tmp_path / "s.npy").write_bytes(content)
    with pytest.raises(InputError, match=said):
        as_similarity(tmp_path / "s.npy")


@pytest.mark.parametrize(
    ("dtype", "order"), [("<f4", "C"), (">f4", "C"), ("<f2", "F"), (">i2", "F"), ("<u8", "C")]
)
def test_other_orders_of_bytes_and_axes_are_read(dtype: str, order: Any, tmp_path: Path) -> None:
    values = np.arange(12).reshape(3, 4).astype(dtype, order=order)
    np.save(tmp_path / "s.npy", values)
    assert (
        as_similarity(tmp_path / "s.npy").block(slice(0, 3), slice(0, 4)).tolist()
        == values.tolist()
    )


@pytest.mark.parametrize(
    "place", ["s.npy", "s.zarr", "s.zarr/zarr.json", "s.zarr/.zarray", "s.zarr/c/0/0"]
)
def test_a_pipe_is_refused_and_not_waited_for(place: str, tmp_path: Path) -> None:
    file = tmp_path / place
    if place.endswith("0/0"):
        zarr.create_array(tmp_path / "s.zarr", data=np.ones((2, 10)), chunks=(2, 10))
        file.unlink()
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file)
    with pytest.raises(InputError, match=r"no regular file|is no zarr array|is missing"):
        as_similarity(tmp_path / Path(place).parts[0])


def stored(folder: Path, **changes: Any) -> Path:
    """An array of 2 x 10 float32 in one chunk, whose metadata are then changed."""
    zarr.create_array(
        folder / "s.zarr", data=np.ones((2, 10), np.float32), chunks=(2, 10), compressors=None
    )
    file = folder / "s.zarr" / "zarr.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder / "s.zarr"


def grid(*chunk: int) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": chunk}}


METADATA = {
    "a huge shape without chunks": ({"shape": [10**9, 5 * 10**9]}, "is missing"),
    "a shape beyond 64 bits": ({"shape": [10**30, 10**30]}, "is missing|cannot read"),
    "a chunk without rows": ({"chunk_grid": grid(0, 50)}, "expected sizes from 1 up|cannot read"),
    "a negative chunk": ({"chunk_grid": grid(-2, 10)}, "expected sizes from 1 up|cannot read"),
    "a negative shape": ({"shape": [-2, 10]}, "expected sizes from 0 up|cannot read"),
    "a huge chunk": (
        {"shape": [10**6, 10**6], "chunk_grid": grid(10**6, 10**6)},
        "80 bytes instead of",
    ),
    "a huge compressed chunk": (
        {
            "shape": [10**6, 10**6],
            "chunk_grid": grid(10**6, 10**6),
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "gzip", "configuration": {"level": 1}},
            ],
        },
        "a chunk has 4,000,000,000,000 bytes",
    ),
    "an unknown codec": (
        {
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "numcodecs.pickle"},
            ]
        },
        "cannot read",
    ),
    "text": (
        {"data_type": "string", "fill_value": "", "codecs": [{"name": "vlen-utf8"}]},
        "expected numbers",
    ),
}


@pytest.mark.specification
@pytest.mark.parametrize("what", METADATA)
def test_hostile_metadata_are_refused_before_memory_is_taken(what: str, tmp_path: Path) -> None:
    changes, said = METADATA[what]
    path = stored(tmp_path, **changes)
    with within(1 << 24), pytest.raises(InputError, match=said):
        as_similarity(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "", "null", '{"zarr_format": 3}', "\x00"]
)
def test_metadata_that_are_no_description_are_refused(text: str, tmp_path: Path) -> None:
    (path := stored(tmp_path)).joinpath("zarr.json").write_text(text)
    with pytest.raises(InputError, match="as a zarr array"):
        as_similarity(path)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ((80 + 4, 3 << 20), "more than its shape allows"),
        ((2**63, 2**63 + 5), "is cut short"),
        ((2**64 - 2, 3), "is cut short"),
        ((80 + 4, 2**40), "is cut short"),
    ],
)
def test_a_shard_whose_index_names_too_many_bytes_is_refused(
    entry: tuple[int, int], said: str, tmp_path: Path
) -> None:
    zarr.create_array(
        tmp_path / "s.zarr",
        shape=(500, 2000),
        dtype="f4",
        chunks=(100, 2000),
        shards=(500, 2000),
        compressors=[GzipCodec()],
    )[:] = 1
    index = np.array([entry] * 5, "<u8").tobytes()
    with (tmp_path / "s.zarr/c/0/0").open("wb") as file:
        file.truncate(4 << 20)
        file.seek(0, os.SEEK_END)
        file.write(index + struct.pack("<I", google_crc32c.value(index)))
    with within(1 << 20), pytest.raises(InputError, match=said):
        as_similarity(tmp_path / "s.zarr")


@pytest.mark.parametrize("within_another", [False, True])
def test_a_shard_of_very_many_chunks_is_refused_before_its_index_is_read(
    within_another: bool, tmp_path: Path
) -> None:
    plain = {"name": "bytes", "configuration": {"endian": "little"}}

    def sharded(chunk: list[int], codec: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": chunk,
                "codecs": [codec],
                "index_codecs": [plain, {"name": "crc32c"}],
                "index_location": "end",
            },
        }

    codec = sharded([1, 1], plain)
    path = stored(
        tmp_path,
        shape=[10**5, 10**5],
        chunk_grid=grid(10**5, 10**5),
        codecs=[sharded([10**4, 10**4], codec) if within_another else codec],
    )
    os.truncate(path / "c/0/0", 1 << 36)  # a file with a hole, which takes no space
    with within(1 << 24), pytest.raises(InputError, match=r"a shard has .* chunks, more than"):
        as_similarity(path)


def test_metadata_of_many_bytes_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zarr_arrays, "METADATA", 100)
    with pytest.raises(InputError, match="more than 100"):
        as_similarity(stored(tmp_path))


def test_a_pickle_among_zarr_2s_codecs_is_not_run(tmp_path: Path) -> None:
    described = {
        "zarr_format": 2,
        "shape": [2, 10],
        "chunks": [2, 10],
        "dtype": "<f4",
        "fill_value": 0,
        "order": "C",
    }
    for codecs in (
        {"compressor": {"id": "pickle"}, "filters": None},
        {"compressor": None, "filters": [{"id": "delta", "dtype": "<f4"}]},
        {"compressor": None, "filters": [{"id": "shuffle", "elementsize": 4}, {"id": "pickle"}]},
    ):
        (tmp_path / "s.zarr").mkdir(exist_ok=True)
        (tmp_path / "s.zarr" / ".zarray").write_text(json.dumps(described | codecs))
        with pytest.raises(InputError, match=r"s\.zarr"):
            as_similarity(tmp_path / "s.zarr")


SIZE = 16 << 20  # what a bomb inflates to, from some kB
BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "lzma": lzma.compress,
    "zstd": numcodecs.Zstd(level=1).encode,
    "blosc": numcodecs.Blosc().encode,
    "lz4": numcodecs.LZ4().encode,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_a_chunk_does_not_inflate_beyond_its_shape(kind: str) -> None:
    assert zarr_arrays.decode(kind, bytes(BOMBS[kind](bytes(80))), 80) == bytes(80)
    bomb = bytes(BOMBS[kind](bytes(SIZE)))
    with (
        within(10 << 20),
        pytest.raises(ValueError, match="inflates beyond the 80 bytes"),
    ):  # lzma's dictionary has 8
        zarr_arrays.decode(kind, bomb, 80)
    for damaged in (
        b"",
        bomb[: len(bomb) // 2],
    ):  # Arrow gives what there is of zstd, which is then no chunk's shape
        with suppress(ValueError):
            assert len(zarr_arrays.decode(kind, damaged, 2 * SIZE)) < SIZE


@pytest.mark.parametrize("compressor", [GzipCodec(), ZstdCodec(), BloscCodec()])
@pytest.mark.parametrize("shards", [None, (2, 10)])
def test_an_array_with_a_bomb_names_the_chunk(
    compressor: Any, shards: tuple[int, int] | None, tmp_path: Path
) -> None:
    values = np.arange(40, dtype=np.float32).reshape(4, 10)
    array = zarr.create_array(
        tmp_path / "s.zarr",
        shape=(4, 10),
        dtype="f4",
        chunks=(2, 5),
        shards=shards,
        compressors=[compressor],
    )
    array[:] = values
    source = as_similarity(tmp_path / "s.zarr")
    assert source.block(slice(0, 4), np.array([1, 7])).tolist() == values[:, [1, 7]].tolist()
    if shards is None:
        kind = compressor.to_dict()["name"]
        (tmp_path / "s.zarr/c/1/0").write_bytes(bytes(BOMBS[kind](bytes(SIZE // 16))))
        with pytest.raises(
            InputError, match=r"s.zarr/c/1/0: is damaged \(a chunk inflates|s.zarr/c/1/0: \d+ bytes"
        ):
            as_similarity(tmp_path / "s.zarr").block(slice(0, 4), slice(0, 10))


@pytest.mark.parametrize(
    "compressor", [None, numcodecs.Blosc(), numcodecs.Zstd(), numcodecs.GZip(), numcodecs.LZ4()]
)
def test_zarr_2_is_read_and_its_bombs_are_refused(compressor: Any, tmp_path: Path) -> None:
    values = np.arange(40, dtype=np.float32).reshape(4, 10)
    zarr.create_array(
        tmp_path / "s.zarr", data=values, chunks=(2, 5), compressors=compressor, zarr_format=2
    )
    source = as_similarity(tmp_path / "s.zarr")
    assert source.block(slice(0, 4), slice(0, 10)).tolist() == values.tolist()
    if compressor is not None:
        (tmp_path / "s.zarr/1.0").write_bytes(bytes(compressor.encode(bytes(1 << 20))))
        with pytest.raises(InputError, match=r"s.zarr/1.0: is damaged \(a chunk inflates"):
            as_similarity(tmp_path / "s.zarr").block(slice(0, 4), slice(0, 10))


def test_boxes_that_inflate_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = np.array([[0, 0, 9, 9]], np.float32)
    np.savez_compressed(tmp_path / "b.npz", **{"a.jpg": boxes, "folder/b.png": boxes})
    assert {
        name: each.boxes.tolist() for name, each in GivenBoxes(tmp_path / "b.npz").boxes.items()
    } == {"a.jpg": boxes.tolist(), "folder/b.png": boxes.tolist()}
    monkeypatch.setattr(npz, "LARGEST", 1000)
    np.savez_compressed(tmp_path / "b.npz", a=np.zeros((1000, 4), np.float32))
    with pytest.raises(InputError, match=r"not readable as \.npz"):
        GivenBoxes(tmp_path / "b.npz")


def test_a_mapped_array_is_read_only_and_an_empty_one_is_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 0)))
    assert npy.mapped(tmp_path / "a.npy").shape == (3, 0)
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert not npy.mapped(tmp_path / "a.npy").flags.writeable


def test_a_matrix_of_numbers_is_told_by_its_header(tmp_path: Path) -> None:
    """What a matrix alone is read by; anything else is looked at with all that may be in a file."""
    file = tmp_path / "a.npy"
    for values in (np.zeros((2, 3), np.float16), np.ones((4, 2), ">i8"), np.eye(3, order="F")):
        np.save(file, values)
        assert npy.holds_matrix(file), values.dtype
    others = {
        "a column": np.zeros((5, 1)),
        "a vector": np.zeros(5),
        "a cube": np.zeros((2, 2, 2)),
        "no rows": np.zeros((0, 5)),
        "texts": np.array([["a", "b"], ["c", "d"]]),
        "complex numbers": np.eye(3, dtype=complex),
        "objects": np.array([[{}, {}], [{}, {}]]),
    }
    for name, values in others.items():
        np.save(file, values)
        assert not npy.holds_matrix(file), name
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], b"PK" + whole[2:], whole[:6] + b"\x09" + whole[7:]):
        file.write_bytes(damaged)
        assert not npy.holds_matrix(file)

"""Zarr arrays that may be hostile: sizes are checked before memory is taken, and no chunk grows
beyond its shape.

Metadata may claim any shape, and a compressed chunk of some kB may inflate to any size. So a
chunk's shape is limited, only codecs of numbers are known, and each of them stops at the bytes that
the chunk's shape has.
"""

import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zarr
from numcodecs.abc import Codec as Numcodec
from numcodecs.blosc import Blosc
from numcodecs.lz4 import LZ4
from zarr.abc.codec import BytesBytesCodec, Codec
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec
from zarr.core.array import AsyncArray
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer
from zarr.core.metadata import ArrayV3Metadata
from zarr.storage import LocalStore

from pipeline.foundation.files import archives
from pipeline.foundation.parts.errors import InputError, first_line, refusing, short_of_memory

# Bytes of a decoded chunk, and of a file of metadata. Files without a codec are mapped, whatever
# their size.
LARGEST = 1 << 31
METADATA = 1 << 26
MEMORY = 1 << 28  # that lzma takes for its dictionary, whose size the chunk declares
SLACK = 1 << 12  # checksums and headers of a codec below another
MOST_IN_A_SHARD = 1 << 20  # chunks; the index of a shard has 16 bytes for each


def open_array(path: Path, what: str) -> zarr.Array[Any]:
    """Open an array, read-only and `checked`. what: its name in messages, "similarity matrix"."""
    if not path.exists():
        raise InputError(f"no {what} at {path}")
    if not path.is_dir():
        what = archives.named(path) or "no zarr array, which is a folder"
        raise InputError(f"{path}: is {what}")
    refuse_metadata(path)

    def why(error: Exception) -> str:
        return f"cannot read {path} as a zarr array: {first_line(error)}"

    with refusing(Exception, why):
        array = zarr.open_array(path, mode="r")
    return checked(array, str(path))


def refuse_metadata(folder: Path) -> None:
    """Refuse metadata that are no file of ordinary size, of a group or an array; reading a pipe
    would wait for ever.
    """
    for name in ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"):
        file = folder / name
        if not file.exists():
            continue
        if not file.is_file():
            raise InputError(f"{file}: is no regular file")
        size = file.stat().st_size
        if size > METADATA:
            raise InputError(f"{file}: has {size:,} bytes, more than {METADATA:,}")


def checked(array: zarr.Array[Any], name: str) -> zarr.Array[Any]:
    """Check an array's sizes and codecs, and refuse chunks that inflate beyond their shape. name:
    for messages.
    """
    _require_sizes(name, "shape", array.shape, 0)
    _require_sizes(name, "chunks", array.chunks, 1)
    _require_sizes(name, "shards", array.shards or (), 1)
    if array.dtype.hasobject or not array.dtype.itemsize:
        raise InputError(f"{name}: holds {array.dtype}, expected numbers")
    size = math.prod(array.chunks) * array.dtype.itemsize
    if size > LARGEST and not is_plain(array):
        raise InputError(
            f"{name}: a chunk has {size:,} bytes, more than {LARGEST:,}; write it in smaller chunks"
        )
    metadata: Any = array.metadata
    if isinstance(metadata, ArrayV3Metadata):
        _refuse_long_index(metadata.codecs, array.shards or array.chunks, name)
        codecs = tuple(_bounded(codec, name) for codec in metadata.codecs)
        if codecs == metadata.codecs:
            return array
        changed = replace(metadata, codecs=codecs)
    else:
        if metadata.filters:
            filters = ", ".join(codec.codec_id for codec in metadata.filters)
            raise InputError(
                f"{name}: has the filters {filters}, which are not read; write it without filters"
            )
        if metadata.compressor is None:
            return array
        compressor = _V2(metadata.compressor.codec_id, name, size)
        changed = replace(metadata, compressor=compressor)
    asynchronous = array.async_array
    return zarr.Array(AsyncArray(changed, asynchronous.store_path, asynchronous.config))


def _require_sizes(name: str, what: str, sizes: tuple[int, ...], least: int) -> None:
    if any(size < least for size in sizes):
        raise InputError(f"{name}: has {what} {list(sizes)}; expected sizes from {least} up")


def is_plain(array: zarr.Array[Any]) -> bool:
    """Whether each chunk is a file of the array's bytes as they are in memory."""
    metadata = array.metadata
    if not isinstance(array.store, LocalStore) or not isinstance(metadata, ArrayV3Metadata):
        return False
    if len(metadata.codecs) != 1:
        return False
    codec = metadata.codecs[0]
    if not isinstance(codec, BytesCodec):
        return False
    return codec.endian is None or codec.endian.value == "little"


def _bounded(codec: Codec, name: str) -> Codec:
    """The codec, or one that stops at the size of a chunk in its place."""
    if isinstance(codec, BytesCodec | TransposeCodec | Crc32cCodec | Bounded):
        return codec
    if isinstance(codec, ShardingCodec):
        codecs = tuple(_bounded(inner, name) for inner in codec.codecs)
        if codecs == codec.codecs:
            return codec
        return replace(codec, codecs=codecs)
    kind = str(codec.to_dict()["name"]).removeprefix("numcodecs.")
    return Bounded(codec, _known(kind, name))


def _refuse_long_index(codecs: Iterable[Codec], shape: tuple[int, ...], name: str) -> None:
    """Refuse a shard, or one in a shard, of more chunks than its index is read for."""
    for codec in codecs:
        if not isinstance(codec, ShardingCodec):
            continue
        count = 1
        for whole, part in zip(shape, codec.chunk_shape, strict=True):
            count *= whole // part
        if count > MOST_IN_A_SHARD:
            raise InputError(
                f"{name}: a shard has {count:,} chunks, more than {MOST_IN_A_SHARD:,}; write it in "
                "larger chunks"
            )
        _refuse_long_index(codec.codecs, codec.chunk_shape, name)


def _known(kind: str, name: str) -> str:
    if kind not in DECODERS:
        raise InputError(
            f"{name}: is compressed by {kind!a}, which is not read; write it with {', '.join(DECODERS)}"
        )
    return kind


def decode(kind: str, content: bytes, most: int) -> bytes:
    """Decode a chunk by a key of `DECODERS`; ValueError if it is damaged or has more than `most`
    bytes.
    """
    try:
        decoded = DECODERS[kind](content, most)
    except Exception as error:
        if short_of_memory(error):
            raise
        raise ValueError(first_line(error)) from None
    if len(decoded) > most:
        raise ValueError(f"a chunk inflates beyond the {most:,} bytes of its shape")
    return decoded


def _streamed(make: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """Decode by a decompressor of Python's library, which gives no more than it is asked for."""

    def decoded(content: bytes, most: int) -> bytes:
        stream = make()
        out: bytes = stream.decompress(content, most + 1)
        if len(out) <= most and not stream.eof:
            raise ValueError("a chunk is cut short")
        return out

    return decoded


def _declared(decoder: Any, header: slice) -> Callable[[bytes, int], bytes]:
    """Decode a chunk whose header says its size, by numcodecs, which takes this memory at once."""

    def decoded(content: bytes, most: int) -> bytes:
        size = int.from_bytes(content[header], "little")
        if size > most:
            raise ValueError(f"a chunk inflates beyond the {most:,} bytes of its shape")
        return bytes(decoder.decode(content))

    return decoded


def _zstd(content: bytes, most: int) -> bytes:
    import pyarrow as pa  # a store without zstd is opened without it

    stream = pa.input_stream(pa.py_buffer(content), compression="zstd")
    out: bytes = stream.read(most + 1)
    return out


DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "zstd": _zstd,
    "blosc": _declared(Blosc(), slice(4, 8)),
    "lz4": _declared(LZ4(), slice(0, 4)),
    "gzip": _streamed(lambda: zlib.decompressobj(16 + zlib.MAX_WBITS)),
    "zlib": _streamed(zlib.decompressobj),
    "bz2": _streamed(bz2.BZ2Decompressor),
    "lzma": _streamed(lambda: lzma.LZMADecompressor(memlimit=MEMORY)),
}


@dataclass(frozen=True)
class Bounded(BytesBytesCodec):
    """A codec of zarr 3 that stops at the bytes of the chunk's shape."""

    codec: Any
    kind: str
    is_fixed_size = False

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        size = math.prod(chunk_spec.shape) * chunk_spec.dtype.item_size  # type: ignore[attr-defined]
        decoded = decode(self.kind, chunk_bytes.to_bytes(), size + SLACK)
        return chunk_spec.prototype.buffer.from_bytes(decoded)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return self._decode_sync(chunk_bytes, chunk_spec)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """See `Codec`."""
        size: int = self.codec.compute_encoded_size(input_byte_length, chunk_spec)
        return size

    def to_dict(self) -> dict[str, Any]:
        """See `Codec`."""
        return dict(self.codec.to_dict())


class _V2(Numcodec):  # type: ignore[misc]
    """A compressor of zarr 2 that stops at the bytes of the chunk's shape."""

    codec_id = "bounded"

    def __init__(self, kind: str, name: str, size: int) -> None:
        self.codec_id = _known(kind, name)
        self.size = size

    def decode(self, content: Any, out: Any = None) -> bytes:
        return decode(self.codec_id, bytes(content), self.size)

    def encode(self, content: Any) -> bytes:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "_V2":
        raise NotImplementedError

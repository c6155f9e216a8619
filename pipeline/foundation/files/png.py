"""The chunks of a PNG file that make its picture.

Pillow refuses a file for what is beside the picture: a colour profile or text above a megabyte, a
damaged note, an animation that does not add up, a missing end. Browsers and viewers show such
files, and so does this pipeline.
"""

import struct
import zlib
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
NEEDED = frozenset({b"IHDR", b"PLTE", b"IDAT"})
BESIDE = frozenset({b"tRNS", b"eXIf"})  # transparency, orientation
TEXT = frozenset({b"tEXt", b"zTXt", b"iTXt"})
# The texts in which Pillow looks for it
ORIENTATION = (
    b"XML:com.adobe.xmp\0",
    b"Raw profile type exif\0",
)
MOST_TEXT = 1 << 16  # bytes of such a text in the file
MOST_INFLATED = 1 << 20  # bytes of it after decompression: Pillow's limit


def picture(content: bytes) -> bytes:
    """Leave out of a PNG file what is no part of its picture, nor says how it is turned."""
    return b"".join([SIGNATURE, *_chunks(content)])


def _chunks(content: bytes) -> Iterator[memoryview | bytes]:
    """The chunks of the picture and an end, which is missing where the picture is cut off."""
    view = memoryview(content)
    start = len(SIGNATURE)
    kind = b""
    while start + 8 <= len(content) and kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", content, start)
        stop = start + 12 + length
        if kind in NEEDED:
            yield view[start:stop]
            if stop > len(content):
                return
        # A damaged chunk of the picture is for the decoder to refuse. Others are left out, as
        # browsers do.
        elif (
            kind in {*BESIDE, *TEXT}
            and _is_whole(content, start, stop)
            and (kind in BESIDE or _turns(kind, bytes(view[start + 8 : stop - 4])))
        ):
            yield view[start:stop]
        start = stop
    yield END


def _is_whole(content: bytes, start: int, stop: int) -> bool:
    checked = memoryview(content)[start + 4 : stop - 4]
    return stop <= len(content) and content[stop - 4 : stop] == struct.pack(
        ">I", zlib.crc32(checked)
    )


def _turns(kind: bytes, text: bytes) -> bool:
    """Whether a text may say how the picture is turned, and is of a size that Pillow reads."""
    name = next((name for name in ORIENTATION if text.startswith(name)), None)
    if name is None or len(text) > MOST_TEXT:
        return False
    if kind == b"tEXt":
        return True
    packed = text[len(name) + 1 :] if kind == b"zTXt" else _packed_part(text[len(name) :])
    unpacking = zlib.decompressobj()
    try:
        return not packed or (
            len(unpacking.decompress(packed, MOST_INFLATED)) < MOST_INFLATED and unpacking.eof
        )
    except zlib.error:
        return False


def _packed_part(fields: bytes) -> bytes:
    """What is compressed of an iTXt chunk's fields: flag, method, language, translated name,
    text.
    """
    if not fields.startswith(b"\1"):
        return b""
    return fields[2:].partition(b"\0")[2].partition(b"\0")[2]

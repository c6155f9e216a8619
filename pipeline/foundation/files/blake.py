"""Checksums of photographs, clips and shards: BLAKE2b-128, in hexadecimal digits."""

import hashlib
import os
from pathlib import Path

from pipeline.foundation.files.gallery_file import GalleryFile

# Bytes read at once; hashlib.file_digest clears as many first, which doubles the time for a small
# file.
PART = 1 << 18


def of_file(path: Path | str) -> str:
    """The checksum of a file."""
    digest = hashlib.blake2b(digest_size=16)
    file = os.open(
        path, os.O_RDONLY | os.O_NONBLOCK
    )  # a third faster for a small file than Python's own file
    try:
        while True:
            part = os.read(file, PART)
            if not part:
                break
            digest.update(part)
    finally:
        os.close(file)
    return digest.hexdigest()


def of_bytes(content: bytes) -> str:
    """The checksum of bytes in memory."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def of_item(file: GalleryFile) -> str:
    """The checksum of a photograph's or clip's bytes; for a part of a file, of the file's checksum
    and the times.
    """
    try:
        whole = of_file(file.place)
    except OSError:  # in a tar, Parquet or an object store
        whole = of_bytes(file.content())
    return of_bytes(f"{whole} {file.start} {file.end}".encode()) if file.part else whole


def if_there(file: GalleryFile) -> str:
    """As `of_item`; "" if the file cannot be read."""
    try:
        return of_item(file)
    except OSError:
        return ""

"""Checksums of photographs, clips and shards: BLAKE2b-128, in hexadecimal digits."""

import hashlib
from pathlib import Path

from pipeline.files.gallery_file import GalleryFile


def of_file(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def of_bytes(content: bytes) -> str:
    """The checksum of bytes in memory."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def of_item(file: GalleryFile) -> str:
    """The checksum of a photograph or clip: of its bytes; for a part of a file, of that digest and the part."""
    whole = of_file(file.path) if file.path.is_file() else of_bytes(file.content())
    return of_bytes(f"{whole} {file.start} {file.end}".encode()) if file.part else whole


def if_there(file: GalleryFile) -> str | None:
    """As `of_item`; None if the file cannot be read."""
    try:
        return of_item(file)
    except OSError:
        return None

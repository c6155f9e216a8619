"""Checksums of photographs, clips and shards: BLAKE2b-128, in hexadecimal digits."""

import hashlib
from pathlib import Path

from pipeline.files.gallery_file import GalleryFile


def of_file(path: Path) -> str:
    """Compute the checksum of a file.

    Args:
        path: The file.

    Returns:
        BLAKE2b-128 of its bytes.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def of_bytes(content: bytes) -> str:
    """Compute the checksum of bytes in memory.

    Args:
        content: A file's bytes.

    Returns:
        BLAKE2b-128.
    """
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def of_item(file: GalleryFile) -> str:
    """Compute the checksum of a photograph or clip.

    Args:
        file: Its file.

    Returns:
        BLAKE2b-128 of the file's bytes; for a part of a file, of that digest and the part.

    Raises:
        OSError: If it cannot be read.
    """
    whole = of_file(file.path) if file.path.is_file() else of_bytes(file.content())
    return of_bytes(f"{whole} {file.start} {file.end}".encode()) if file.part else whole


def if_there(file: GalleryFile) -> str | None:
    """Compute the checksum of a photograph or clip.

    Args:
        file: Its file.

    Returns:
        As `of_item`; None if it cannot be read.
    """
    try:
        return of_item(file)
    except OSError:
        return None

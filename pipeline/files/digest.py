"""Digests of files and of JSON values."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def digest(value: Any) -> str:
    """Digest a JSON value, with sorted keys.

    Args:
        value: Any JSON value.

    Returns:
        SHA-256 in hexadecimal digits.
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def sha256(path: Path) -> str:
    """Digest a file.

    Args:
        path: The file.

    Returns:
        SHA-256 of its bytes, in hexadecimal digits.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_files(paths: Iterable[Path]) -> Iterator[str]:
    """Digest several files, one per core at a time (hashing releases Python's lock).

    Args:
        paths: The files.

    Yields:
        SHA-256 of each file's bytes, in order.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield from threads.map(sha256, paths)


def of_folder(folder: Path, digests: Callable[[Iterable[Path]], Iterable[str]] = of_files) -> str:
    """Digest the names and bytes of all files below a folder.

    Args:
        folder: The folder.
        digests: From files to the SHA-256 of each.

    Returns:
        SHA-256 in hexadecimal digits.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest([[path.relative_to(folder).as_posix(), found]
                   for path, found in zip(files, digests(files), strict=True)])

"""Digests of files and of JSON values."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.foundation.files import regular

AT_ONCE = 1 << 14  # rows
SMALL = 1 << 18  # bytes, which are hashed before threads have started


def digest(value: Any) -> str:
    """SHA-256 of a JSON value with sorted keys, in hexadecimal digits."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()


def digest_of_rows(first: Any, rows: Iterable[Any]) -> str:
    """SHA-256 of the JSON list [FIRST, [ROW, ...]], with `AT_ONCE` rows in memory at a time."""
    left = iter(rows)
    between = ""
    hashed = hashlib.sha256(f"[{json.dumps(first, ensure_ascii=False)}, [".encode())
    while True:
        some = list(islice(left, AT_ONCE))
        if not some:
            break
        hashed.update(
            (between + json.dumps(some, sort_keys=True, ensure_ascii=False)[1:-1]).encode()
        )
        between = ", "
    hashed.update(b"]]")
    return hashed.hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with regular.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_files(paths: Iterable[Path], of_file: Callable[[Path], str] = sha256) -> Iterator[str]:
    """SHA-256 of several files in order, one per core at a time (hashing releases Python's
    lock).
    """
    files = [*paths]
    if sum(file.stat().st_size for file in files if file.is_file()) <= SMALL:
        yield from map(of_file, files)
        return
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield from threads.map(of_file, files)


def of_folder(folder: Path, digests: Callable[[Iterable[Path]], Iterable[str]] = of_files) -> str:
    """SHA-256 of the names of all files below a folder and their digests, which `digests`
    computes.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest(
        [
            [path.relative_to(folder).as_posix(), checksum]
            for path, checksum in zip(files, digests(files), strict=True)
        ]
    )

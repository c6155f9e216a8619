"""Digests of files and of JSON values."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, keys sorted."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_files(paths: Iterable[Path]) -> Iterator[str]:
    """SHA-256 of each file's bytes, in order; a file a core is read at a time (hashing lets go of Python's lock)."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield from threads.map(sha256, paths)


def of_folder(folder: Path) -> str:
    """SHA-256 over the names and bytes of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest([[path.relative_to(folder).as_posix(), found]
                   for path, found in zip(files, of_files(files), strict=True)])

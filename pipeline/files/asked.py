"""The request that a finished folder was made for, so that a repeated request ends before anything is loaded.

asked.json in the folder holds a digest of the request and digests of some files that it wrote. Where one of them
differs, or there is no such record, the command loads the networks and compares in full.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.files.atomic import write_text
from pipeline.files.digest import digest, sha256
from pipeline.files.parsing import from_json

FILE = "asked.json"


def write(folder: Path, request: Mapping[str, Any], wrote: Iterable[str], watched: Path | None = None) -> None:
    """Record a finished request.

    Args:
        folder: The folder that was made.
        request: A JSON value: all that the result depends on, files by their digests.
        wrote: Files of the folder, by their names in it, that must stay as they are.
        watched: A folder of which no file may be written later than this record.
    """
    record: dict[str, Any] = {"request": digest(dict(request)),
                              "wrote": {name: sha256(folder / name) for name in wrote}}
    if watched is not None:
        record["watched"] = str(watched.absolute())
    write_text(folder / FILE, json.dumps(record, indent=1))


def files(folder: Path) -> list[str]:
    """List all files of a folder except the record itself.

    Args:
        folder: The folder that was made.

    Returns:
        Paths relative to the folder, sorted.
    """
    found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != FILE)


def is_done(folder: Path, request: Mapping[str, Any]) -> bool:
    """Compare a request with the recorded one, and the recorded files with their digests.

    Args:
        folder: The folder that the request makes.
        request: As for `write`.

    Returns:
        Whether the folder holds the request's result unchanged, and nothing was written below the watched folder.
    """
    try:
        record = from_json((folder / FILE).read_text(encoding="utf-8"))
        return bool(record["request"] == digest(dict(request))
                    and all(sha256(folder / name) == was for name, was in record["wrote"].items())
                    and not _written_since(folder / FILE, record.get("watched")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def _written_since(file: Path, folder: str | None) -> bool:
    """Whether a file below the folder changed after `file` was written. The system sets that time, no program can."""
    if folder is None:
        return False
    written = file.stat().st_mtime_ns
    return any(os.stat(os.path.join(place, name)).st_ctime_ns > written
               for place, _, names in os.walk(folder) for name in names)

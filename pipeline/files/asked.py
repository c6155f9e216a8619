"""What a finished thing was asked for with, so that the same request is seen to be done before anything is loaded.

asked.json in its folder holds digests of the request and of some files that it wrote. Where one of them differs, or
there is no such record, the long way decides, which loads networks and compares what they say of themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.files.atomic import write_text
from pipeline.files.digest import digest, sha256

FILE = "asked.json"


def write(folder: Path, request: Mapping[str, Any], wrote: Iterable[str]) -> None:
    """Record a request that is done.

    Args:
        folder: of what was made.
        request: a JSON value; all that the result depends on, files by their digests.
        wrote: files of the folder, by their names there, which must stay as they are.
    """
    record = {"request": digest(dict(request)), "wrote": {name: sha256(folder / name) for name in wrote}}
    write_text(folder / FILE, json.dumps(record, indent=1))


def files(folder: Path) -> list[str]:
    """All files of a folder but the record itself, by their names there."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != FILE)


def is_done(folder: Path, request: Mapping[str, Any]) -> bool:
    """Whether the folder holds what this request makes, and its files are those that were written."""
    try:
        record = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return bool(record["request"] == digest(dict(request))
                    and all(sha256(folder / name) == was for name, was in record["wrote"].items()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False

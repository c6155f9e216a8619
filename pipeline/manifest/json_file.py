"""A JSON file of annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.files.parsing import from_json
from pipeline.manifest.reader import text_of
from pipeline.parts.errors import InputError


def json_of(path: Path) -> Any:
    """Read a JSON file."""
    text = text_of(path)
    try:
        return from_json(text)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}") from None

"""Entries of the JSON files of published benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.files.parsing import from_json
from pipeline.manifest.reader import text_of


def entries(path: Path) -> list[Mapping[str, Any]]:
    """Read the objects of a file.

    Args:
        path: A JSON file with a list of objects or an object of objects; or, with the suffix .jsonl, an object a line.

    Returns:
        The objects, in order.

    Raises:
        InputError: If it is another kind of file.
    """
    try:
        held = [from_json(line) for line in text_of(path).splitlines() if line.strip()] if path.suffix == ".jsonl" \
            else from_json(text_of(path))
    except ValueError as error:
        raise InputError(f"{path}: not readable as JSON: {error}") from None
    found = list(held.values()) if isinstance(held, dict) else held
    if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"{path}: expected a list of objects")
    return found


def text(entry: Mapping[str, Any], key: str, path: Path) -> str:
    """Take a text of an entry.

    Args:
        entry: The entry.
        key: Its key.
        path: The file, for messages.

    Returns:
        The text.

    Raises:
        InputError: If it has none of this name.
    """
    if not isinstance(value := entry.get(key), str):
        raise InputError(f"{path}: expected a text {key!r} in every entry, got {str(entry)[:120]}")
    return value

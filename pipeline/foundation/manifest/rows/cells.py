"""What a cell of a table holds: captions, or an image's name."""

import ast
import math
from collections.abc import Iterable
from typing import Any

from pipeline.foundation.files import parsing

LONGEST_LIST = 100_000  # characters of a cell that is read as a list
TEXT_KEYS = ("raw", "caption", "text")
NAME_KEYS = ("path", "file_name", "filename", "url")


def captions_of(value: Any) -> list[str]:
    """The captions of a cell: a text, texts, also lists written as text, or Karpathy's sentences;
    "" if blank.
    """
    if isinstance(value, str):
        caption = value.strip()
        return _listed(caption) or [caption]
    if isinstance(value, dict):
        speaker = value.get("from", value.get("role"))
        if speaker is None:
            return captions_of(_first_of(value, TEXT_KEYS))
        # A turn of a conversation, as of LLaVA: the answer is the caption.
        if speaker not in ("gpt", "assistant"):
            return []
        answer = value.get("value", value.get("content"))
        return captions_of(answer)
    if isinstance(value, list):
        captions = []
        for caption_cell in value:
            captions += captions_of(caption_cell)
        return captions or [""]
    return [""]  # null, or no text


def _first_of(row: dict[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first of some keys that there is; None without any."""
    for key in keys:
        if key in row:
            return row[key]
    return None


def _listed(text: str) -> list[str] | None:
    """A list of texts that is written as JSON or as Python writes it; None for other text."""
    has_brackets = text[:1] == "[" and text[-1:] == "]"
    if not has_brackets or len(text) > LONGEST_LIST:
        return None
    inside = text[1:].lstrip()
    if inside[:1] not in ("'", '"'):
        return None
    for read in (parsing.from_json, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if not isinstance(value, list) or not value:
            continue
        if all(isinstance(part, str) for part in value):
            return [part.strip() for part in value]
    return None


def name_of(value: Any) -> str | None:
    """An image's name in a cell: a text, a number, or Hugging Face's image or list of images; None
    if it has none.
    """
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, list):
        return name_of(value[0]) if value else None
    if isinstance(value, dict):
        for key in NAME_KEYS:
            if value.get(key):
                return name_of(value[key])
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def seconds(value: Any) -> float | None:
    """A time in seconds, NaN for an empty cell; None for something else."""
    is_blank = isinstance(value, str) and not value.strip()
    if value is None or value != value or is_blank:
        return float("nan")
    try:
        number = float(value)
    except (ValueError, TypeError):
        return None
    if math.isfinite(number):
        return number
    return None


def whole(values: Iterable[Any]) -> list[int] | None:
    """Ids of a column as whole numbers of 63 bits; None if one is none."""
    ids = []
    for value in values:
        try:
            id_number = parsing.whole(value)
        except (ValueError, TypeError):
            return None
        if not -(2**63) <= id_number < 2**63:
            return None
        ids.append(id_number)
    return ids

"""What a cell of a table holds: captions, or an image's name."""

import ast
from collections.abc import Iterable
from typing import Any

from pipeline.files import parsing

LONGEST_LIST = 100_000  # characters of a cell that is read as a list


def captions_of(value: Any) -> list[str]:
    """The captions of a cell: a text, texts, also lists written as text, or Karpathy's sentences;
    "" if blank.
    """
    if isinstance(value, str):
        text = value.strip()
        return _listed(text) or [text]
    if isinstance(value, dict):
        speaker = value.get("from", value.get("role"))
        if speaker is not None:  # a turn of a conversation, as of LLaVA: the answer is the caption
            return (
                captions_of(value.get("value", value.get("content")))
                if speaker in ("gpt", "assistant")
                else []
            )
        return captions_of(
            next((value[key] for key in ("raw", "caption", "text") if key in value), None)
        )
    if isinstance(value, list):
        return [caption for part in value for caption in captions_of(part)] or [""]
    return [""]  # null, or no text


def _listed(text: str) -> list[str] | None:
    """A list of texts that is written as JSON or as Python writes it; None for other text."""
    if (
        text[:1] != "["
        or text[-1:] != "]"
        or text[1:].lstrip()[:1] not in ("'", '"')
        or len(text) > LONGEST_LIST
    ):
        return None
    for read in (parsing.from_json, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
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
        return name_of(
            next(
                (value[key] for key in ("path", "file_name", "filename", "url") if value.get(key)),
                None,
            )
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def seconds(value: Any) -> float | None:
    """A time in seconds, NaN for an empty cell; None for something else."""
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        return float("nan")
    try:
        number = float(value)
    except (ValueError, TypeError):
        return None
    return number if number - number == 0 else None


def whole(values: Iterable[Any]) -> list[int] | None:
    """Ids of a column as whole numbers of 63 bits; None if one is none."""
    numbers = []
    for value in values:
        try:
            number = parsing.whole(value)
        except (ValueError, TypeError):
            return None
        if not -(2**63) <= number < 2**63:
            return None
        numbers.append(number)
    return numbers

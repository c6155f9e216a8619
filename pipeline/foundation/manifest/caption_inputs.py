"""What a manifest may hold of captions besides their text, a column for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pipeline.foundation.parts import lazy


@dataclass(frozen=True)
class CaptionInput:
    """A kind of further input of captions: the texts of a column, "" for a caption without one."""

    meaning: str  # of a value of the column
    # From a file that holds them and captions to the column
    read: Callable[[Path, Iterable[str]], list[str]]


# Column -> what is in it. Extensions add them.
CAPTION_INPUTS: lazy.LookupTable[CaptionInput] = lazy.LookupTable(
    {},
    "caption_inputs",
    "further input of captions",
    base="pipeline.foundation.manifest.caption_inputs:CaptionInput",
)

"""Runs and judgements in the layout of one tool, beside tables and JSON of pairs.

A layout is a subclass of `Layout`, in a file of an extension, and a line in its `EXTENSION`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from pipeline.foundation.parts import lazy

# A query, a candidate, and its score, rank or grade, as text.
Row = tuple[str, str, str]


class Other(NamedTuple):
    """What a file holds beside what was read."""

    parts: Sequence[str]  # what the user types behind the file to choose it
    is_sibling: bool  # whether a mean is taken over both, such as two languages of one benchmark


class Layout(ABC):
    """How a tool lays out a run or judgements in a file of text.

    An instance reads one file, whose title it knows when it has read a row.

    Attributes:
        value: What the third column of a row is: "score", "rank" or "grade".
        title: What the file was recognised as, for the user.
        unanswered: The queries whose list is empty, of the rows read so far; each counts as a
            query without a right candidate.
        others: What else the file holds, of the rows read so far.
        has_judgements: Whether the same file, read as judgements, says what is right for its run.
        has_all_queries: Whether a run lists every query of its pool, so that judgements of others
            are of another pool, such as another language's.
        has_parts: Whether a file holds several, of which the user may choose.
        has_all_candidates: Whether each list has every candidate that its query was ranked among.
    """

    value: ClassVar[str]
    has_judgements: ClassVar[bool] = False
    has_all_queries: ClassVar[bool] = True
    has_parts: ClassVar[bool] = False
    has_all_candidates: ClassVar[bool] = False
    title: str

    def __init__(self, path: Path, parts: Sequence[str]) -> None:
        """Read a file.

        Args:
            path: The file, for messages.
            parts: What the user types behind it, FILE:PART:PART, to choose among what it holds.
        """
        self.path = path
        self.parts = parts
        self.unanswered: list[str] = []
        self.others: list[Other] = []

    @classmethod
    @abstractmethod
    def recognises(cls, start: str) -> bool:
        """Whether a file is of this layout.

        Args:
            start: Its first characters, up to 64 thousand.

        Returns:
            True if they are of this layout and of no other one.
        """

    @abstractmethod
    def rows(self, text: Iterable[str]) -> Iterator[Row]:
        """Read the rows.

        Args:
            text: The file in pieces, cut anywhere.

        Yields:
            The ids of a query and of a candidate, and the value, as text.

        Raises:
            ValueError: If it is not of this layout; the message follows the file's name.
        """


RUNS: lazy.LookupTable[type[Layout]] = lazy.LookupTable(
    {}, "run_layouts", base="pipeline.foundation.evaluation.judgements.layouts:Layout"
)
JUDGEMENTS: lazy.LookupTable[type[Layout]] = lazy.LookupTable(
    {}, "judgement_layouts", base="pipeline.foundation.evaluation.judgements.layouts:Layout"
)

# By what is read, as `Kind.noun` calls it.
OF_NOUN = {"a run": RUNS, "judgements": JUDGEMENTS}


def of_start(table: lazy.LookupTable[type[Layout]], start: bytes) -> type[Layout] | None:
    """The layout of a file that begins so; None for a table or pairs."""
    text = start.decode("utf-8", errors="ignore")
    for name in table:
        layout = table[name]
        if layout.recognises(text):
            return layout
    return None

"""Several files of one tool that are one system, such as vectors of queries and of candidates with
the list of what is right.

A kind of them is a subclass of `FileSet`, in a file of an extension, and a line in its `EXTENSION`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from pipeline.foundation.parts import lazy
from pipeline.judge.systems.scores.foreign.identified import Scores
from pipeline.judge.systems.scores.judged import Columns

# The files that a user types, each with the names behind it: PATH:NAME:NAME.
Typed = Sequence[tuple[Path, Sequence[str]]]


class FileSet(ABC):
    """Files that belong together, of which the user types some, or their folder."""

    @classmethod
    @abstractmethod
    def recognises(cls, typed: Typed) -> bool:
        """Whether what is typed is such a set.

        Args:
            typed: One or two files or folders, with the names behind them.

        Returns:
            True if their names, and what is beside them or in them, are those of this set.
        """

    @abstractmethod
    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        """Read the scores.

        Args:
            typed: What `recognises` knows.
            columns: Which images and captions are meant, where the files do not say it.
            normalise: Whether vectors are divided by their lengths.

        Returns:
            The scores, and the images and captions that they are of.

        Raises:
            InputError: For what is damaged, missing or not meant.
        """


SETS: lazy.LookupTable[type[FileSet]] = lazy.LookupTable(
    {}, "file_sets", base="pipeline.judge.systems.scores.foreign.file_sets:FileSet"
)


def of_typed(typed: Typed) -> FileSet | None:
    """What reads the set that is typed; None for files by themselves."""
    for name in SETS:
        kind = SETS[name]
        if kind.recognises(typed):
            return kind()
    return None

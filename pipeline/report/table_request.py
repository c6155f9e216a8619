"""What is asked of a table: which rows and columns, and in which print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rows = Literal["all", "published", "measured"]
"""Which rows a table shows."""


@dataclass(frozen=True)
class TableRequest:
    """Which rows and columns a table shows.

    Attributes:
        delta: Whether a column after each test set shows the difference of a measured RSUM to the published one of the
            same system; where the table has no RSUM, of the sum of the recalls shown. Differences are of the numbers as
            printed.
        rows: The published rows, the measured rows, or all.
        metrics: The metrics of each direction, e.g. r1 or nDCG@10, and rsum; () for those that the paper prints.
    """

    delta: bool = False
    rows: Rows = "all"
    metrics: tuple[str, ...] = ()

    @property
    def published(self) -> bool:
        """Whether published rows are shown."""
        return self.rows != "measured"

    @property
    def measured(self) -> bool:
        """Whether measured rows are shown."""
        return self.rows != "published"

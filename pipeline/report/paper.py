"""The paper that tables go into: the widths of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TextFont = Literal["times", "computer modern"]
SMALL = {9.0: 1.03, 8.0: 1.06, 7.0: 1.14}
"""Size in points -> how much wider Computer Modern is drawn, for its size, than at 10 points."""


@dataclass(frozen=True)
class Paper:
    """The two-column paper that tables go into, in points (72.27 an inch).

    Attributes:
        column: The width of a column of text.
        text: The width of both.
        height: The height of the text.
        font: Its font, which decides how wide numbers are.
    """

    column: float
    text: float
    height: float
    font: TextFont = "times"

    def stretch(self, size: float) -> float:
        """How much wider than `letter_widths` says its font is at a size.

        Args:
            size: A size of type in points.

        Returns:
            A factor: 1 for Times.
        """
        return SMALL.get(size, 1.0) if self.font == "computer modern" else 1.0

    @classmethod
    def of_centimetres(cls, column: float, text: float, height: float, font: TextFont = "times") -> Paper:
        """A paper measured in centimetres.

        Args:
            column: The width of a column of text.
            text: The width of both.
            height: The height of the text.
            font: Its font.

        Returns:
            The paper.
        """
        points = 72.27 / 2.54
        return cls(column * points, text * points, height * points, font)


ACL = Paper.of_centimetres(7.7, 16.0, 22.5)
"""acl.sty on A4, but of CVPR's height: the columns of the one are narrower, the pages of the other are lower."""

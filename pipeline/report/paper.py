"""The paper that tables go into: the widths of its columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """The two-column paper that tables go into, in points (72.27 an inch).

    Attributes:
        column: The width of a column of text.
        text: The width of both.
        height: The height of the text.
    """

    column: float
    text: float
    height: float

    @classmethod
    def of_centimetres(cls, column: float, text: float, height: float) -> Paper:
        """A paper measured in centimetres.

        Args:
            column: The width of a column of text.
            text: The width of both.
            height: The height of the text.

        Returns:
            The paper.
        """
        return cls(*(length / 2.54 * 72.27 for length in (column, text, height)))


ACL = Paper.of_centimetres(7.7, 16.0, 22.5)
"""acl.sty on A4, but of CVPR's height: the columns of the one are narrower, the pages of the other are lower."""

"""The paper that tables go into: the widths of its columns, and how wide text is in print, estimated without TeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TextFont = Literal["times", "computer modern"]
SMALL = {9.0: 1.03, 8.0: 1.06, 7.0: 1.14}
"""Size in points -> how much wider Computer Modern is drawn, for its size, than at 10 points."""


@dataclass(frozen=True)
class Paper:
    """The two-column paper that tables go into, in points (72.27 an inch)."""

    column: float  # the width of a column of text
    text: float  # the width of both
    height: float  # the height of the text
    font: TextFont = "times"  # its font, which decides how wide numbers are

    def stretch(self, size: float) -> float:
        """How much wider than `width` says its font is at a size."""
        return SMALL.get(size, 1.0) if self.font == "computer modern" else 1.0

    @classmethod
    def of_centimetres(cls, column: float, text: float, height: float, font: TextFont = "times") -> Paper:
        """A paper measured in centimetres."""
        points = 72.27 / 2.54
        return cls(column * points, text * points, height * points, font)


ACL = Paper.of_centimetres(7.7, 16.0, 22.5)
"""acl.sty on A4, but of CVPR's height: the columns of the one are narrower, the pages of the other are lower."""


LETTERS = {
    0.3: " ,.:;il", 0.35: "!'-[]`fj", 0.4: "()Irst", 0.45: "cez†‡", 0.5: '"$*/0123456789?\\^_ago{}–𝑑𝑝', 0.55: "Jkqvxy~",
    0.6: "<>Sbdhnpuλ", 0.65: "LZ", 0.7: "EFP", 0.75: "ABCHNRTUVXYw", 0.8: "&+=DGKOQ×±−", 0.85: "#%mΔ✓✗", 0.95: "@M",
    1.0: "|∞→…—", 1.05: "W",
}
"""Width in em -> letters: the wider of Computer Modern and Times, rounded up to 0.05."""
OTHER = 3.5
"""Any other letter: it may be printed as its code point, [U+4E2D]."""
BOLD = 1.15
"""How much wider bold is: Computer Modern's digits."""

_WIDTHS = {letter: width for width, letters in LETTERS.items() for letter in letters}


def width(text: str, bold: bool = False) -> float:
    """Estimate the width of a line of text in em, the size of the type; rather too much than too little."""
    return sum(_WIDTHS.get(letter, OTHER) for letter in text) * (BOLD if bold else 1.0)

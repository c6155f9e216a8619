"""How wide a text is in print: an estimate for deciding whether a table fits, without running TeX."""

from __future__ import annotations

LETTERS = {
    0.3: " ,.:;il", 0.35: "!'-[]`fj", 0.4: "()Irst", 0.45: "cez†‡", 0.5: '"$*/0123456789?\\^_ago{}–𝑑𝑝', 0.55: "Jkqvxy~",
    0.6: "<>Sbdhnpu", 0.65: "LZ", 0.7: "EFP", 0.75: "ABCHNRTUVXYw", 0.8: "&+=DGKOQ×±−", 0.85: "#%mΔ✓✗", 0.95: "@M",
    1.0: "|∞→…—", 1.05: "W",
}
"""Width in em -> letters: the wider of Computer Modern and Times, rounded up to 0.05."""
OTHER = 3.5
"""Any other letter: it may be printed as its code point, [U+4E2D]."""
BOLD = 1.15
"""How much wider bold is: Computer Modern's digits."""

_WIDTHS = {letter: width for width, letters in LETTERS.items() for letter in letters}


def width(text: str, bold: bool = False) -> float:
    """Estimate the width of a text.

    Args:
        text: One line of plain text.
        bold: Whether it is set bold.

    Returns:
        Its width in em, the size of the type; rather too much than too little.
    """
    return sum(_WIDTHS.get(letter, OTHER) for letter in text) * (BOLD if bold else 1.0)

"""What a terminal may show: text from data never moves its cursor, colours it or renames its window."""

from __future__ import annotations

import unicodedata

# Controls, halves of characters, and separators of lines and paragraphs; and marks that turn text round, behind which
# a file name can hide its ending.
HIDDEN = ("Cc", "Cs", "Zl", "Zp")
TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def printable(text: str) -> str:
    """The text with all such characters spelled out: \\x1b."""
    return "".join(_spelled(each) if unicodedata.category(each) in HIDDEN or ord(each) in TURNING else each
                   for each in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

"""Text for a terminal: text from data cannot move its cursor, change its colours or rename its window."""

import unicodedata

# Controls, halves of characters, and separators of lines and paragraphs; and marks that turn text round, behind which
# a file name can hide its ending.
HIDDEN = ("Cc", "Cs", "Zl", "Zp")
TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def printable(text: str) -> str:
    r"""Escape control characters, line separators and marks that reverse the direction of text.

    Args:
        text: Any text.

    Returns:
        The text with these characters as escapes: \x1b.
    """
    return "".join(_spelled(each) if unicodedata.category(each) in HIDDEN or ord(each) in TURNING else each
                   for each in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

"""Text for a terminal: without control characters; in lines in which paths and commands in
`backticks` stay whole. And cells of CSV for a spreadsheet.
"""

import re
import textwrap
import unicodedata
from typing import Any

# Columns that every terminal has.
TERMINAL = 80
# Categories of characters that a terminal does not show: controls, halves of characters, separators
# of lines.
HIDDEN = ("Cc", "Cs", "Zl", "Zp")
# Control characters that reverse text, by which a file name can hide its ending.
TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
# Text that a spreadsheet would run as a formula when it opens a CSV file.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Wrapper(textwrap.TextWrapper):
    # What is not broken: a path with which the text begins, which may have spaces; a command; a
    # word; 5 %.
    wordsep_simple_re = re.compile(r"(^[^:`]*/[^:`]*:(?=\s)|\S*`[^`]+`\S*|\s+(?!%))")


def wrapped(text: str, indent: str = "", width: int = TERMINAL) -> str:
    """Break a sentence, made printable, into lines of a terminal's width; those after the first are
    indented by two more columns.
    """
    plain = printable(text.replace("\n", " ").replace("\t", " "))
    return _Wrapper(
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    ).fill(plain)


def printable(text: str) -> str:
    r"""Text for a terminal: characters that move the cursor, change colours or reverse text become
    escapes: \x1b.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if unicodedata.category(character) in HIDDEN or ord(character) in TURNING:
        return character.encode("unicode_escape").decode("ascii")
    return character


def cell(value: Any) -> Any:
    """Put an apostrophe before text that begins like a formula, and make characters that are not
    shown escapes.
    """
    # Spreadsheets then show it as text, and a terminal that prints the file obeys none of it. For
    # files that people open. Files that the pipeline reads again hold the text unchanged. Source:
    # OWASP, CSV Injection.
    if not isinstance(value, str):
        return value
    if value.startswith(FORMULA):
        return f"'{printable(value)}"
    return "\n".join(map(printable, value.split("\n")))

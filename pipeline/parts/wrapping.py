"""Break sentences into lines for a terminal. Paths and commands in `backticks` stay whole, for copying."""

import re
import textwrap

# Columns that every terminal has.
TERMINAL = 80


class _Wrapper(textwrap.TextWrapper):
    # What is not broken: a path with which the text begins, which may have spaces; a command; a word.
    wordsep_simple_re = re.compile(r"(^[^:`]*/[^:`]*:(?=\s)|\S*`[^`]+`\S*|\s+)")


def wrapped(text: str, indent: str = "", width: int = TERMINAL) -> str:
    """Break a sentence into lines of a terminal's width; those after the first are indented by two more columns."""
    return _Wrapper(width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False,
                    break_on_hyphens=False).fill(text)

"""What standard output and standard error can show: their width, colour and bold."""

import os
import re
import shutil
import sys
from typing import TextIO

import click

# What a line of messages begins with -> its colour.
COLOURS = {"error:": "red", "warning:": "yellow"}
LEAD = re.compile("|".join(map(re.escape, COLOURS)))
# What a line of a comparison says last, or before a colon -> its colour.
VERDICTS = {
    "matches": "green",
    "all match": "green",
    "all as written": "green",
    "differs": "red",
    "missing": "red",
    "not recorded": "yellow",
}
VERDICT = re.compile(rf"(?<= )({'|'.join(VERDICTS)})(?=:|$)")


def width(stream: TextIO, whole: bool = False) -> int | None:
    """The columns of a terminal, or of COLUMNS; None where lines may have any length.

    whole: output for other programs, for which COLUMNS is ignored.
    """
    is_narrow = stream.isatty() or (not whole and bool(os.environ.get("COLUMNS")))
    return shutil.get_terminal_size().columns if is_narrow else None


def has_colour(stream: TextIO) -> bool:
    """Whether a stream shows colour and bold: a terminal does. NO_COLOR and FORCE_COLOR decide
    otherwise.
    """
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced != "0" and (
        bool(forced) or (stream.isatty() and os.environ.get("TERM") != "dumb")
    )


def strong(text: str) -> str:
    """Text in bold; what prints it leaves this out where there is no colour."""
    return click.style(text, bold=True)


def painted(line: str) -> str:
    """A message whose first word, error or warning, is in colour."""
    if (lead := LEAD.match(line)) is None:
        return line
    return click.style(lead[0], fg=COLOURS[lead[0]], bold=True) + line.removeprefix(lead[0])


def judged(line: str) -> str:
    """A line of a comparison whose verdict is in colour."""
    return VERDICT.sub(lambda found: click.style(found[0], fg=VERDICTS[found[0]]), line, count=1)


def echo(text: str, err: bool = False) -> None:
    """Print text with its colours, or without them where a stream has none."""
    stream = sys.stderr if err else sys.stdout
    click.echo(text, err=err, color=has_colour(stream))

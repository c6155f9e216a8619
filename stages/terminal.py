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
# What a line of a comparison says last, or before a colon or semicolon -> its colour.
VERDICTS = {
    "matches": "green",
    "all match": "green",
    "all as written": "green",
    "differs": "red",
    "missing": "red",
    "not recorded": "yellow",
}
VERDICT = re.compile(rf"(?<= )({'|'.join(VERDICTS)})(?=[:;]|$)")


def width(stream: TextIO, whole: bool = False) -> int | None:
    """The columns of a terminal, or of COLUMNS; None where lines may have any length.

    whole: output for other programs, for which COLUMNS is ignored.
    """
    is_narrow = stream.isatty() or (not whole and bool(os.environ.get("COLUMNS")))
    if not is_narrow:
        return None
    return shutil.get_terminal_size().columns


def has_colour(stream: TextIO) -> bool:
    """Whether a stream shows colour and bold: a terminal does. NO_COLOR and FORCE_COLOR decide
    otherwise.
    """
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    if forced:
        return forced != "0"
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def strong(text: str) -> str:
    """Text in bold; what prints it leaves this out where there is no colour."""
    return click.style(text, bold=True)


def painted(line: str) -> str:
    """A message whose first word, error or warning, is in colour."""
    match = LEAD.match(line)
    if match is None:
        return line
    lead = match[0]
    return click.style(lead, fg=COLOURS[lead], bold=True) + line.removeprefix(lead)


def judged(line: str) -> str:
    """A line of a comparison whose verdict is in colour."""
    match = VERDICT.search(line)
    if match is None:
        return line
    verdict = match[0]
    coloured = click.style(verdict, fg=VERDICTS[verdict])
    return line[: match.start()] + coloured + line[match.end() :]


def echo(text: str, err: bool = False) -> None:
    """Print text with its colours, or without them where a stream has none.

    Messages that cannot be written, to a terminal that is gone or a full disk, are left out, and
    the work goes on.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        click.echo(text, err=err, color=has_colour(stream))
    except OSError as error:
        is_reader_gone = isinstance(error, BrokenPipeError) and not err
        if error.filename or is_reader_gone:  # a file name: of --log
            raise
        if not err:
            raise OSError(error.errno, error.strerror, "standard output") from None
        discard(stream)


def discard(stream: TextIO) -> None:
    """Have a stream's bytes go nowhere, also those that wait to be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def reopen_closed() -> None:
    """Have standard input, output and error that are closed, as a daemon's may be, lead nowhere."""
    # Else the next file that is opened gets their numbers, and what is printed.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the smallest number that is free
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115

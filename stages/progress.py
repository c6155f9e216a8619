"""Progress of long work, and the two options on its output: --quiet and --log."""

import contextlib
import io
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TextIO, cast

import click

from pipeline.foundation.files import streams
from pipeline.foundation.parts.errors import refusing
from pipeline.foundation.parts.wrapping import printable, wrapped
from stages import terminal
from stages.values import OutputPath

if TYPE_CHECKING:
    from pipeline.foundation.artefacts import Draft, Reference, Request
    from pipeline.foundation.artefacts.making import IfChanged

# Seconds between two lines of progress if there is no terminal.
SECONDS = 30.0


class Progress:
    """A command's progress: a bar on a terminal, elsewhere and in the log a line now and then, none
    with --quiet.
    """

    quiet: ClassVar[bool] = False
    log: ClassVar[TextIO | None] = None

    def __init__(
        self, what: str, unit: str, total: float | None = None, shown: bool = True
    ) -> None:
        self.what = what
        self.total = total
        self.done = 0.0
        self._kept = 0.0  # by an earlier run, see `piece`
        self._note = ""
        self.units = f"{unit}s"
        if unit.endswith("y"):
            self.units = f"{unit.removesuffix('y')}ies"
        self._shown = shown
        self._start = self._last = time.monotonic()
        self._counted_from = 0.0
        self._lines = 0
        self._bar: Any = None
        if shown and not Progress.quiet and sys.stderr.isatty():
            from tqdm import tqdm

            stream = getattr(sys.stderr, "stream", sys.stderr)  # no bars in the log
            self._bar = tqdm(
                total=total, unit=unit, desc=what, leave=False, smoothing=0.1, file=stream
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._lines and failure[0] is None:
            self._write(f"{self._count()} in {_duration(time.monotonic() - self._start)}")

    def update(self, count: float = 1) -> None:
        self.done += count
        if self._bar is not None:
            self._bar.update(count)
        if time.monotonic() - self._last >= SECONDS:
            self._last = time.monotonic()
            seconds = max(time.monotonic() - self._start, 1e-9)
            rate = (self.done - self._counted_from) / seconds
            line = f"{self._count()}, {rate:,.3g} {self.units}/s"
            if self.total is not None and rate:
                line += f", {_duration((self.total - self.done) / rate)} left"
            if self._note:
                line += f", {self._note}"
            self._write(line)

    def reach(self, done: float) -> None:
        self.update(done - self.done)

    def reset(self, total: float) -> None:
        """Begin again, now that the total is known."""
        self.resume(0.0, total)

    def resume(self, done: float, total: float) -> None:
        """Set what an earlier run has done, which does not count for this run's speed, and the
        total.
        """
        self.total = total
        self.done = done
        self._counted_from = done
        self._start = time.monotonic()
        if self._bar is not None:
            self._bar.total = total
            self._bar.initial = done
            self._bar.n = done
            self._bar.refresh()

    def piece(self, count: float, before: bool) -> None:
        """Add finished units of an earlier run (before) or of this one."""
        if before:
            self._kept += count
            self.resume(self.done + count, self.total or 0)
        else:
            self.update(count)

    @property
    def kept(self) -> str:
        """What an interrupted run had finished, as the end of a line: "; 2,048 images kept"."""
        if not self._kept:
            return ""
        return f"; {self._kept:,.0f} {self.units} kept from an interrupted run"

    def step(self, what: str) -> None:
        self.note(what)
        self.update()

    def note(self, text: str) -> None:
        self._note = text
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)

    def _count(self) -> str:
        count = f"{self.done:,.0f}"
        if self.total is not None:
            count += f" of {self.total:,.0f}"
        return f"{count} {self.units}"

    def _write(self, text: str) -> None:
        self._lines += 1
        line = printable(f"{self.what}: {text}")
        if self._shown and self._bar is None and not Progress.quiet:
            terminal.echo(line, err=True)  # and with it to the log
        elif self._shown and Progress.log is not None:
            _append(Progress.log, line)


def say(
    *lines: str,
    err: bool = True,
    whole: bool = False,
    colour: Callable[[str], str] = terminal.painted,
) -> None:
    """Print lines, above any bars, each broken to the width of a terminal or of COLUMNS.

    err: to standard error, not to standard output. whole: output for other programs, for which
        COLUMNS is ignored.
    colour: gives a line its colours.
    """
    columns = terminal.width(sys.stderr if err else sys.stdout, whole)
    bars = sys.modules.get("tqdm")
    with bars.tqdm.external_write_mode() if bars else contextlib.nullcontext():
        for line in map(printable, lines):
            terminal.echo(colour(_fitted(line, columns)), err)


def _fitted(line: str, width: int | None) -> str:
    """Break a line that is too long; its parts keep its indentation."""
    if width is None or len(line) <= width:
        return line
    text = line.lstrip()
    return wrapped(text, line.removesuffix(text), width)


def unless_up_to_date(
    path: Path,
    request: "Request",
    made_from: "Mapping[str, Reference]",
    write: "Callable[[Draft], str]",
    if_changed: "IfChanged" = "redo",
) -> None:
    """Let `write` fill a draft of an artefact, unless the artefact is up to date, and print what it
    says of it.
    """
    from pipeline.foundation.artefacts import making

    lines = ["nothing to do"]
    with making(path, request, made_from, if_changed=if_changed) as draft:
        if draft is not None:
            lines = write(draft).split("\n")
    say(f"{path}: {lines[0]}", *lines[1:], err=False)


def options() -> list[click.Option]:
    return [
        click.Option(
            ["--quiet"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_set_quiet,
            help="Show no progress.",
        ),
        click.Option(
            ["--log"],
            type=OutputPath(),
            metavar="FILE",
            expose_value=False,
            callback=_set_log,
            help="Append what is printed, and progress, to this file, each line with its time.",
        ),
    ]


def _set_quiet(context: click.Context, option: click.Parameter, quiet: bool) -> None:
    Progress.quiet = quiet
    context.call_on_close(lambda: setattr(Progress, "quiet", False))


def _set_log(context: click.Context, option: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    close_log()
    with refusing(OSError, lambda error: f"--log {path}: {error.strerror}"):
        if streams.is_stream(path):
            Progress.log = io.TextIOWrapper(streams.opened(path), encoding="utf-8")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            Progress.log = path.open("a", encoding="utf-8")
        _append(Progress.log, printable(" ".join(["pipeline", *sys.argv[1:]])))
    sys.stdout = cast(TextIO, Copied(sys.stdout, Progress.log))
    sys.stderr = cast(TextIO, Copied(sys.stderr, Progress.log))


def close_log() -> None:
    if Progress.log is not None:
        sys.stdout = getattr(sys.stdout, "stream", sys.stdout)
        sys.stderr = getattr(sys.stderr, "stream", sys.stderr)
        with contextlib.suppress(OSError):  # of a full disk, which writing has named
            Progress.log.close()
        Progress.log = None


class Copied:
    """A stream whose full lines go to the log as well."""

    def __init__(self, stream: TextIO, log: TextIO) -> None:
        self.stream = stream
        self._log = log
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            _append(self._log, click.unstyle(line))
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _append(log: TextIO, line: str) -> None:
    try:
        log.write(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {line}\n")
        log.flush()
    except OSError as error:
        close_log()  # the error is printed without it
        raise OSError(error.errno, error.strerror, log.name) from None


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))

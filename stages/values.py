"""Types of options and arguments: paths, texts and numbers, checked before a command loads
anything.

A relative path is below --root, like all that a command reads and writes. Text that is empty, which
an unset variable of the shell gives, and numbers that are not finite are refused for every option
of every command, see `checked`.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, Literal

import click

from pipeline.foundation.files import remote, streams
from pipeline.foundation.parts.errors import InputError, meant
from pipeline.foundation.parts.lazy import LookupTable
from pipeline.foundation.settings.kinds import TABLES

# Where a context keeps the paths of a command line: each with the option that names it, and whether
# that writes.
_PATHS = "stages.values.paths"


class FilePath(click.Path):
    """A file or folder; a relative one is below --root."""

    writes = False

    def __init__(self, in_store: bool = False, **more: Any) -> None:
        super().__init__(path_type=Path, **more)
        self.in_store = in_store

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name, and an address that is none, or that this option cannot take."""
        text = os.fspath(value)
        if not text.strip():
            self.fail("the name is empty", param, ctx)
        if "\0" in text:
            self.fail("a name cannot contain the character NUL", param, ctx)
        try:
            if remote.is_address(text):
                if not self.in_store:
                    raise InputError(
                        f"{text!r} is in an object store; name a file or folder of this machine"
                    )
                remote.require_whole(text, with_key=self.writes)
                return Path(text)
            below = os.fspath(self._below_root(text, ctx))
            place = Path(os.fsdecode(super().convert(below, param, ctx)))
            self.check(place)
        except InputError as error:
            self.fail(str(error), param, ctx)
        if ctx is not None:
            _refuse_shared(place, self.writes, param, ctx)
        return place

    def check(self, place: Path) -> None:
        """Check a place of this machine further. Raises InputError."""

    def _below_root(self, text: str, ctx: click.Context | None) -> Path:
        return below_root(text, ctx)


def _refuse_shared(
    place: Path, writes: bool, param: click.Parameter | None, ctx: click.Context
) -> None:
    """Refuse to write to a file or folder that the command line names twice, also by a link."""
    if streams.is_stream(place):
        return
    named = ctx.meta.setdefault(_PATHS, {})
    option = "FILE"
    if isinstance(param, click.Option):
        option = param.opts[-1]
    other, is_written = named.setdefault(os.path.realpath(place), (option, writes))
    if other != option and (is_written or writes):
        raise click.BadParameter(
            f"{place} is also named by {other}; a command writes to a place of its own", ctx, param
        )


class RootPath(FilePath):
    """The value of --root, a folder that exists."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, exists=True)

    def _below_root(self, text: str, ctx: click.Context | None) -> Path:
        return Path(text)


class ColumnFile(FilePath):
    """COLUMN=FILE, as a pair: a column of a table and the file that it is read from."""

    name = "column and file"

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read both; the file is checked as that of any option."""
        if isinstance(value, tuple):
            return value
        column, equals, file = str(value).partition("=")
        if not column or not equals:
            self.fail(f"expected COLUMN=FILE, got {str(value)[:60]!a}", param, ctx)
        return column, super().convert(file, param, ctx)


class OutputPath(FilePath):
    """A file or folder to write, see `pipeline.foundation.files.streams`."""

    writes = True

    def __init__(self, kind: str | None = None, endings: tuple[str, ...] = (), **more: Any) -> None:
        refused = "file_okay"
        if kind is None:
            refused = "dir_okay"
        super().__init__(**{refused: False, **more})
        self.kind = kind
        self.endings = endings

    def check(self, place: Path) -> None:
        """Refuse a name of another kind, and a place that holds something else."""
        if self.endings and place.suffix.lower() not in self.endings:
            raise InputError(f"{place}: expected a name that ends in {' or '.join(self.endings)}")
        streams.refuse_occupied(place, self.kind)


class OutputsPath(OutputPath):
    """A file to write; or a folder, for a file of each system: one that exists, or a name that ends
    in /.
    """

    def __init__(self, ending: str) -> None:
        super().__init__(endings=(ending,))
        self._folder = FilePath(file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse the name of a new folder that ends like a file's."""
        text = os.fspath(value)
        if not text.endswith("/") and not below_root(text, ctx).is_dir():
            return super().convert(value, param, ctx)
        place = self._folder.convert(value, param, ctx)
        if place.suffix.lower() in self.endings and not place.is_dir():
            self.fail(f"{text}: a new folder's name cannot end in {place.suffix}", param, ctx)
        return place

    def check(self, place: Path) -> None:
        """Refuse a name of another kind, and say how a folder is named."""
        if place.suffix.lower() not in self.endings:
            raise InputError(
                f"{place}: expected a name that ends in {self.endings[0]}, or in / for a folder"
            )
        super().check(place)


class PicturePath(OutputPath):
    """A picture to write, with its numbers beside it as CSV; or these alone."""

    def __init__(self) -> None:
        super().__init__(endings=(".pdf", ".svg", ".png", ".csv"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse a CSV name that the command line uses for something else."""
        place = super().convert(value, param, ctx)
        if ctx is not None and place.suffix.lower() != ".csv":
            _refuse_shared(place.with_suffix(".csv"), self.writes, param, ctx)
        return place


def below_root(text: str, context: click.Context | None = None) -> Path:
    """A path as a command takes it: a relative one is below --root."""
    context = context or click.get_current_context(silent=True)
    if context is None:
        return Path(text)
    root = context.params.get("root") or Path()
    return Path(root, text)


class Text(click.types.StringParamType):
    """A text. What the command writes must be other files than those that it names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = super().convert(value, param, ctx)
        if not text.strip():
            self.fail("it is empty", param, ctx)
        if "\0" in text:
            self.fail("it contains the character NUL", param, ctx)
        if ctx is not None:
            for part in _possible_files(text):
                place = below_root(part, ctx)
                if os.path.isfile(place):
                    _refuse_shared(place, False, param, ctx)
        return text


def _possible_files(text: str) -> set[str]:
    """What of IMAGES:CAPTIONS, several with commas between, and TITLE=… of these may be a file."""
    possible = {text}
    for part in re.split("[:,]", text):
        possible.add(part)
        for mark in re.finditer("=", part):
            possible.add(part[mark.end() :])
    return possible


class Names(Text):
    """Names with commas between, as a tuple."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        text = super().convert(value, param, ctx)
        names = tuple(name.strip() for name in text.split(","))
        if not all(names) or len(set(names)) < len(names):
            self.fail(f"{value!r}: expected names with one comma between, each once", param, ctx)
        return names


class OneOf(click.Choice[str]):
    """One of several names; an unknown one is answered with the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = list(map(str, self.choices))
        if value not in names:
            self.fail(f"{value!r}; {meant(str(value), names)}", param, ctx)
        return str(value)


class PartName(OneOf):
    """The name of a part of a kind. Those of other packages are looked for only where they are
    asked for or listed.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.case_sensitive = True

    @property
    def table(self) -> LookupTable[Any]:
        """The parts of its kind."""
        return TABLES[self.kind]

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.table)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if self.table.is_built_in(value):
            return str(value)
        return super().convert(value, param, ctx)


class CountOrAll(click.ParamType):
    name = "K"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Literal["all"]:
        if value == "all":
            return "all"
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r}: expected a number from 1 up, or all", param, ctx)
        return int(value)


class _Finite(click.types.FloatParamType):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse NaN and infinity, which no comparison with a limit refuses."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


class _FiniteRange(click.FloatRange, _Finite):
    """A finite number between limits."""


def checked(type_: click.ParamType) -> click.ParamType:
    """The type that takes a type's place in every command: the same values, without empty text, NaN
    and infinity.
    """
    if type(type_) is click.Choice:
        return OneOf(type_.choices)
    if isinstance(type_, click.FloatRange):
        return _FiniteRange(type_.min, type_.max, type_.min_open, type_.max_open)
    if isinstance(type_, click.types.FloatParamType):
        return _Finite()
    if type(type_) is click.types.StringParamType:
        return Text()
    return type_

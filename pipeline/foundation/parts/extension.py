"""Extensions: the folders of `pipeline/extensions`, each of which says what it adds to the core."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable


@dataclass(frozen=True)
class Command:
    """A command that an extension adds."""

    purpose: str
    place: str  # "module:object" of the click command
    extra: str | None = None  # Without which it can do nothing
    # The heading under which `pipeline --help` lists it. A group such as `lab` has no headings.
    section: str = ""


@dataclass(frozen=True)
class Extension:
    """What an extension adds.

    parts: Kind, as in `LookupTable`, to names to "module:object". commands: By their whole names.
    marks: The file by which a folder of its models is known, to the kind of dual encoder.
    """

    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)


@cache
def extensions() -> tuple[Extension, ...]:
    """All extensions, in the order of `pipeline.extensions.EXTENSIONS`."""
    names = import_module("pipeline.extensions").EXTENSIONS
    return tuple(import_module(f"pipeline.extensions.{name}").EXTENSION for name in names)


@cache
def parts(kind: str) -> dict[str, str]:
    """What extensions add to a table of parts: names to "module:object"."""
    added: dict[str, str] = {}
    for extension in extensions():
        added |= extension.parts.get(kind, {})
    return added


@cache
def commands() -> dict[str, Command]:
    """The commands that extensions add, by their whole names."""
    added: dict[str, Command] = {}
    for extension in extensions():
        added |= extension.commands
    return added


@cache
def marks() -> dict[str, str]:
    """The files by which folders of the models of extensions are known, to their kinds."""
    added: dict[str, str] = {}
    for extension in extensions():
        added |= extension.marks
    return added


def files(name: str) -> Iterator[Traversable]:
    """The files of a name in the folders of extensions, in their order."""
    for extension in import_module("pipeline.extensions").EXTENSIONS:
        file = resources.files(f"pipeline.extensions.{extension}") / name
        if file.is_file():
            yield file

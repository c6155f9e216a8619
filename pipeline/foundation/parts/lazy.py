"""Imports that are delayed until something is used. Importing torch takes two seconds, and `--help`
does not need it.

Those of a package's `__init__` are below `if TYPE_CHECKING:`, where type checkers find them, and
`lazy.imports(__name__)` follows: each name, and each module of the package, is imported when it is
first used.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pipeline.foundation.parts import extension, plugins
from pipeline.foundation.parts.errors import InputError, look_up, unknown

if TYPE_CHECKING:
    from pipeline.foundation.parts.section import Section

Named = TypeVar("Named", covariant=True)
Built = TypeVar("Built")


class _Package(ModuleType):
    """A package that imports what it offers on demand."""

    _offered: dict[str, tuple[str, str]]

    def __getattr__(self, name: str) -> Any:
        if name in self._offered:
            module, original = self._offered[name]
            value = getattr(import_module(module), original)
        elif not name.startswith("__") and find_spec(f"{self.__name__}.{name}") is not None:
            value = import_module(f"{self.__name__}.{name}")
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds an imported module in its package; this must not replace an offered object of
        # the same name.
        if not (name in self._offered and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._offered})


def imports(package: str) -> None:
    """Delay what a package's `__init__` imports below `if TYPE_CHECKING:` until it is first used.

    The names are read from the file itself, so that they are written once, where type checkers and
    editors find them.
    """
    module = sys.modules[package]
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    offered = {}
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.If):
            continue
        if ast.unparse(statement.test) != "TYPE_CHECKING":
            continue
        for line in statement.body:
            if isinstance(line, ast.ImportFrom) and line.module != package:
                for alias in line.names:
                    offered[alias.asname or alias.name] = (str(line.module), alias.name)
    module.__dict__["_offered"] = offered
    module.__class__ = _Package


class LookupTable(Mapping[str, Named], Generic[Named]):
    """A lookup table from names to "module:object" or "module:object.attribute", each imported when
    it is looked up.

    After its own names come those of extensions (`pipeline.foundation.parts.extension`), and those
    that installed packages add by entry points (`pipeline.foundation.parts.plugins`). They are
    looked for when the table is listed, or asked for a name that is not its own.

    kind: "poolings", with entry points of the group "vse_pipeline.poolings". one: what one is
    called in messages; None for the kind without its s. base: the place of the
    class that another package's part must be a subclass or an instance of; None where it need not.
    """

    def __init__(
        self, places: Mapping[str, str], kind: str, one: str | None = None, base: str | None = None
    ) -> None:
        self._places = places
        self.kind = kind
        self.one = one or kind.removesuffix("s")
        self._base = base

    def __getitem__(self, name: str) -> Named:
        value: Named
        if self.is_built_in(name):
            value = imported(self._place(name))
            return value
        with self._blamed(name):
            value = imported(self._place(name))
            if self._base:
                _check(value, imported(self._base))
        return value

    def is_built_in(self, name: str) -> bool:
        """Whether a name is the table's own or an extension's, not another package's."""
        return name in self._places or name in extension.parts(self.kind)

    def find(self, name: str) -> Named:
        """Import an entry."""
        return look_up(self.one, name, self)

    def declared(self, name: str) -> type[Section]:
        """Find the class of options that a part declares, without importing it; `NoOptions` if it
        declares none.
        """
        place = self._known(name)
        if self.is_built_in(name):
            return _options_of(place)
        with self._blamed(name):
            return _options_of(place)

    def title(self, name: str, in_words: bool = False) -> str:
        """What tables call a part, or what sentences do: as its options declare it, else its name.

        A part is called by its name also where its package is not installed or cannot be imported.
        """
        try:
            declared = self.declared(name)
        except InputError:
            return name
        title = declared.IN_WORDS if in_words else declared.TITLE
        return str(title or name)

    def options(self, name: str, chosen: Mapping[str, Any]) -> Section:
        """Complete a part's chosen options with defaults and check them, without importing the
        part.
        """
        from pydantic import ValidationError

        from pipeline.foundation.parts.section import first_fault

        section = self.declared(name)
        known = list(section.model_fields)
        for option in map(str, chosen):
            if option not in known:
                near = get_close_matches(option, known, 1)
                hint = f"did you mean {near[0]}? " if near else ""
                listed = ", ".join(known) or "none"
                raise InputError(
                    f"unknown option of the {self.one} {name}, {option!r}; {hint}its options: "
                    f"{listed}"
                )
        try:
            return section.model_validate(dict(chosen))
        except ValidationError as error:
            raise InputError(f"{self.one} {name}: {first_fault(error)}") from None

    def build(
        self: LookupTable[Callable[..., Built]], name: str, *given: Any, **options: Any
    ) -> Built:
        """Call an entry with the arguments that every entry takes, and its checked options last if
        it declares any.
        """
        further = self.further(name, options)
        entry = self[name]
        # An installed package offers it, see pipeline.foundation.parts.plugins.
        if not callable(entry):
            raise InputError(
                f"{self.one} {name!r}: expected a class or a function, got {type(entry).__name__}"
            )
        return entry(*given, *further)

    def further(self, name: str, options: Mapping[str, Any]) -> tuple[Section, ...]:
        """The last argument that a part receives: its checked options; none if it declares none."""
        checked = self.options(name, options)
        if not type(checked).model_fields:
            return ()
        return (checked,)

    def module(self, name: str) -> str:
        """Name the module that defines an entry, without importing it."""
        return self._known(name).partition(":")[0]

    def _known(self, name: str) -> str:
        if name not in self:
            raise unknown(self.one, name, self)
        return self._place(name)

    @contextmanager
    def _blamed(self, name: str) -> Iterator[None]:
        """Name the package of a part that cannot be imported."""
        try:
            yield
        except Exception as error:  # what a package's own code raises may be anything
            if self.is_built_in(name):
                raise
            package = self._added()[name].package
            raise InputError(
                f"{name!r}, one of the {self.kind} of {package}, cannot be used: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _place(self, name: str) -> str:
        if name in self._places:
            return self._places[name]
        if self.is_built_in(name):
            return extension.parts(self.kind)[name]
        return self._added()[name].place

    def _all(self) -> dict[str, str]:
        """Every name and its place: the table's own, those of extensions, of other packages."""
        added = {name: offer.place for name, offer in self._added().items()}
        return self._built_in() | added

    def _built_in(self) -> dict[str, str]:
        return {**self._places, **extension.parts(self.kind)}

    def _added(self) -> Mapping[str, plugins.Offer]:
        return plugins.besides(self.kind, self._built_in())

    def __contains__(self, name: object) -> bool:
        return self.is_built_in(str(name)) or name in self._added()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _options_of(place: str) -> type[Section]:
    """The class of options beside a part, in the module `options` of its package."""
    from pipeline.foundation.parts.section import NoOptions, Section

    module, _, path = place.partition(":")
    package = module.rpartition(".")[0] or module
    beside = f"{package}.options"
    try:
        options = import_module(beside)
    except ModuleNotFoundError as error:
        if error.name != beside:
            raise
        options = None
    part = path.rpartition(".")[2]
    declared = getattr(options, f"{part}Options", NoOptions)
    if not (isinstance(declared, type) and issubclass(declared, Section)):
        raise TypeError(f"{beside}.{part}Options is no subclass of {Section.__name__}")
    _require_whole(declared)
    return declared


def _check(part: object, base: type) -> None:
    """Refuse another package's part that is no whole subclass of a class, and no instance of it."""
    if isinstance(part, base):
        return
    if not (isinstance(part, type) and issubclass(part, base)):
        name = getattr(part, "__name__", type(part).__name__)
        raise TypeError(
            f"expected a subclass or an instance of {base.__module__}.{base.__name__}, got {name}"
        )
    _require_whole(part)


def _require_whole(part: type) -> None:
    """Refuse a class that lacks methods which its base leaves to it."""
    lacking = sorted(getattr(part, "__abstractmethods__", ()))
    if lacking:
        raise TypeError(f"{part.__name__} lacks the method {', '.join(lacking)}")


def imported(place: str) -> Any:
    """Import an object by "module:object"."""
    module, _, path = place.partition(":")
    return reduce(getattr, path.split("."), import_module(module))

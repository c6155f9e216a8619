"""Packages whose names are imported when they are first used.

Importing torch takes two seconds, and `--help` needs nothing of it. A package's `__init__` lists what it offers below
`if TYPE_CHECKING:`, where type checkers and editors find it, and ends with `lazy.offer(__name__)`. Each of these names,
and each module of the package, is then imported when it is first asked for.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Generic, TypeVar

Named = TypeVar("Named")


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
        # Python binds a module in its package once it is imported; a name that is offered stays what was offered.
        if not (name in self._offered and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._offered})


def offer(package: str) -> None:
    """Let a package import on demand what its `__init__` imports below `if TYPE_CHECKING:`.

    Args:
        package: its `__name__`.
    """
    module = sys.modules[package]
    assert module.__spec__ is not None
    assert module.__spec__.loader is not None
    source = module.__spec__.loader.get_source(package)  # type: ignore[attr-defined]
    blocks = [node for node in ast.parse(source).body
              if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    module.__dict__["_offered"] = {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for block in blocks for statement in block.body if isinstance(statement, ast.ImportFrom)
        for alias in statement.names}
    module.__class__ = _Package


class Table(Mapping[str, Named], Generic[Named]):
    """A lookup table from names to objects, each imported when it is looked up.

    Args:
        places: name -> "module:object".
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Named:
        module, _, value = self._places[name].partition(":")
        found: Named = getattr(import_module(module), value)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

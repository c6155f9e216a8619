"""Packages that import on demand: what they offer is what their `__init__` says, whatever was
imported before.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.objectives import OBJECTIVES
from pipeline.make.heads.pooling import POOLINGS

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    ".".join(file.relative_to(ROOT).parent.parts)
    for file in ROOT.glob("pipeline/**/__init__.py")
    if "lazy.imports(__name__)" in file.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_all_that_is_offered_is_there(name: str) -> None:
    package = import_module(name)
    for offered in package._offered:
        assert getattr(package, offered) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_a_module_of_an_offered_name_does_not_hide_it() -> None:
    import_module("pipeline.foundation.manifest.build")
    from pipeline.foundation import manifest

    assert not isinstance(manifest.build, ModuleType)
    assert callable(manifest.build)
    assert isinstance(manifest.split_names, ModuleType)


@pytest.mark.parametrize("table", [POOLINGS, OBJECTIVES])
def test_tables_look_their_objects_up(table: lazy.LookupTable[type]) -> None:
    for name in table:
        assert table[name].__module__ == table.module(name)
    assert "nothing" not in table
    with pytest.raises(KeyError):
        _ = table["nothing"]
    with pytest.raises(InputError, match=r"unknown .* 'nothing'"):
        table.module("nothing")

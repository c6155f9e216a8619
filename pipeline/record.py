"""What made a thing: the versions of the parts whose numbers it rests on.

A part is an entry of a table, such as "poolings/gpo", or a law that many share, such as "training". Its version is
raised by hand when its numbers change, and by nothing else: modules may be moved and renamed, options added, messages
reworded. `tests/test_golden.py` fails where numbers change and the version does not. Parts of other packages have no
version here; they go by digests of their own source files (`pipeline.plugins.sources`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline import plugins
from pipeline.files.atomic import write_text
from pipeline.files.parsing import from_json
from pipeline.lazy import LookupTable

RAISED: dict[str, int] = {}
"""Part -> its version, where that is not 1. A comment says what changed."""
FILE = "code.json"
Versions = Mapping[str, int | str]
"""Part of ours -> its version; module of another package -> its digest."""


def version(part: str) -> int:
    """Look up the version of a part of ours, such as "poolings/gpo" or "training"."""
    return RAISED.get(part, 1)


def versions(*parts: str | tuple[LookupTable[Any], str]) -> dict[str, int | str]:
    """Collect what the numbers of something depend on of the code.

    Args:
        *parts: Laws by name, such as "training"; entries of tables, such as `(POOLINGS, "gpo")`.

    Returns:
        What is recorded, sorted by name.

    Raises:
        InputError: For a name that a table does not have.
    """
    found: dict[str, int | str] = {}
    for part in parts:
        if isinstance(part, str):
            found[part] = version(part)
            continue
        table, name = part
        if table.is_built_in(name):
            found[f"{table.kind}/{name}"] = version(f"{table.kind}/{name}")
        else:
            found |= plugins.sources(table.module(name))
    return dict(sorted(found.items()))


def changed(folder: Path, now: Versions) -> list[str]:
    """Compare what a folder records with the code as it is now.

    Args:
        folder: A folder with a record. Its earlier form, a digest a module, stands for version 1 of every part.
        now: What `versions` gives.

    Returns:
        The parts and modules that differ, sorted; all of `now` where nothing is recorded.
    """
    try:
        there = dict(from_json((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return list(now)
    others = {name for name, made in (there | dict(now)).items() if isinstance(made, str) and _is_of_others(name)}
    return sorted([name for name, made in now.items() if isinstance(made, int) and there.get(name, 1) != made]
                  + [name for name in others if there.get(name) != now.get(name)])


def _is_of_others(module: str) -> bool:
    return not module.startswith(("pipeline.", "stages."))


def write(folder: Path, made_by: Versions) -> None:
    """Record in a folder which versions made it."""
    write_text(folder / FILE, json.dumps(dict(made_by), indent=1))


def named(parts: list[str]) -> str:
    """Name some parts in a message: the first one and the number of others."""
    return min(parts, default="") + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")

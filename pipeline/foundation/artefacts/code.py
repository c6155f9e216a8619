"""Versions of the parts of the code, which say whether what an earlier version made is up to date.

A part is an entry of a table, such as "poolings/gpo", or code that many share, such as "training".
Its version is raised by hand when the numbers that it computes change, and only then: modules may
be moved and renamed, options added, messages reworded. `tests/test_golden.py` fails if numbers
change and the version does not. Parts of other packages have no version here; digests of their
source files are recorded instead (`pipeline.foundation.parts.plugins.sources`).
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.lazy import LookupTable

# Part -> its version, where that is not 1. A comment says what changed.
RAISED: dict[str, int] = {
    "figures": 3,  # markers of published numbers are hollow; lines of legends show their dashes
    "report": 7,  # intervals of differences are wider where few images differ
    "reranking": 2,  # the order of candidates with equal scores is drawn in another way
    "sample": 2,  # captions say "an orange", not "a orange"
    "tables": 6,  # the same swaps of whole images test all numbers of a pair
    "training/ance": 2,  # of equally near negatives the first come first
    "training/ce": 2,  # the same
}
# Part of this package -> its version; module of another package -> its digest.
Versions: TypeAlias = Mapping[str, int | str]


def version(part: str) -> int:
    """The version of a part, such as "poolings/gpo" or "training"."""
    return RAISED.get(part, 1)


def versions(*parts: str | tuple[LookupTable[Any], str]) -> dict[str, int | str]:
    """The versions of code: part -> version, or module elsewhere -> digest. parts: names, entries
    of tables.
    """
    collected: dict[str, int | str] = {}
    for part in parts:
        if isinstance(part, str):
            collected[part] = version(part)
            continue
        table, name = part
        if table.is_built_in(name):
            own_part = f"{table.kind}/{name}"
            collected[own_part] = version(own_part)
            continue
        module = table.module(name)
        collected |= plugins.sources(module)
        module_of_options = table.declared(name).__module__
        if module_of_options.partition(".")[0] == module.partition(".")[0]:
            collected |= plugins.sources(module_of_options)
    return dict(sorted(collected.items()))


def changed(recorded: Versions, current: Versions) -> list[str]:
    """Name the parts and modules whose versions differ, sorted. A part that is not recorded has
    version 1.
    """
    both = {**recorded, **current}
    modules = {name for name, digest in both.items() if isinstance(digest, str)}
    changed_modules = [name for name in modules if recorded.get(name) != current.get(name)]
    changed_parts = [
        name
        for name, number in current.items()
        if isinstance(number, int) and recorded.get(name, 1) != number
    ]
    return sorted(changed_parts + changed_modules)


def named(parts: list[str]) -> str:
    """The first of some parts for a message, and the number of the others."""
    if len(parts) > 1:
        return f"{min(parts)} and {len(parts) - 1} more"
    return min(parts, default="")

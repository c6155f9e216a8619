"""Build something by its name from a lookup table; refuse in one clear line what the table does not know."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pipeline.errors import InputError

Built = TypeVar("Built")


def build_by_name(
    kind: str, table: Mapping[str, Callable[..., Built]], name: str, *given: Any, **options: Any
) -> Built:
    """Call ``table[name](*given, **options)``.

    Args:
        kind: what the table holds, for the messages: "pooling".
        table: name -> class or function.
        given: the positional arguments that every entry takes.
        options: the entry's own options.

    Raises:
        InputError: for an unknown name or option; the message lists the known ones.
    """
    if name not in table:
        raise InputError(f"unknown {kind} {name!r}; known: {', '.join(table)}")
    known = list(inspect.signature(table[name]).parameters)[len(given) :]
    unknown = ", ".join(repr(option) for option in options if option not in known)
    if unknown:
        raise InputError(f"{kind} {name!r} has no option {unknown}; known: {', '.join(known) or 'none'}")
    return table[name](*given, **options)

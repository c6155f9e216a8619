"""Build something by its name from a lookup table; refuse in one clear line what the table does not know."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pipeline.errors import InputError

STRICT = ConfigDict(strict=True, allow_inf_nan=False)
Built = TypeVar("Built")


def build_by_name(
    kind: str, table: Mapping[str, Callable[..., Built]], name: str, *given: Any, **options: Any
) -> Built:
    """Call ``table[name](*given, **options)``.

    Args:
        kind: what the table holds, for the messages: "pooling".
        table: name -> class or function.
        given: the positional arguments that every entry takes.
        options: the entry's own options; a value must be of the type that the entry's signature says.

    Raises:
        InputError: for an unknown name or option (the message lists the known ones), or a value of another type.
    """
    if name not in table:
        raise InputError(f"unknown {kind} {name!r}; known: {', '.join(table)}")
    signature = inspect.signature(table[name], eval_str=True)
    types = {known.name: known.annotation for known in list(signature.parameters.values())[len(given) :]}
    unknown = ", ".join(repr(option) for option in options if option not in types)
    if unknown:
        raise InputError(f"{kind} {name!r} has no option {unknown}; known: {', '.join(types) or 'none'}")
    for option, value in options.items():
        try:
            TypeAdapter(types[option], config=STRICT).validate_python(value)
        except ValidationError:
            expected = inspect.formatannotation(types[option])
            raise InputError(f"{kind} {name!r}: its {option} must be {expected}, got {value!r}") from None
    return table[name](*given, **options)

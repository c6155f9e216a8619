"""Build an object by its name in a lookup table. Unknown names and options are refused in one line."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pipeline.parts.errors import InputError, unknown

STRICT = ConfigDict(strict=True, allow_inf_nan=False)
Built = TypeVar("Built")


def build_by_name(
    kind: str, table: Mapping[str, Callable[..., Built]], name: str, *given: Any, **options: Any
) -> Built:
    """Call ``table[name](*given, **options)``.

    Args:
        kind: What the table holds, for messages: "pooling".
        table: Name -> class or function.
        name: A key of the table.
        *given: The positional arguments that every entry takes.
        **options: The entry's own options; a value must have the type in the entry's signature.

    Returns:
        The object.

    Raises:
        InputError: For an unknown name or option (the message lists the known ones), or a value of another type.
    """
    if name not in table:
        raise unknown(kind, name, table)
    if not callable(table[name]):  # an installed package offers it, see pipeline.parts.plugins
        raise InputError(f"{kind} {name!r}: expected a class or a function, got {type(table[name]).__name__}")
    signature = inspect.signature(table[name], eval_str=True)
    types = {known.name: known.annotation for known in list(signature.parameters.values())[len(given) :]}
    for option in options:
        if option not in types:
            raise unknown(f"option of the {kind} {name},", option, types)
    for option, value in options.items():
        try:
            TypeAdapter(types[option], config=STRICT).validate_python(value)
        except ValidationError:
            expected = inspect.formatannotation(types[option])
            raise InputError(f"{kind} {name!r}: its {option} must be {expected}, got {value!r}") from None
    return table[name](*given, **options)

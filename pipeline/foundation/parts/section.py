"""Sections: strictly checked settings, also the options of parts, and what is said of a fault in
them.
"""

import math
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.foundation.parts.errors import meant


class Section(BaseModel):
    """A section of the settings. Unknown keys are refused, and values must have exactly the
    declared type.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    # What tables and figures call the part whose options these are; "" for its name in settings.
    TITLE: ClassVar[str] = ""
    # What sentences call it, "GPO" of "GPO pooling"; "" for its name in settings.
    IN_WORDS: ClassVar[str] = ""
    # Settings that are recorded even at their default: those that name a network, and those of the
    # first release, so that its stores and plans stay valid.
    ALWAYS_RECORDED: ClassVar[frozenset[str]] = frozenset({"network", "weights"})

    def recorded(self, exclude: Collection[str] = ()) -> dict[str, Any]:
        """The settings to record beside a result and to compare with later ones: JSON values by
        name.

        A setting at its default is left out. A setting that is added later, with a default,
        therefore leaves the records as they were, and earlier results stay valid. The default
        itself must not change.

        Args:
            exclude: Settings on which the result does not depend.
        """
        defaults = {
            name: field.get_default(call_default_factory=True)
            for name, field in type(self).model_fields.items()
            if not field.is_required()
        }
        at_default = {name for name, default in defaults.items() if getattr(self, name) == default}
        fields = self.model_dump(exclude=(at_default - self.ALWAYS_RECORDED) | set(exclude))
        for name in fields:
            part = getattr(self, name)
            if isinstance(part, Section):
                fields[name] = part.recorded()
        return fields


# What to write where YAML read a value of another kind than was meant.
QUOTES = "a name that looks like a number, true or null needs quotes"
TRUE = "write true or false"


def first_fault(error: Exception, section: type[BaseModel] | None = None) -> str:
    """The first of pydantic's findings in one line: where, what is wrong, and the value received;
    unknown keys first.

    Args:
        error: pydantic's error; another one's text is returned.
        section: What was checked, whose keys an unknown one is compared with; None to leave that
            out.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    faults = error.errors(include_url=False)
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    place = ".".join(str(part) for part in fault["loc"]) or "top level"
    above = fault["loc"][:-1]
    if fault["type"] == "extra_forbidden":
        missing = [
            str(other["loc"][-1])
            for other in faults
            if other["type"] == "missing" and other["loc"][:-1] == above
        ]
        hint = _meant(str(fault["loc"][-1]), missing, _keys(section, above))
        if not hint:
            return f"{place}: unknown key"
        return f"{place}: unknown key; {hint}"
    if fault["type"] == "missing":
        return f"{place}: missing"
    # Where something else than the literals is allowed too.
    if fault["type"] == "literal_error" and str(fault["loc"][-1]).startswith("literal["):
        messages = [other["msg"] for other in faults if other["loc"][:-1] == above]
        reason = " or ".join(message.removeprefix("Input should be ") for message in messages)
        return f"{'.'.join(map(str, above))}: expected {reason}, got {fault['input']!r}"
    reason = str(fault["ctx"]["error"]) if fault["type"] == "value_error" else fault["msg"]
    if fault["type"] == "part" or (
        fault["type"] == "value_error" and isinstance(fault["input"], Mapping)
    ):
        return f"{place}: {reason}" if fault["loc"] else reason  # all of it is said already
    if fault["type"] == "model_type":
        reason = "expected a section, KEY: VALUE"
    if (
        fault["type"] == "int_type"
        and isinstance(fault["input"], float)
        and not math.isfinite(fault["input"])
    ):
        reason = "Input should be a finite number"
    hint = ""
    if fault["type"] == "string_type" and isinstance(fault["input"], int | float | None):
        hint = f"; {QUOTES}"
    elif fault["type"] == "bool_type":
        hint = f"; {TRUE}"
    return f"{place}: {reason}, got {fault['input']!r:.200}{hint}"


def _meant(name: str, missing: list[str], known: list[str]) -> str:
    """What an unknown key may mean: a missing one rather than another."""
    near = get_close_matches(name, missing, 1)
    if near:
        return f"did you mean {near[0]}?"
    if not known:
        return ""
    return meant(name, known)


def _keys(section: Any, path: tuple[int | str, ...]) -> list[str]:
    """The keys of the section that a path leads to; [] if it leads to none."""
    kinds = [section]
    for part in path:
        below = []
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                below += [
                    field.annotation
                    for name, field in kind.model_fields.items()
                    if part in (name, field.alias)
                ]
            elif get_origin(kind) in (dict, list):
                below.append(get_args(kind)[-1])
        kinds = []
        for annotation in below:
            kinds += _plain(annotation)
    keys: list[str] = []
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += [field.alias or name for name, field in kind.model_fields.items()]
    return keys


def _plain(kind: Any) -> list[Any]:
    """The types that an annotation allows."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        alternatives: list[Any] = []
        for alternative in get_args(kind):
            alternatives += _plain(alternative)
        return alternatives
    return [kind]


class NoOptions(Section):
    """The options of a part that declares none."""

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
        left_out = set(exclude)
        for name, field in type(self).model_fields.items():
            if field.is_required() or name in self.ALWAYS_RECORDED:
                continue
            if getattr(self, name) == field.get_default(call_default_factory=True):
                left_out.add(name)
        fields = self.model_dump(exclude=left_out)
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
    unknown_keys = (fault for fault in faults if fault["type"] == "extra_forbidden")
    fault = next(unknown_keys, faults[0])
    kind = fault["type"]
    given = fault["input"]
    names = [str(part) for part in fault["loc"]]
    place = ".".join(names) or "top level"
    above = fault["loc"][:-1]
    beside = [other for other in faults if other["loc"][:-1] == above]
    if kind == "extra_forbidden":
        missing = [str(other["loc"][-1]) for other in beside if other["type"] == "missing"]
        hint = _meant(names[-1], missing, _keys(section, above))
        if not hint:
            return f"{place}: unknown key"
        return f"{place}: unknown key; {hint}"
    if kind == "missing":
        return f"{place}: missing"
    # Where something else than the literals is allowed too.
    if kind == "literal_error" and names[-1].startswith("literal["):
        alternatives = [other["msg"].removeprefix("Input should be ") for other in beside]
        expected = " or ".join(alternatives)
        return f"{'.'.join(names[:-1])}: expected {expected}, got {given!r}"
    reason = fault["msg"]
    if kind == "value_error":
        reason = str(fault["ctx"]["error"])
    # All of it is said already.
    if kind == "part" or (kind == "value_error" and isinstance(given, Mapping)):
        return f"{place}: {reason}" if names else reason
    if kind == "model_type":
        reason = "expected a section, KEY: VALUE"
    if kind == "int_type" and isinstance(given, float) and not math.isfinite(given):
        reason = "Input should be a finite number"
    hint = ""
    if kind == "string_type" and isinstance(given, int | float | None):
        hint = f"; {QUOTES}"
    elif kind == "bool_type":
        hint = f"; {TRUE}"
    return f"{place}: {reason}, got {given!r:.200}{hint}"


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
                for name, field in kind.model_fields.items():
                    if part in (name, field.alias):
                        below.append(field.annotation)
            elif get_origin(kind) in (dict, list):
                below.append(get_args(kind)[-1])
        kinds = []
        for annotation in below:
            kinds += _plain(annotation)
    keys: list[str] = []
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, field in kind.model_fields.items():
                keys.append(field.alias or name)
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

"""Values that sections of the settings have in common: names, counts, devices."""

import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, StringConstraints

Item = TypeVar("Item")
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*$")]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
# The kinds of torch's devices that compute.
DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "npu", "xla")


def device(name: str) -> str:
    """Check how devices are written, several with commas; whether they are available is checked
    where they are used.
    """
    for each in name.split(","):
        if not re.fullmatch(rf"({'|'.join(DEVICES)})(:(\d+|\*))?", each.strip()):
            raise ValueError(
                f"unknown device {each.strip()!r}; there are: {', '.join(DEVICES)}, with a number where "
                "there are several, such as cuda:1"
            )
    return name


Device = Annotated[str, AfterValidator(device)]


def without_repeats(names: list[Item]) -> list[Item]:
    """Check that no name is given twice."""
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"{twice[0]!r} is named twice")
    return names


# One or more values, each named once.
Axis = Annotated[list[Item], Field(min_length=1), AfterValidator(without_repeats)]

"""What a command is asked to make."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from pipeline.foundation.artefacts.code import Versions

ABSENT = "nothing"


class Request(BaseModel):
    """All that an artefact depends on besides the artefacts it is made from.

    A subclass for each kind of artefact has a field for each setting. Files that are no artefacts,
    such as weights, are named by their digests. Its JSON is what records hold, what is compared,
    and what `pipeline lab plan` writes for DVC. Settings that change no result, such as the device,
    are not part of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: ClassVar[str]  # The kind of artefact that it makes, such as "head"

    @abstractmethod
    def versions(self) -> Versions:
        """The versions of the code that the artefact depends on, as `artefacts.versions`."""

    def recorded(self) -> dict[str, Any]:
        """The request as JSON values, as records hold it."""
        return self.model_dump(mode="json")


def difference(recorded: Mapping[str, Any], requested: Mapping[str, Any]) -> str | None:
    """Name the first difference of two JSON values: "training.epochs was 3, is 4"; None if they are
    equal.
    """
    for key in dict.fromkeys((*requested, *recorded)):
        before = recorded.get(key, ABSENT)
        current = requested.get(key, ABSENT)
        if isinstance(before, Mapping) and isinstance(current, Mapping):
            inner = difference(before, current)
            if inner:
                return f"{key}.{inner}"
        elif before != current:
            return f"{key} was {_short(before)}, is {_short(current)}"
    return None


def _short(value: Any) -> str:
    text = str(value)
    if len(text) > 40:
        return f"{text[:37]}..."
    return text

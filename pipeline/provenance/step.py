"""One comparison on the way from a number to its photographs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.files import record

MATCHES, DIFFERS, NOT_THERE, NOT_RECORDED = "matches", "differs", "not there", "not recorded"


@dataclass(frozen=True)
class Step:
    """A comparison."""

    path: Path  # the file or store
    what: str  # what of it is compared
    recorded: str | None  # the recorded value; None if nothing was recorded
    found: str | None  # the value found; None if the file is missing

    @property
    def verdict(self) -> str:
        """One of MATCHES, DIFFERS, NOT_THERE and NOT_RECORDED."""
        if self.found is None:
            return NOT_THERE
        if self.recorded is None:
            return NOT_RECORDED
        return MATCHES if self.found == self.recorded else DIFFERS


@dataclass(frozen=True)
class Result:
    """What is traced."""

    path: Path  # the system's similarity store
    made_from: Mapping[str, Any]  # the result's record, or the store's if there is no result
    source: Path | None = None  # the file of results; None if only a store is traced
    entry: Mapping[str, Any] | None = None  # that file's entry of the system


def of_record(folder: Path) -> Iterator[Step]:
    """Compare record.json, which lies beside a head or in a store, with its seal."""
    if (seals := record.seals(folder)) is not None:
        yield Step(folder / record.FILE, "its seal", *seals)

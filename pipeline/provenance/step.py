"""One comparison on the way from a number to its photographs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.files import record

MATCHES, DIFFERS, NOT_THERE, NOT_RECORDED = "matches", "differs", "not there", "not recorded"


@dataclass(frozen=True)
class Step:
    """A comparison.

    Attributes:
        path: The file or store.
        what: What of it is compared.
        recorded: The recorded value; None if nothing was recorded.
        found: The value found; None if the file is missing.
    """

    path: Path
    what: str
    recorded: str | None
    found: str | None

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
    """What is traced.

    Attributes:
        path: The system's similarity store.
        made_from: The result's record, or the store's if there is no result.
        source: The file of results; None if only a store is traced.
        entry: That file's entry of the system.
    """

    path: Path
    made_from: Mapping[str, Any]
    source: Path | None = None
    entry: Mapping[str, Any] | None = None


def of_record(folder: Path) -> Iterator[Step]:
    """Compare what stands beside a head or in a store, of its versions and of what was asked for, with its seal."""
    if (seals := record.seals(folder)) is not None:
        yield Step(folder / record.FILE, "its seal", *seals)

"""One link of the chain from a number to its photographs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

MATCHES, DIFFERS, NOT_THERE, NOT_RECORDED = "matches", "differs", "not there", "not recorded"


class Places(Protocol):
    """Where things lie: `stages.layout.Layout`."""

    def manifest(self, dataset: str) -> Path: ...
    def features(self, dataset: str, feature: str) -> Path: ...
    def head(self, dataset: str, name: str) -> Path: ...
    def similarity(self, dataset: str, name: str) -> Path: ...


@dataclass(frozen=True)
class Step:
    """A file or store, what of it is compared, what was recorded (None: nothing was), and what is found (None: it is
    not there)."""

    path: Path
    what: str
    recorded: str | None
    found: str | None

    @property
    def verdict(self) -> str:
        if self.found is None:
            return NOT_THERE
        if self.recorded is None:
            return NOT_RECORDED
        return MATCHES if self.found == self.recorded else DIFFERS


@dataclass(frozen=True)
class Result:
    """What is traced.

    path: the system's similarity store. made_from: what a result says made it, or where there is no result the store
    itself. source: the file of results; None where a store is traced by itself. entry: what that file holds of it.
    """

    path: Path
    made_from: Mapping[str, Any]
    source: Path | None = None
    entry: Mapping[str, Any] | None = None

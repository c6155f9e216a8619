"""What is traced."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.systems.scores.made import Made


@dataclass(frozen=True)
class Result:
    """A system, by its store, or by its entry in a file of results."""

    path: Path  # the system's similarity store
    made_from: Made  # the result's record, or the store's if there is no result
    source: Path | None = None  # the file of results; None if only a store is traced
    entry: Mapping[str, Any] | None = None  # that file's entry of the system

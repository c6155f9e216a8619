"""What is traced."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.provenance.results import Result
from pipeline.systems.scores.made import Made


@dataclass(frozen=True)
class Traced:
    """A system, by its store, or by its entry in a file of results."""

    path: Path  # the system's store
    made_from: Made  # the result's record, or the store's if there is no result
    file: Path | None = None  # the file of results; None if only a store is traced
    result: Result | None = None  # that file's entry of the system

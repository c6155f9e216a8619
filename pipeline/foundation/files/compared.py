"""One comparison of a file or store with what is recorded of it."""

from dataclasses import dataclass
from pathlib import Path

MATCHES = "matches"
DIFFERS = "differs"
MISSING = "missing"
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Step:
    """A comparison."""

    path: Path  # the file or store
    what: str  # what of it is compared
    recorded: str | None  # the recorded value; None if nothing was recorded
    found: str | None  # the value found; None if the file is missing

    @property
    def verdict(self) -> str:
        """One of MATCHES, DIFFERS, MISSING and NOT_RECORDED."""
        if self.found is None:
            return MISSING
        if self.recorded is None:
            return NOT_RECORDED
        return MATCHES if self.found == self.recorded else DIFFERS

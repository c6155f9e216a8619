"""Throughput as tables show it: each system as a multiple of the slowest one that was timed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import InputError
from pipeline.report.numerals import significant
from pipeline.report.table import Note


@dataclass(frozen=True)
class Timing:
    """The rates that one table shows.

    Attributes:
        rates: Recipe, or recipe-text -> items a second; empty where nothing was timed.
        method: A sentence on how they were timed.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    method: str = ""

    def ratios(self) -> dict[str, str]:
        """The rates relative to the slowest one.

        Returns:
            System -> a multiple as printed, e.g. 4.9× or 147,000×.
        """
        slowest = min(self.rates.values(), default=1.0)
        return {name: f"{significant(rate / slowest)}×" for name, rate in self.rates.items()}

    def note(self, heading: str) -> list[Note]:
        """The note on the column of ratios.

        Args:
            heading: The column's heading, "" where the table has none.

        Returns:
            One note, or none where nothing was timed or the table has no such column.
        """
        if not heading or not self.rates:
            return []
        slowest = min(self.rates, key=lambda name: self.rates[name])
        text = f"{heading} measured here: a multiple of the slowest that was timed, {slowest}. {self.method}"
        return [Note(text.strip())]


def read_timing(throughput: Mapping[str, Any], what: str) -> Timing:
    """Read the rates of one kind.

    Args:
        throughput: The parsed `results/throughput.json`; {} where nothing was timed.
        what: The kind, "retrieval" or "poolings"; "" for a table without ratios.

    Returns:
        The rates and how they were timed, both empty where there are none.

    Raises:
        InputError: If the rates cannot be read, or one of them is not a finite number above 0.
    """
    if not what or not throughput:
        return Timing()
    try:
        rates = {system: float(rate) for system, rate in throughput[what].items()}
        method = str(throughput["methods"][what])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"throughput cannot be read at {error}; run `pipeline throughput` again") from None
    if slow := [system for system, rate in rates.items() if not 0 < rate < math.inf]:
        raise InputError(f"the throughput of {slow[0]!r} is no number above 0; run `pipeline throughput` again")
    return Timing(rates, method)

"""Throughput as tables show it: each pooling as a multiple of the one that the paper prints as 1.0×."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.parts.errors import InputError
from pipeline.report.table import Note, significant


@dataclass(frozen=True)
class Timing:
    """The rates that one table shows."""

    rates: Mapping[str, float] = field(default_factory=dict)  # recipe -> items a second; empty where nothing was timed
    base: str = ""  # the recipe that counts as 1.0×, as in the paper; "" where the paper's was not timed
    method: str = ""  # a sentence on how they were timed
    busy: bool = False  # whether other work ran on the machine meanwhile

    def ratios(self) -> dict[str, str]:
        """Recipe -> its multiple of the base as printed, e.g. 4.9×; {} where the base was not timed."""
        if self.base not in self.rates:
            return {}
        return {name: f"{significant(rate / self.rates[self.base])}×" for name, rate in self.rates.items()}

    def note(self, heading: str) -> list[Note]:
        """The note on the column of ratios."""
        text = f"{heading}: other work ran on the machine while measured rows were timed; time them again."
        return [Note(text)] if heading and self.busy and self.ratios() else []


def read_timing(throughput: Mapping[str, Any], base: str) -> Timing:
    """Read the rates of poolings from results/throughput.json, with the recipe that counts as 1.0×; "" for none."""
    if not base or not throughput:
        return Timing()
    try:
        rates = {system: float(rate) for system, rate in throughput["poolings"].items()}
        method = str(throughput["methods"]["poolings"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"throughput cannot be read at {error}; run `pipeline throughput` again") from None
    if slow := [system for system, rate in rates.items() if not 0 < rate < math.inf]:
        raise InputError(f"the throughput of {slow[0]!r} is no number above 0; run `pipeline throughput` again")
    return Timing(rates, base, method, bool(throughput.get("busy")))

"""The published rows of a measured system, on the papers' test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.report.measured import MeasuredSystem
from pipeline.report.networks import stand_ins
from pipeline.report.published import COLUMNS
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.tables.vse2ad import TABLE1 as MAIN
from pipeline.report.tables.vse_infty import TABLE9, TABLE10

TABLES: tuple[RetrievalTable, ...] = (MAIN, TABLE9, TABLE10)
"""Tables of whole systems. The first that prints a system on a test set counts."""


@dataclass(frozen=True)
class Counterpart:
    """What a paper prints of a system on one test set.

    Attributes:
        test_set: The papers' test set.
        same: Whether the system was measured on it, with the papers' networks.
        numbers: Column, i2t_r1 … rsum -> number as printed.
    """

    test_set: str
    same: bool
    numbers: Mapping[str, str]


def counterparts(system: MeasuredSystem) -> list[Counterpart]:
    """Find what the papers print of the same method, features and text encoder.

    Args:
        system: A measured system.

    Returns:
        One for each test set; () for a system with steps after its ensemble, or of no paper.
    """
    found: dict[str, Counterpart] = {}
    for table in TABLES if not system.origin.steps else ():
        header = table.header(system)
        rows = table.published_rows()[0] if header and header.identity else []
        for row in rows:
            if header and row.header.identity == header.identity:
                for test_set in {key[0] for key in row.numbers} - found.keys():
                    numbers = {column: str(number.value) for column in COLUMNS
                               if (number := row.numbers.get((test_set, column))) and number.value is not None}
                    same = test_set == system.origin.benchmark and not stand_ins(system)
                    found[test_set] = Counterpart(test_set, same, numbers)
    return [found[test_set] for test_set in sorted(found)]

"""One file a table. A new table is a new file with a `build`, and a line in `TABLES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import InputError
from pipeline.report.measured import Results, read
from pipeline.report.table import Table
from pipeline.report.tables import vse2ad_table1

TABLES: dict[str, Callable[[Results, bool], Table]] = {
    "vse2ad_table1": vse2ad_table1.build,
}


def build(
    name: str,
    measured: Mapping[str, Any],
    delta: bool = False,
    throughput: Mapping[str, float] | None = None,
) -> Table:
    """The table `name`, published and measured rows.

    Args:
        name: a key of `TABLES`: the paper and its table.
        measured: the parsed `results/metrics.json`; {} for the published rows alone.
        delta: adds a column of differences between measured and published RSUM.
        throughput: items a second by recipe, for the tables with #OIPs.

    Raises:
        InputError: there is no such table, or `measured` cannot be read.
    """
    if name not in TABLES:
        raise InputError(f"there is no table {name!r}; choose from {', '.join(TABLES)}")
    return TABLES[name](Results(read(measured), throughput or {}), delta)

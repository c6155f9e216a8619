"""One file a table. A new table is a new file with a `build`, and a line in `TABLES`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.errors import InputError
from pipeline.report.measured import Results, read
from pipeline.report.table import Table
from pipeline.report.tables import (
    vse2ad_table1,
    vse2ad_table2,
    vse2ad_table3,
    vse2ad_table4,
    vse2ad_tableA1,
    vse2ad_tableC2,
    vse_infty_ablations,
    vse_infty_table2,
    vse_infty_table3,
    vse_infty_table10,
    vse_infty_table11,
)

TABLES: dict[str, Callable[[Results, bool], Table]] = {
    "vse2ad_table1": vse2ad_table1.build,
    "vse2ad_table2": vse2ad_table2.build,
    "vse2ad_table3": vse2ad_table3.build,
    "vse2ad_table4": vse2ad_table4.build,
    "vse2ad_tableA1": vse2ad_tableA1.build,
    "vse2ad_tableC2": vse2ad_tableC2.build,
    "vse_infty_table2": vse_infty_table2.build,
    "vse_infty_table3": vse_infty_table3.build,
    "vse_infty_table10": vse_infty_table10.build,
    "vse_infty_table11": vse_infty_table11.build,
    **{name: partial(vse_infty_ablations.build, name) for name in vse_infty_ablations.ABLATIONS},
}

TIMED = {"vse2ad_table2": "retrieval", "vse2ad_table4": "poolings"}
"""Tables with a column #OIPs -> what of `results/throughput.json` it shows."""


def build(
    name: str,
    measured: Mapping[str, Any],
    delta: bool = False,
    throughput: Mapping[str, Any] | None = None,
    synthetic: Sequence[Mapping[str, Any]] = (),
) -> Table:
    """The table `name`, published and measured rows.

    Args:
        name: a key of `TABLES`: the paper and its table. measured: the parsed `results/metrics.json`; {} for
        the published rows alone. delta: adds a column of differences between measured and published RSUM.
        throughput: the parsed `results/throughput.json`, for a table with #OIPs; the slowest in it counts as 1.
        synthetic: errors on synthetic pooling patterns for VSE∞ Table 11, one mapping for each generator and
        pattern, with
            the keys input_repr, decoder, pattern, rmse_seen, rmse_unseen_smaller, rmse_unseen_larger.

    Raises:
        InputError: there is no such table, one of the arguments cannot be read, or a rate is not above 0.
    """
    if name not in TABLES:
        raise InputError(f"there is no table {name!r}; choose from {', '.join(TABLES)}")
    rates, method = _timed(name, throughput or {})
    return TABLES[name](Results(read(measured), rates, method, synthetic), delta)


def _timed(name: str, throughput: Mapping[str, Any]) -> tuple[dict[str, float], str]:
    """The rates that a table shows, and how they were measured."""
    if name not in TIMED or not throughput:
        return {}, ""
    try:
        rates = {system: float(rate) for system, rate in throughput[TIMED[name]].items()}
        method = str(throughput["methods"][TIMED[name]])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"throughput cannot be read at {error}; run `pipeline throughput` again") from None
    if slow := [system for system, rate in rates.items() if not 0 < rate < math.inf]:
        raise InputError(f"the throughput of {slow[0]!r} is no number above 0; run `pipeline throughput` again")
    return rates, method

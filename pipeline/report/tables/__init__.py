"""The papers' tables. A new one is a definition in a file here and a line in `TABLES`; published rows are optional."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.parts import lazy
from pipeline.parts.errors import unknown
from pipeline.report.measured import Results
from pipeline.report.read_metrics import read_metrics
from pipeline.report.table import Table, TableRequest

TABLES: lazy.LookupTable[Callable[[Results, TableRequest], Table]] = lazy.LookupTable({
    "rerank_table1": "pipeline.report.tables.rerank:TABLE1.build",
    "rerank_table2": "pipeline.report.tables.rerank_languages:TABLE2.build",
    "rerank_table3": "pipeline.report.tables.rerank_times:TABLE3.build",
    "rerank_table4": "pipeline.report.tables.rerank_times:TABLE4.build",
    "rerank_table5": "pipeline.report.tables.rerank:TABLE5.build",
    "rerank_table6": "pipeline.report.tables.rerank:TABLE6.build",
    "rerank_table7": "pipeline.report.tables.rerank_languages:TABLE7.build",
    "rerank_table8": "pipeline.report.tables.rerank:TABLE8.build",
    "rerank_table9": "pipeline.report.tables.rerank:TABLE9.build",
    "rerank_table10": "pipeline.report.tables.rerank:TABLE10.build",
    "rerank_table11": "pipeline.report.tables.rerank:TABLE11.build",
    "vse2ad_table1": "pipeline.report.tables.vse2ad:TABLE1.build",
    "vse2ad_table2": "pipeline.report.tables.vse2ad:TABLE2.build",
    "vse2ad_table3": "pipeline.report.tables.vse2ad:TABLE3.build",
    "vse2ad_table4": "pipeline.report.tables.vse2ad:TABLE4.build",
    "vse2ad_tableA1": "pipeline.report.tables.vse2ad:TABLE_A1.build",
    "vse2ad_tableC2": "pipeline.report.tables.vse2ad:TABLE_C2.build",
    "vse_infty_table1": "pipeline.report.tables.vse_infty:TABLE1.build",
    "vse_infty_table2": "pipeline.report.tables.vse_infty:TABLE2.build",
    "vse_infty_table3": "pipeline.report.tables.vse_infty:TABLE3.build",
    "vse_infty_table4a": "pipeline.report.tables.vse_infty:TABLE4A.build",
    "vse_infty_table4b": "pipeline.report.tables.vse_infty:TABLE4B.build",
    "vse_infty_table5": "pipeline.report.tables.vse_infty:TABLE5.build",
    "vse_infty_table6": "pipeline.report.tables.vse_infty:TABLE6.build",
    "vse_infty_table7": "pipeline.report.tables.vse_infty:TABLE7.build",
    "vse_infty_table8": "pipeline.report.tables.vse_infty:TABLE8.build",
    "vse_infty_table9": "pipeline.report.tables.vse_infty:TABLE9.build",
    "vse_infty_table10": "pipeline.report.tables.vse_infty:TABLE10.build",
    "vse_infty_table11": "pipeline.report.tables.vse_infty_table11:build",
    "vse_infty_table12": "pipeline.report.tables.vse_infty:TABLE12.build",
    "vse_infty_table13": "pipeline.report.tables.vse_infty:TABLE13.build",
}, "tables")

PAPERS = TableRequest()
"""All rows and the papers' columns."""


def build(
    name: str,
    measured: Mapping[str, Any],
    request: TableRequest = PAPERS,
    throughput: Mapping[str, Any] | None = None,
    synthetic: Sequence[Mapping[str, Any]] = (),
    recorded: Mapping[str, Any] | None = None,
) -> Table:
    """Build one table from published and measured rows.

    Args:
        name: A key of `TABLES`.
        measured: The parsed `results/metrics.json`; {} for the published rows alone.
        request: Which rows and columns are shown.
        throughput: The parsed `results/throughput.json`, for tables with #OIPs.
        synthetic: Errors on synthetic pooling patterns for VSE∞ Table 11, one mapping for each generator and pattern,
            with the keys input_repr, decoder, pattern, rmse_seen, rmse_unseen_smaller and rmse_unseen_larger.
        recorded: The parsed `results/recorded.json`, for tables of larger pools and of zero-shot retrieval.

    Returns:
        The table.

    Raises:
        InputError: If there is no such table, or one of the arguments cannot be read.
    """
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    beyond = read_metrics(recorded or {})
    return TABLES[name](Results(read_metrics(measured), throughput or {}, synthetic, beyond), request)

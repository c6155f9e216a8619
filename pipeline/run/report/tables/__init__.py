"""The papers' tables. A new one is a definition in a file here and a line in `TABLES`; published
rows are optional.
"""

from collections.abc import Callable

from pipeline.foundation.parts import lazy
from pipeline.judge.tables.table import Table, TableRequest
from pipeline.run.report.measured import Results


def _places(paper: str, numbers: str, otherwise: str = "", ablations: str = "") -> dict[str, str]:
    """Where the tables of a paper with these numbers are defined; otherwise: those of times and of
    errors.
    """
    defined_in = {}
    for table_number in numbers.split():
        table_name = f"{paper}_table{table_number}"
        defined_at = f"{paper}:TABLE{table_number.upper()}"
        if table_number in otherwise.split():
            defined_at = f"times_and_errors:TABLE{table_number.upper()}"
        if table_number in ablations.split():
            defined_at = f"ablations:TABLES.{table_name}"
        defined_in[table_name] = f"pipeline.run.report.tables.{defined_at}.build"
    return defined_in


TABLES: lazy.LookupTable[Callable[[Results, TableRequest], Table]] = lazy.LookupTable(
    {
        **_places("rerank", "1 2 3 4 5 6 7 8 9 10 11", otherwise="3 4"),
        **_places("vse2ad", "1 2 3 4 A1 C2", ablations="3 4 A1 C2"),
        **_places(
            "vse_infty",
            "1 2 3 4a 4b 5 6 7 8 9 10 11 12 13",
            otherwise="11",
            ablations="1 6 7 8 12 13",
        ),
        "systems": "pipeline.run.report.tables.systems:TABLE.build",
    },
    "tables",
)

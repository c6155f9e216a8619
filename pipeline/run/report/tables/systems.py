"""All that was measured: a table with a panel for each test set and protocol, and which systems no
other table has.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pipeline.judge.tables.table import Table, TableRequest
from pipeline.run.report import names, tables
from pipeline.run.report.measured import MeasuredSystem, Origin, Results
from pipeline.run.report.result_rows import RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable

NAME = "systems"


class AllSystems(RetrievalTable):
    """A table of every system."""

    def apart(self, systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
        """Group all systems by test set and protocol."""
        systems_of_test_sets: dict[tuple[object, ...], list[MeasuredSystem]] = defaultdict(list)
        for system in systems:
            origin = system.origin
            pool = (origin.images, origin.captions, origin.distractors)
            test_set = (origin.dataset, origin.split, origin.manifest, origin.protocol, *pool)
            systems_of_test_sets[test_set].append(system)
        return list(systems_of_test_sets.values())

    def data_of(self, origin: Origin) -> str:
        """Name a test set with its protocol and distractors."""
        among = "".join(f", among {distractors}" for distractors in origin.distractors)
        return f"{super().data_of(origin)[:-1]}, protocol {origin.protocol}{among})"


def _header(system: MeasuredSystem) -> RowHeader:
    label = system.label()
    other = system.origin.trained_on
    if other:
        label += f", trained on {names.dataset(other)}"
    return RowHeader((label,))


TABLE = AllSystems.listed(
    NAME, measured=_header, source=lambda results: (*results.systems, *results.recorded)
)


def unlisted(results: Results, built: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Name the evaluated systems that are in none of the papers' tables that were built, and say
    why.
    """
    systems_in_tables: set[str] = set()
    for table_name, table in built.items():
        if table_name != NAME:
            systems_in_tables.update(sources(table))
    for system in results.systems:
        if systems_in_tables.isdisjoint(system.systems):
            why = _why_in_no_table(system, built)
            for system_name in system.systems:
                yield system_name, why


def sources(table: Table) -> Iterator[str]:
    """Name the systems whose numbers are in a table's rows, once a row."""
    for panel in table.panels:
        for group in panel.groups:
            for row in group.rows:
                yield from row.sources


def _why_in_no_table(system: MeasuredSystem, built: Mapping[str, Table]) -> str:
    """Why no table of a paper that was built has a system."""
    origin = system.origin
    alone = Results((system,))
    measured = TableRequest(rows="measured")
    having = []
    for name in tables.TABLES:
        if name == NAME or name in built:
            continue
        if any(sources(tables.TABLES.find(name)(alone, measured))):
            having.append(name)
    if having:
        return f"{' and '.join(having)} would have it, and the settings do not list them"
    if origin.section:
        return f"no table has systems that no head made on {names.dataset(origin.dataset)}"
    if names.is_variant(origin.recipe, system.members[0].settings):
        return f"no table has the variation {names.method(origin.recipe, origin.visual)}"
    return f"no table has {names.features(origin.visual)} with {names.encoder(origin.text)}"

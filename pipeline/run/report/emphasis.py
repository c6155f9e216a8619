"""Which rows of a table compete for bold, and in which colour they have it.

What is bold of them is one rule everywhere, that of `pipeline.judge.tables.bold`. Published and
measured rows do not compete.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.judge.tables.bold import OF_A_COLUMN, Emphasis, TestedColumn
from pipeline.judge.tables.table import Colour, Column, MetricKey
from pipeline.run.report.result_rows import ResultRow

# VSE+2AD, caption of Table 1.
GROUP_COLOURS: dict[str, Colour] = {"R": "black", "RG": "blue", "RGP": "red"}


@dataclass(frozen=True)
class Rule:
    """Which rows compete with each other: those of a column."""

    best: str = OF_A_COLUMN  # what the best is called in the caption
    # Whether rows compete within their section and group alone, and have the group's colour.
    in_groups: bool = False
    is_said: bool = True  # whether captions say what is bold

    def __call__(
        self, rows: Sequence[ResultRow], columns: Sequence[Column], emphasis: Emphasis
    ) -> dict[tuple[int, MetricKey], Colour]:
        """Row and column of each bold number -> its colour."""
        marked: dict[tuple[int, MetricKey], Colour] = {}
        for column in columns:
            tested = _tested(rows, column)
            for group, competing_numbers in self._competing(rows, column):
                bold_rows = emphasis.bold(competing_numbers, tested, column.less_is_better)
                for index in sorted(bold_rows):
                    marked[index, column.key] = GROUP_COLOURS.get(group, "black")
        return marked

    def _competing(
        self, rows: Sequence[ResultRow], column: Column
    ) -> Iterator[tuple[str, dict[int, Decimal]]]:
        """The numbers of a column that compete with each other, by the index of their row, with
        their group.
        """
        scopes: dict[tuple[str, str], dict[int, Decimal]] = {}
        for index, row in enumerate(rows):
            cell = row.numbers.get(column.key)
            if not row.header.competes or cell is None or cell.number is None:
                continue
            scope = ("", "")
            if self.in_groups:
                scope = (row.header.section, row.header.group)
            scopes.setdefault(scope, {})[index] = cell.number
        for (_, group), values in scopes.items():
            yield group, values

    def said(self, columns: Sequence[Column], published: Emphasis, measured: Emphasis) -> str:
        """Say in a caption what is bold."""
        if not self.is_said:
            return ""
        best = self.best
        if all(column.less_is_better for column in columns):
            best = best.replace("best", "least")
        return measured.said(best, published)

    def colours(self, rows: Sequence[ResultRow]) -> str:
        """Say in a caption what each colour means. rows: those with bold numbers."""
        if not self.in_groups:
            return ""
        groups = {row.header.group for row in rows}
        stand_for = {group: GROUP_COLOURS[group] for group in GROUP_COLOURS if group in groups}
        if len(stand_for) < 2:
            return ""
        legend = ", ".join(f"{colour} for {group}" for group, colour in stand_for.items())
        return f"Colours: {legend}."


def _tested(rows: Sequence[ResultRow], column: Column) -> dict[int, TestedColumn | None]:
    """What tests of all rows with a number in a column need."""
    tested = {}
    for index, row in enumerate(rows):
        cell = row.numbers.get(column.key)
        if cell is not None and cell.number is not None:
            tested[index] = row.tested_in(column.key)
    return tested


# As VSE+2AD Table 1.
best_of_groups = Rule("the best for the same features and text encoder", in_groups=True)
# As Geigle et al.'s Tables 1 and 8.
best_of_sections = Rule("the best of a group of rows", in_groups=True)
best_of_columns = Rule()

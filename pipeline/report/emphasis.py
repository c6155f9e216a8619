"""Which numbers of a table are bold, and in which colour.

Whether more or less is better is a property of the column. Rows that tie in the printed value are all marked. Published
and measured rows do not compete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.report.result_rows import ResultRow
from pipeline.report.table import Colour, Column, MetricKey

GROUP_COLOURS: dict[str, Colour] = {"R": "black", "RG": "blue", "RGP": "red"}
"""VSE+2AD, caption of Table 1."""


@dataclass(frozen=True)
class Rule:
    """Which numbers are bold: the best of each column.

    Attributes:
        sentence: What a caption says of it; `{best}` stands for best or least, `{colours}` for the groups' colours.
        in_groups: Whether rows compete within their section and group alone, and have the group's colour.
        two_sums: Whether RSUM alone is marked, the best in red and the second best in black.
    """

    sentence: str
    in_groups: bool = False
    two_sums: bool = False

    def __call__(self, rows: Sequence[ResultRow], columns: Sequence[Column], lone: bool = True
                 ) -> dict[tuple[int, MetricKey], Colour]:
        """Row and column of each bold number -> its colour. lone: whether a row that competes with no other counts."""
        scopes = [(row.header.section, row.header.group) if self.in_groups else ("", "") for row in rows]
        marked: dict[tuple[int, MetricKey], Colour] = {}
        for column in (column for column in columns if column.key[1] == "rsum" or not self.two_sums):
            for scope in (scope for scope in dict.fromkeys(scopes) if lone or scopes.count(scope) > 1):
                cells = {index: row.numbers.get(column.key) for index, row in enumerate(rows)
                         if scopes[index] == scope and row.header.competes}
                values = {index: cell.value for index, cell in cells.items() if cell and cell.value is not None}
                first = best(values, column.less_is_better)
                for index in best(values, column.less_is_better, distinct=2 if self.two_sums else 1):
                    coloured: Colour = "red" if index in first else "black"
                    marked[index, column.key] = coloured if self.two_sums else GROUP_COLOURS.get(scope[1], "black")
        return marked

    def said(self, rows: Sequence[ResultRow], columns: Sequence[Column], apart: bool) -> str:
        """Say in a caption what is bold. rows: those with bold numbers. apart: whether two kinds of rows are shown."""
        groups = {row.header.group for row in rows}
        colours = [f"{colour} for {group}" for group, colour in GROUP_COLOURS.items() if group in groups]
        said = self.sentence.format(best="least" if all(column.less_is_better for column in columns) else "best",
                                    colours=f", in {', '.join(colours)}" if len(colours) > 1 else "")
        return said[:-1] + ", of published and of measured rows apart." if apart else said


best_of_groups = Rule("Bold: the best for the same features and text encoder{colours}.", in_groups=True)
"""As VSE+2AD Table 1."""
best_of_sections = Rule("Bold: the best of a group of rows.", in_groups=True)
"""As Geigle et al.'s Tables 1 and 8."""
best_of_columns = Rule("Bold: the {best} of a column.")
two_best_sums = Rule("Bold: the best RSUM of a test set (red) and the second best (black).", two_sums=True)
"""As VSE∞ Table 2."""


def best(values: Mapping[int, Decimal], less_is_better: bool = False, distinct: int = 1) -> set[int]:
    """The rows with the best values of one column, by index; all rows of equal value are in it or none is.

    distinct: how many different values count as best: 2 for the best and the second best.
    """
    kept = sorted(set(values.values()), reverse=not less_is_better)[:distinct]
    return {index for index, value in values.items() if value in kept}

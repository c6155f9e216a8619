"""Which numbers of a table are bold, and in which colour.

A rule gets the rows that compete and the number columns; it returns {(row index, column): colour}. Whether more or less
is better is a property of the column. Rows that tie in the printed value are all marked. Published and measured rows
are never given to a rule together.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from pipeline.report.result_rows import TRANSDUCTIVE, ZERO_SHOT, ResultRow
from pipeline.report.table import Colour
from pipeline.report.table_columns import MetricKey, NumberColumn

Emphasis = dict[tuple[int, MetricKey], Colour]
Rule = Callable[[Sequence[ResultRow], Sequence[NumberColumn]], Emphasis]

GROUP_COLOURS: dict[str, Colour] = {"R": "black", "RG": "blue", "RGP": "red"}
"""VSE+2AD, caption of Table 1."""


def best_of_groups(rows: Sequence[ResultRow], columns: Sequence[NumberColumn]) -> Emphasis:
    """Mark the best of each column within each section and group, in the group's colour, as VSE+2AD Table 1."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault((row.header.section, row.header.group), []).append(index)
    return {
        (index, column.key): GROUP_COLOURS.get(group, "black")
        for (_, group), members in groups.items()
        for column in columns
        for index in best(_values(rows, column, members), column.less_is_better)
    }


def best_of_columns(rows: Sequence[ResultRow], columns: Sequence[NumberColumn]) -> Emphasis:
    """Mark the best of each column in black."""
    everyone = range(len(rows))
    return {(index, column.key): "black" for column in columns
            for index in best(_values(rows, column, everyone), column.less_is_better)}


def best_of_sections(rows: Sequence[ResultRow], columns: Sequence[NumberColumn]) -> Emphasis:
    """Mark the best of each column within each section and group, as Geigle et al.'s Tables 1 and 8."""
    return best_of_groups(rows, columns)


def two_best_sums(rows: Sequence[ResultRow], columns: Sequence[NumberColumn]) -> Emphasis:
    """Mark the best RSUM of each test set in red, the second best in black, as VSE∞ Table 2."""
    marked: Emphasis = {}
    for column in (column for column in columns if column.key[1] == "rsum"):
        values = _values(rows, column, range(len(rows)))
        first = best(values)
        for index in best(values, distinct=2):
            marked[index, column.key] = "red" if index in first else "black"
    return marked


def without_lone(rule: Rule) -> Rule:
    """The rule but for rows that compete with no other: a row alone is the best of nothing."""

    def marked(rows: Sequence[ResultRow], columns: Sequence[NumberColumn]) -> Emphasis:
        by_group = rule in (best_of_groups, best_of_sections)
        scopes = [(row.header.section, row.header.group) if by_group else () for row in rows]
        return {key: colour for key, colour in rule(rows, columns).items() if scopes.count(scopes[key[0]]) > 1}
    return marked


def none(rows: Sequence[ResultRow], columns: Sequence[NumberColumn]) -> Emphasis:
    """Mark nothing."""
    return {}


def sentence(rule: Rule, rows: Sequence[ResultRow], columns: Sequence[NumberColumn], apart: bool) -> str:
    """Say in a caption what is bold; nothing of a rule of another module.

    rows: those with bold numbers. apart: whether published and measured rows are shown, which do not compete.
    """
    if rule is best_of_groups:
        groups = {row.header.group for row in rows}
        colours = [f"{colour} for {group}" for group, colour in GROUP_COLOURS.items() if group in groups]
        coloured = f", in {', '.join(colours)}" if len(colours) > 1 else ""
        said = f"Bold: the best for the same features and text encoder{coloured}."
    elif rule is best_of_sections:
        said = "Bold: the best of a group of rows."
    elif rule is best_of_columns:
        said = f"Bold: the {'least' if all(column.less_is_better for column in columns) else 'best'} of a column."
    else:
        two_best = "Bold: the best RSUM of a test set (red) and the second best (black)."
        said = two_best if rule is two_best_sums else ""
    return said[:-1] + ", of published and of measured rows apart." if said and apart else said


def best(values: Mapping[int, Decimal], less_is_better: bool = False, distinct: int = 1) -> set[int]:
    """The rows with the best values of one column, by index; all rows of equal value are in it or none is.

    distinct: how many different values count as best: 2 for the best and the second best.
    """
    kept = sorted(set(values.values()), reverse=not less_is_better)[:distinct]
    return {index for index, value in values.items() if value in kept}


def _values(rows: Sequence[ResultRow], column: NumberColumn, members: Sequence[int]) -> dict[int, Decimal]:
    numbers = {index: rows[index].numbers.get(column.key) for index in members
               if TRANSDUCTIVE not in rows[index].marks and rows[index].header.section != ZERO_SHOT
               and rows[index].header.competes}
    return {index: number.value for index, number in numbers.items() if number and number.value is not None}

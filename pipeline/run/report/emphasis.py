"""Which numbers of a table are bold, and in which colour.

Whether more or less is better is a property of the column. All rows that tie in the printed value
are bold, and so are measured rows that do not differ significantly from the best. Published and
measured rows do not compete.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS
from pipeline.foundation.evaluation.retrieval.ranks import Floats
from pipeline.foundation.evaluation.statistics import (
    LEVEL,
    ImageHits,
    chances,
    enough_samples,
    holm,
    letters,
)
from pipeline.judge.tables.table import Colour, Column, MetricKey, Note
from pipeline.run.report.measured import TestedColumn
from pipeline.run.report.result_rows import ResultRow

# The least number of random swaps of a test, as `evaluate.resamples` is by default; more where Holm
# needs them.
SWAPS = 1000
TIED = (
    "Bold of measured rows: the best, and all that do not differ significantly from it by a paired randomisation test "
    "over images (two-sided, 5 %, Holm's correction within the column or group)"
)
LETTERED = (
    "Letters: rows that share one do not differ significantly by a paired randomisation test over images (two-sided, "
    "5 %, Holm's correction for all pairs); a is that of the largest RSUM"
)
NOT_TESTED = "; where runs of several seeds compete, or a number has no such test, the best alone"

# VSE+2AD, caption of Table 1.
GROUP_COLOURS: dict[str, Colour] = {"R": "black", "RG": "blue", "RGP": "red"}


@dataclass(frozen=True)
class Rule:
    """Which numbers are bold: the best of each column."""

    sentence: str  # The caption's sentence on it; `{best}` is replaced by best or least
    # Whether rows compete within their section and group alone, and have the group's colour.
    in_groups: bool = False
    # Whether RSUM alone is marked, the best in red and the second best in black; if several are
    # best, there is no second best.
    two_sums: bool = False

    def __call__(
        self,
        rows: Sequence[ResultRow],
        columns: Sequence[Column],
        lone: bool = True,
        tests: "PairedTests | None" = None,
    ) -> dict[tuple[int, MetricKey], Colour]:
        """Row and column of each bold number -> its colour."""
        marked: dict[tuple[int, MetricKey], Colour] = {}
        for column, group, competing_numbers in self._competing(rows, columns):
            if len(competing_numbers) < 2 and not lone:
                continue
            best_rows = best(competing_numbers, column.less_is_better)
            if tests:
                tested = {index: rows[index].tested.get(column.key) for index in competing_numbers}
                best_rows |= tests.tied(tested, best_rows)
            colour: Colour = "red" if self.two_sums else GROUP_COLOURS.get(group, "black")
            for index in sorted(best_rows):
                marked[index, column.key] = colour
            if self.two_sums and len(best_rows) == 1:
                other_rows = competing_numbers.keys() - best_rows
                other_numbers = {index: competing_numbers[index] for index in other_rows}
                for index in best(other_numbers, column.less_is_better):
                    marked[index, column.key] = "black"
        return marked

    def _competing(
        self, rows: Sequence[ResultRow], columns: Sequence[Column]
    ) -> Iterator[tuple[Column, str, dict[int, Decimal]]]:
        """The numbers that compete with each other, by the index of their row, with their column
        and their group.
        """
        for column in columns:
            if self.two_sums and column.key[1] != RSUM:
                continue
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
                yield column, group, values

    def said(
        self, columns: Sequence[Column], printed: Sequence[ResultRow], measured: Sequence[ResultRow]
    ) -> str:
        """Say in a caption what is bold, of which rows."""
        least = all(column.less_is_better for column in columns)
        which = "best"
        if least:
            which = "least"
        sentence = self.sentence.format(best=which)
        if printed and measured:
            sentence = f"{sentence[:-1]}; published and measured rows are ranked separately."
        if any(len(values) == 1 for _, _, values in self._competing(measured, columns)):
            sentence += " A single measured row is never bold."
        return sentence

    def colours(self, rows: Sequence[ResultRow], used: Collection[Colour]) -> str:
        """Say in a caption what each of the used colours means. rows: those with bold numbers."""
        if self.two_sums:
            meanings: dict[str, Colour] = {"the best": "red", "the second best": "black"}
            stand_for = {meaning: colour for meaning, colour in meanings.items() if colour in used}
        elif self.in_groups:
            groups = {row.header.group for row in rows}
            stand_for = {group: GROUP_COLOURS[group] for group in GROUP_COLOURS if group in groups}
            if len(stand_for) < 2:
                return ""
        else:
            return ""
        if not stand_for:
            return ""
        legend = ", ".join(f"{colour} for {meaning}" for meaning, colour in stand_for.items())
        return f"Colours: {legend}."


# As VSE+2AD Table 1.
best_of_groups = Rule("Bold: the best for the same features and text encoder.", in_groups=True)
# As Geigle et al.'s Tables 1 and 8.
best_of_sections = Rule("Bold: the best of a group of rows.", in_groups=True)
best_of_columns = Rule("Bold: the {best} of a column.")
# As VSE∞ Table 2.
two_best_sums = Rule(
    "Bold: the best RSUM of a test set, and the second best where one alone is best.", two_sums=True
)


def best(values: Mapping[int, Decimal], less_is_better: bool = False) -> set[int]:
    """The rows with the best value of one column, by index; all rows of equal value are in it."""
    best_value = max(values.values(), default=None)
    if less_is_better:
        best_value = min(values.values(), default=None)
    return {index for index, value in values.items() if value == best_value}


class PairedTests:
    """The measured rows of one panel that do not differ significantly from the best of a column, by
    a paired randomisation test.

    It compares rows of a single run each, whose hits of each image were kept, on the same queries;
    others are left out. The same swaps serve all columns.
    """

    def __init__(self) -> None:
        self._chances: dict[tuple[int, ...], Floats] = {}
        self._tested: set[bool] = set()

    def tied(self, tested: Mapping[int, TestedColumn | None], first: Set[int]) -> set[int]:
        """The rows of a column that tie with the best, by index."""
        if len(tested) < 2:
            return set()
        testable = self._alike(tested)
        self._tested.add(bool(testable))
        if not testable:
            return set()
        statistic = STATISTICS.index(testable[min(first)].statistic)
        leader = max(first, key=lambda index: float(testable[index].hits.statistics[statistic]))
        hits = [column.hits for column in testable.values()]
        chances_of_pairs = self._of(hits, len(testable) - 1)
        of_leader = chances_of_pairs[list(testable).index(leader), :, statistic]
        p_values = {}
        for index, p in zip(testable, of_leader, strict=True):
            if index != leader:
                p_values[index] = float(p)
        corrected_p_values = holm(list(p_values.values()))
        return {index for index, p in zip(p_values, corrected_p_values, strict=True) if p >= LEVEL}

    @staticmethod
    def _alike(tested: Mapping[int, TestedColumn | None]) -> dict[int, TestedColumn]:
        """The rows of a column if all can be tested, on the same queries; {} otherwise."""
        testable = {index: column for index, column in tested.items() if column}
        queries = {column.hits.queries for column in testable.values()}
        if len(testable) < len(tested) or len(queries) != 1:
            return {}
        return testable

    def letters(self, tested: Mapping[int, TestedColumn | None]) -> dict[int, str]:
        """The letters of a column's rows, by index: rows that share one do not differ
        significantly. {} without tests.
        """
        testable = self._alike(tested)
        if len(testable) < 2:
            return {}
        columns = list(testable.values())
        hits = [column.hits for column in columns]
        statistic = STATISTICS.index(columns[0].statistic)
        pairs = list(combinations(range(len(testable)), 2))
        p_values = self._of(hits, len(pairs))[:, :, statistic]
        corrected = holm([float(p_values[pair]) for pair in pairs])
        measured_numbers = [float(system.statistics[statistic]) for system in hits]
        differ = {pair for pair, p in zip(pairs, corrected, strict=True) if p < LEVEL}
        return dict(zip(testable, letters(measured_numbers, differ), strict=True))

    def _of(self, hits: Sequence[ImageHits], tests: int) -> Floats:
        """The p of every two systems, by as many swaps as Holm's correction of so many tests
        needs.
        """
        swaps = enough_samples(SWAPS, tests)
        key = (swaps, *map(id, hits))
        if key not in self._chances:
            folds = [system.folds for system in hits]
            self._chances[key] = chances(folds, swaps)
        return self._chances[key]

    def notes(self) -> list[Note]:
        """A note that says what was tested; none if nothing was."""
        if True not in self._tested:
            return []
        sentence = TIED
        if False in self._tested:
            sentence += NOT_TESTED
        return [Note(f"{sentence}.")]

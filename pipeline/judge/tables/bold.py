"""The one rule of bold: which numbers of a column are bold, and how a caption says so.

Bold are the best, and every system that a paired test does not find significantly worse; none where
that is all of them, and where there is one row. Letters and ranks are of the same tests.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

# Tests are imported where a column is tested: most commands print one system.
from pipeline.foundation.evaluation import statistics
from pipeline.foundation.evaluation.metrics.base import STATISTICS, Statistic
from pipeline.foundation.evaluation.statistics import ImageHits

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.statistics.families import Correction, EveryTwo

# The least number of random swaps of a test, as `evaluate.resamples` is by default.
SWAPS = 1000
OF_A_COLUMN = "the best of a column"
OVER_IMAGES = "paired randomisation test over images"
AVERAGED = f"one {OVER_IMAGES} for all rows, several seeds averaged query by query"
OVER_SEEDS = "Welch's test over seeds and images"
WITH_SINGLE_RUNS = f"{OVER_SEEDS}; of single runs, which are never bold, {OVER_IMAGES}"
# What corrects the p of tests over images, and of those over seeds.
BY_MAX_T = "step-down maxT"
BY_HOLM = "Holm"
DECIDED = "two-sided, 5 %, corrected for all pairs of the column"
NO_BOLD = "No bold where that is all of them, and where there is one row."
PUBLISHED = (
    "Published rows are compared among themselves alone: bold is the best as printed, untested."
)
OUT_OF_ORDER = (
    "A number is bold and a higher one is not where their differences from the best vary unequally "
    "from image to image."
)
NOT_TESTED = "Where nothing can be tested (numbers without hits of each image), the best alone."
NEVER_BOLD = "Dual encoders, and systems rescored by the test queries together, are never bold."


@dataclass(frozen=True)
class TestedColumn:
    """The input of a paired test of one column, for one system."""

    runs: tuple[ImageHits, ...]  # the hits of each image, of each of its seeds
    statistic: Statistic  # which of `STATISTICS` the column shows, perhaps divided by a number
    competes: bool = True  # whether its number may be bold

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for equal hits on the same queries, whatever the order of the seeds."""
        return tuple(sorted(run.key for run in self.runs))


@dataclass(frozen=True)
class Contender:
    """What is asked of a system beside its numbers."""

    # The hits of each image, of each of its seeds; () where those of one are not known.
    runs: tuple[ImageHits, ...] = ()
    competes: bool = True  # whether its numbers may be bold

    def tested(self, statistic: Statistic) -> TestedColumn | None:
        """What tests of one of its numbers need."""
        if not self.runs:
            return None
        return TestedColumn(self.runs, statistic, self.competes)


@dataclass(frozen=True)
class ColumnTests:
    """The tests of every two systems of one column."""

    systems: Mapping[int, int]  # row -> its system; rows of equal hits are one system
    columns: Sequence[TestedColumn]  # of each system
    every_two: "EveryTwo"  # of these systems

    @property
    def correction(self) -> "Correction":
        """The corrected p of each of these pairs."""
        return self.every_two.corrected(self.columns[0].statistic)

    @cached_property
    def numbers(self) -> Sequence[float]:
        """The number of each system, unrounded."""
        statistic = STATISTICS.index(self.columns[0].statistic)
        numbers = []
        for column in self.columns:
            numbers.append(fmean(float(run.statistics[statistic]) for run in column.runs))
        return numbers

    @cached_property
    def differ(self) -> Set[tuple[int, int]]:
        """The systems a < b of every two that differ significantly."""
        tests = zip(self.every_two.places, self.correction.corrected, strict=True)
        return {pair for pair, corrected in tests if corrected.p < statistics.LEVEL}

    def not_worse(self, rows: Collection[int]) -> set[int]:
        """The best of these rows, and those that are not significantly worse."""
        best = max((self.systems[row] for row in rows), key=self.numbers.__getitem__)
        worse = {system for pair in self.differ for system in pair if best in pair} - {best}
        return {row for row in rows if self.systems[row] not in worse}

    def letters(self) -> dict[int, str]:
        """The letters of each row: rows that share one do not differ significantly."""
        of_systems = statistics.letters(self.numbers, self.differ)
        return {row: of_systems[system] for row, system in self.systems.items()}

    def ranks(self) -> dict[int, tuple[int, int]]:
        """The best and the worst rank of each row; rows of equal hits share theirs."""
        adjusted = np.ones((len(self.columns), len(self.columns)))
        for (first, second), corrected in zip(
            self.every_two.places, self.correction.corrected, strict=True
        ):
            adjusted[[first, second], [second, first]] = corrected.p
        of_rows = list(self.systems.values())
        numbers = np.array(self.numbers)[of_rows]
        found = statistics.rank_intervals(
            numbers - numbers[:, None], adjusted[np.ix_(of_rows, of_rows)]
        )
        ranks = zip(found.best.tolist(), found.worst.tolist(), strict=True)
        return dict(zip(self.systems, ranks, strict=True))


class Emphasis:
    """The bold numbers of one panel.

    Systems are tested as `pipeline compare` tests them, whose hits of each image were kept, on the
    same queries. All that compete in a column are tested alike: over seeds where each of them has
    several. By two tests, it would depend on a row's number of seeds what is bold. The same swaps
    serve all columns.
    """

    def __init__(self) -> None:
        self._every_two: dict[tuple[bool, tuple[tuple[str, ...], ...]], EveryTwo] = {}
        # How columns were tested, in words.
        self._tests_used: set[str] = set()
        # Whether columns with bold numbers were tested.
        self._were_tested: set[bool] = set()
        # Whether a number is bold and a higher one of its column is not.
        self._is_out_of_order = False

    def bold(
        self,
        numbers: Mapping[int, Decimal],
        tested: Mapping[int, TestedColumn | None],
        less_is_better: bool = False,
    ) -> set[int]:
        """The rows whose numbers are bold.

        numbers: those of a column that compete, as printed. tested: what tests of the whole column
        need.
        """
        if len(numbers) < 2:
            return set()
        tests = self.tests(tested)
        is_tested = tests is not None and numbers.keys() <= tests.systems.keys()
        if tests is not None and is_tested:
            bold_rows = tests.not_worse(numbers)
        else:
            bold_rows = _best_as_printed(numbers, less_is_better)
        if len(bold_rows) == len(numbers):
            return set()
        self._were_tested.add(is_tested)
        least_bold = min(numbers[row] for row in bold_rows)
        others = numbers.keys() - bold_rows
        if is_tested and any(numbers[row] > least_bold for row in others):
            self._is_out_of_order = True
        return bold_rows

    def letters(self, tested: Mapping[int, TestedColumn | None]) -> dict[int, str]:
        """The letters of a column's rows; {} where not all of them can be tested."""
        tests = self.tests(tested)
        if tests is None or len(tests.systems) < len(tested):
            return {}
        return tests.letters()

    def tests(self, tested: Mapping[int, TestedColumn | None]) -> ColumnTests | None:
        """The tests of the rows of a column that can be tested; None for fewer than two, or if
        their queries are not the same.
        """
        testable = {row: column for row, column in tested.items() if column}
        queries = set[str]()
        for column in testable.values():
            queries.update(run.queries for run in column.runs)
        if len(testable) < 2 or len(queries) != 1:
            return None
        distinct = {column.key: column for column in testable.values()}
        order = list(distinct)
        systems = {row: order.index(column.key) for row, column in testable.items()}
        columns = list(distinct.values())
        over_seeds = all(len(each.runs) > 1 for each in testable.values() if each.competes)
        return ColumnTests(systems, columns, self._of(distinct, over_seeds))

    def _of(self, systems: Mapping[tuple[str, ...], TestedColumn], over_seeds: bool) -> "EveryTwo":
        """The tests of every two systems."""
        key = (over_seeds, tuple(systems))
        if key not in self._every_two:
            runs = [[run.folds for run in system.runs] for system in systems.values()]
            self._every_two[key] = statistics.EveryTwo.of(runs, SWAPS, over_seeds=over_seeds)
        if len(systems) < 2:
            return self._every_two[key]
        have_seeds = [len(system.runs) > 1 for system in systems.values()]
        if not any(have_seeds):
            self._tests_used.add(OVER_IMAGES)
        elif not over_seeds:
            self._tests_used.add(AVERAGED)
        elif all(have_seeds):
            self._tests_used.add(OVER_SEEDS)
        else:
            self._tests_used.add(WITH_SINGLE_RUNS)
        return self._every_two[key]

    @property
    def _test(self) -> str:
        """How columns were tested, in words."""
        used = sorted(self._tests_used or {OVER_IMAGES})
        corrections = set()
        for each in used:
            correction = BY_MAX_T
            if OVER_SEEDS in each:
                correction = BY_HOLM
            corrections.add(correction)
        how = "; in other columns ".join(used)
        return f"{how}, {DECIDED} ({' or '.join(sorted(corrections))})"

    def lettered(self) -> str:
        """The caption's sentence on letters."""
        return (
            f"Letters: rows that share one do not differ significantly ({self._test}); a is that of the "
            "largest RSUM."
        )

    def said(self, best: str = OF_A_COLUMN, published: "Emphasis | None" = None) -> str:
        """The caption's sentences on what is bold; "" where nothing is.

        best: what is the best of what. published: the bold numbers of the published rows above.
        """
        has_published = published is not None and bool(published._were_tested)
        if True in self._were_tested:
            rule = f"Bold: {best}, and every system not significantly worse than it ({self._test})."
            sentences = [rule, NO_BOLD]
            if self._is_out_of_order:
                sentences.append(OUT_OF_ORDER)
            if False in self._were_tested:
                sentences.append(NOT_TESTED)
        elif self._were_tested:
            sentences = [f"Bold: {best}, untested.", NO_BOLD]
        elif has_published:
            return f"Bold, among published rows: {best}, as printed, untested. {NO_BOLD}"
        else:
            return ""
        if has_published:
            sentences.append(PUBLISHED)
        return " ".join(sentences)


def _best_as_printed(numbers: Mapping[int, Decimal], less_is_better: bool) -> set[int]:
    """The rows with the best number of one column; all rows of equal numbers are in it."""
    best_number = max(numbers.values())
    if less_is_better:
        best_number = min(numbers.values())
    return {row for row, number in numbers.items() if number == best_number}

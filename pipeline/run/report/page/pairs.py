"""The difference of every two systems of a table of results in RSUM, tested on the same images as
`pipeline compare` does.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.foundation.evaluation.statistics import LEVEL, ImageHits, enough_samples
from pipeline.foundation.evaluation.statistics.all_pairs import Corrected
from pipeline.foundation.evaluation.statistics.families import (
    HOLM,
    MAX_T,
    ComparedPairs,
    correct,
)
from pipeline.foundation.evaluation.statistics.significance import (
    Comparison,
    Hits,
    compare_hits,
)
from pipeline.judge.tables import compared
from pipeline.judge.tables.bold import BY_HOLM, BY_MAX_T, SWAPS, ColumnTests, TestedColumn
from pipeline.judge.tables.table import Cell
from pipeline.run.report.page.headline import Headline, HeadlineRow

# The systems of a table whose pairs are shown, the largest RSUM first: 66 pairs. Those of all
# systems are tested, so that p and letters are of one family.
MOST = 12
# What p is corrected by -> in words.
CORRECTIONS = {MAX_T: BY_MAX_T, HOLM: BY_HOLM}


@dataclass(frozen=True)
class Difference:
    """RSUM of B minus that of A, tested, and corrected for the other tests of its family."""

    tested: Comparison
    corrected: Corrected
    by: str | None  # what p is corrected by; None for one test by itself
    family: int  # for how many tests p is corrected, itself among them
    is_of_table: bool = True  # whether a table of results has its two systems

    @property
    def row(self) -> dict[str, Any]:
        """Its numbers as `pipeline.judge.tables.compared` reads them."""
        measured = self.tested.difference
        return {
            "difference": measured.value,
            "interval": [measured.low, measured.high],
            "p": self.tested.p,
            "resolution": self.tested.resolution,
            "adjusted": self.corrected.p,
            "adjusted_by": self.by,
        }

    @property
    def cells(self) -> list[Cell]:
        """The difference with its interval, p, and the corrected p."""
        return compared.difference(self.row)

    @property
    def corrected_for(self) -> str:
        """For what p is corrected, "all 66 pairs (step-down maxT)"; "" for one test by itself."""
        if self.by is None:
            return ""
        return f"all {self.family:,} pairs ({CORRECTIONS[self.by]})"

    @property
    def is_significant(self) -> bool:
        """Whether the corrected p is below 5 %."""
        return self.corrected.p < LEVEL

    @cached_property
    def would_suffice(self) -> str:
        """What would make it significant, "" if it is."""
        needs = None
        if not self.is_significant:
            needs = self.tested.evidence.needs(self.corrected.level)
        return compared.would_suffice({"needs": needs})

    def turned(self) -> "Difference":
        """RSUM of A minus that of B, by the same test."""
        forwards = self.tested.difference
        backwards = replace(
            forwards,
            value=0.0 - forwards.value,
            low=0.0 - forwards.high,
            high=0.0 - forwards.low,
        )
        return replace(self, tested=replace(self.tested, difference=backwards))


@dataclass(frozen=True)
class Pair:
    """Two systems of a table, of which A has the smaller RSUM."""

    a: HeadlineRow
    b: HeadlineRow
    tested: tuple[TestedColumn, TestedColumn]  # of A and B
    difference: Difference
    is_shown: bool  # whether both are among the first `MOST`

    def of(self, a: ImageHits, b: ImageHits) -> Difference | None:
        """The difference of two single runs, B minus A, if it is that of this pair."""
        own_keys = [column.key for column in self.tested]
        if own_keys == [(a.key,), (b.key,)]:
            return self.difference
        if own_keys == [(b.key,), (a.key,)]:
            return self.difference.turned()
        return None


def pairs(headline: Headline) -> list[Pair]:
    """The differences of every two systems of a table, by the tests that its letters are of; []
    where the hits of each image of the first `MOST`, on the same queries, are not known.
    """
    tests = headline.tests
    first = headline.order[:MOST]
    if tests is None or not tests.systems.keys() >= set(first):
        return []
    differences = _differences(tests)
    order = [place for place in headline.order if place in tests.systems]
    found = []
    for better, worse in combinations(order, 2):
        a = tests.systems[worse]
        b = tests.systems[better]
        found.append(
            Pair(
                a=headline.rows[worse],
                b=headline.rows[better],
                tested=(tests.columns[a], tests.columns[b]),
                difference=differences[a, b],
                is_shown=better in first and worse in first,
            )
        )
    return found


def further(
    of_table: Sequence[Pair], asked: Sequence[tuple[ImageHits, ImageHits]]
) -> list[Difference]:
    """The differences of other pairs of single runs, B minus A.

    A pair that the table has keeps its test and its correction. The others are corrected for those
    of the table and for each other. of_table: all pairs of a table of results on the same queries.
    """
    known = [_of_table(of_table, a, b) for a, b in asked]
    family = {}
    for pair in of_table:
        systems = frozenset(column.key for column in pair.tested)
        # Rows of equal hits are one system.
        if len(systems) > 1:
            family[systems] = pair
    columns = [pair.tested for pair in family.values()]
    for (a, b), difference in zip(asked, known, strict=True):
        if difference is None:
            columns.append((TestedColumn((a,), RSUM), TestedColumn((b,), RSUM)))
    hits: dict[tuple[str, ...], Hits] = {}
    for column in chain.from_iterable(columns):
        hits.setdefault(column.key, [run.folds for run in column.runs])
    of_pairs = [(hits[a.key], hits[b.key]) for a, b in columns]
    tests = [{RSUM: pair.difference.tested} for pair in family.values()]
    samples = SWAPS
    if any(test[RSUM].over_seeds for test in tests):
        samples = enough_samples(samples, len(columns))
    of_others = ComparedPairs.of(of_pairs[len(tests) :], samples, 0)
    corrected = correct([ComparedPairs(of_pairs, [*tests, *of_others.tests])], [[RSUM]], SWAPS, 0)
    tested_here = zip(of_others.tests, corrected.corrected[len(tests) :], strict=True)
    differences = []
    for difference in known:
        if difference is None:
            test, of_test = next(tested_here)
            difference = Difference(
                test[RSUM], of_test, corrected.by, len(columns), is_of_table=False
            )
        differences.append(difference)
    return differences


def _of_table(of_table: Sequence[Pair], a: ImageHits, b: ImageHits) -> Difference | None:
    """The difference of two single runs that a table has."""
    for pair in of_table:
        difference = pair.of(a, b)
        if difference is not None:
            return difference
    return None


def _differences(tests: ColumnTests) -> dict[tuple[int, int], Difference]:
    """RSUM of the second system minus that of the first, of every two in both orders; that of a
    system and itself where rows have equal hits.
    """
    every_two = tests.every_two
    correction = tests.correction
    family = len(every_two.places)
    differences = {}
    for (first, second), test, corrected in zip(
        every_two.places, every_two.tested.tests, correction.corrected, strict=True
    ):
        difference = Difference(test[RSUM], corrected, correction.by, family)
        differences[first, second] = difference
        differences[second, first] = difference.turned()
    for system, rows in Counter(tests.systems.values()).items():
        if rows > 1:
            hits = [run.folds for run in tests.columns[system].runs]
            equal = compare_hits(hits, hits, every_two.samples, seed=every_two.seed)
            of_equal = Corrected(equal[RSUM].p, LEVEL)
            differences[system, system] = Difference(equal[RSUM], of_equal, correction.by, family)
    return differences

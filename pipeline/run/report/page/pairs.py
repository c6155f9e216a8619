"""The difference of every two systems of a table of results in RSUM, tested on the same images as
`pipeline compare` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.foundation.evaluation.statistics import LEVEL, ImageHits, enough_samples
from pipeline.foundation.evaluation.statistics.all_pairs import Corrected
from pipeline.foundation.evaluation.statistics.families import ComparedPairs, correct
from pipeline.foundation.evaluation.statistics.significance import Comparison, Hits
from pipeline.judge.tables import compared
from pipeline.judge.tables.bold import SWAPS
from pipeline.judge.tables.table import Cell
from pipeline.run.provenance.results import Result
from pipeline.run.report.page.headline import Headline, HeadlineRow

# The systems of a table whose pairs are shown, the largest RSUM first: 66 pairs.
MOST = 12


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
    # The hits of each image: of A's seeds, and of B's.
    hits: tuple[Sequence[ImageHits], Sequence[ImageHits]]
    difference: Difference

    def of(self, a: ImageHits, b: ImageHits) -> Difference | None:
        """The difference of two single runs, B minus A, if it is that of this pair."""
        own_keys = [[run.key for run in runs] for runs in self.hits]
        if own_keys == [[a.key], [b.key]]:
            return self.difference
        if own_keys == [[b.key], [a.key]]:
            return self.difference.turned()
        return None


def pairs(headline: Headline, metrics: Mapping[str, Result]) -> list[Pair]:
    """Compare every two of the first `MOST` systems of a table, corrected for all of them; [] where
    the hits of each image of the same queries are not known.
    """
    rows = headline.ranked[:MOST]
    hits_of_rows = [_hits(row, headline.origin.protocol, metrics) for row in rows]
    queries = set[str]()
    for hits in hits_of_rows:
        queries.update(run.queries for run in hits)
    if len(rows) < 2 or len(queries) != 1 or not all(hits_of_rows):
        return []
    places = list(combinations(range(len(rows)), 2))
    # As bold and the letters of the table are tested.
    over_seeds = all(len(row.systems) > 1 for row in headline.rows if row.competes)
    hits_of_pairs = [(hits_of_rows[worse], hits_of_rows[better]) for better, worse in places]
    differences = _corrected(_tested(hits_of_pairs, over_seeds))
    found = []
    for (better, worse), of_pair, difference in zip(
        places, hits_of_pairs, differences, strict=True
    ):
        found.append(Pair(rows[worse], rows[better], of_pair, difference))
    return found


def further(
    of_table: Sequence[Pair], asked: Sequence[tuple[ImageHits, ImageHits]]
) -> list[Difference]:
    """The differences of other pairs of single runs, B minus A.

    A pair that the table has keeps its test and its correction. The others are corrected for those
    of the table and for each other. of_table: all pairs of a table of results on the same queries.
    """
    known = [_of_table(of_table, a, b) for a, b in asked]
    unknown = [runs for runs, difference in zip(asked, known, strict=True) if difference is None]
    family = [pair.hits for pair in of_table] + [([a], [b]) for a, b in unknown]
    over_seeds = any(pair.difference.tested.over_seeds for pair in of_table)
    tested_here = iter(_corrected(_tested(family, over_seeds))[len(of_table) :])
    differences = []
    for difference in known:
        if difference is None:
            difference = replace(next(tested_here), is_of_table=False)
        differences.append(difference)
    return differences


def _of_table(of_table: Sequence[Pair], a: ImageHits, b: ImageHits) -> Difference | None:
    """The difference of two single runs that a table has."""
    for pair in of_table:
        difference = pair.of(a, b)
        if difference is not None:
            return difference
    return None


def _tested(
    pairs: Sequence[tuple[Sequence[ImageHits], Sequence[ImageHits]]], over_seeds: bool = True
) -> ComparedPairs:
    """The tests of pairs of systems, B minus A."""
    systems: dict[tuple[str, ...], Hits] = {}
    of_pairs = []
    for pair in pairs:
        both = []
        for runs in pair:
            key = tuple(run.key for run in runs)
            both.append(systems.setdefault(key, [run.folds for run in runs]))
        of_pairs.append((both[0], both[1]))
    samples = SWAPS
    if over_seeds:
        samples = enough_samples(samples, len(pairs))
    return ComparedPairs.of(of_pairs, samples, 0, over_seeds)


def _corrected(pairs: ComparedPairs) -> list[Difference]:
    """Correct the p of a family's tests for each other."""
    family = correct([pairs], [[RSUM]], SWAPS, 0)
    differences = []
    for tests, corrected in zip(pairs.tests, family.corrected, strict=True):
        differences.append(Difference(tests[RSUM], corrected, family.by, len(pairs.tests)))
    return differences


def _hits(row: HeadlineRow, protocol: str, metrics: Mapping[str, Result]) -> Sequence[ImageHits]:
    """The hits of each image of a system's seeds; () if one has none."""
    packed = [metrics[name].hits.get(protocol) for name in row.systems]
    if not all(packed):
        return ()
    return [ImageHits(hits) for hits in packed if hits]

"""The difference of every two systems of a table of results in RSUM, tested on the same images as
`pipeline compare` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.foundation.evaluation.statistics import ImageHits, holm
from pipeline.foundation.evaluation.statistics.contrast import HOLM
from pipeline.foundation.evaluation.statistics.significance import (
    LEVEL,
    Comparison,
    compare_hits,
    holm_factors,
)
from pipeline.judge.tables import compared
from pipeline.judge.tables.bold import swaps_of
from pipeline.judge.tables.table import Cell
from pipeline.run.provenance.results import Result
from pipeline.run.report.page.headline import Headline, HeadlineRow

# The systems of a table whose pairs are shown, the largest RSUM first: 66 pairs.
MOST = 12


@dataclass(frozen=True)
class Difference:
    """RSUM of B minus that of A, tested, and corrected for the other tests of its family."""

    tested: Comparison
    holm: float  # the corrected p
    factor: int  # what Holm's correction multiplied p by
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
            "adjusted": self.holm,
            "adjusted_by": HOLM,
        }

    @property
    def cells(self) -> list[Cell]:
        """The difference with its interval, p, and the corrected p."""
        return compared.difference(self.row)

    @property
    def is_significant(self) -> bool:
        """Whether the corrected p is below 5 %."""
        return self.holm < LEVEL

    @cached_property
    def would_suffice(self) -> str:
        """What would make it significant, "" if it is."""
        needs = None
        if not self.is_significant:
            needs = self.tested.evidence.needs(LEVEL / self.factor)
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
    """Compare every two of the first `MOST` systems of a table, with Holm's correction for all of
    them; [] where the hits of each image of the same queries are not known.
    """
    rows = headline.ranked[:MOST]
    hits_of_rows = [_hits(row, headline.origin.protocol, metrics) for row in rows]
    queries = set[str]()
    for hits in hits_of_rows:
        queries.update(run.queries for run in hits)
    if len(rows) < 2 or len(queries) != 1 or not all(hits_of_rows):
        return []
    places = list(combinations(range(len(rows)), 2))
    samples = swaps_of(len(places))
    # As bold and the letters of the table are tested.
    over_seeds = all(len(row.systems) > 1 for row in headline.rows if row.competes)
    tested = []
    for better, worse in places:
        tested.append(_tested(hits_of_rows[worse], hits_of_rows[better], samples, over_seeds))
    differences = []
    for (better, worse), difference in zip(places, _corrected(tested), strict=True):
        hits_of_pair = (hits_of_rows[worse], hits_of_rows[better])
        differences.append(Pair(rows[worse], rows[better], hits_of_pair, difference))
    return differences


def further(
    of_table: Sequence[Pair], asked: Sequence[tuple[ImageHits, ImageHits]]
) -> list[Difference]:
    """The differences of other pairs of single runs, B minus A.

    A pair that the table has keeps its test and its correction. The others are corrected for those
    of the table and for each other. of_table: all pairs of a table of results on the same queries.
    """
    known = [_of_table(of_table, a, b) for a, b in asked]
    unknown = [runs for runs, difference in zip(asked, known, strict=True) if difference is None]
    family = [pair.difference.tested for pair in of_table]
    samples = swaps_of(len(family) + len(unknown))
    for a, b in unknown:
        family.append(_tested([a], [b], samples))
    tested_here = iter(_corrected(family)[len(of_table) :])
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
    a: Sequence[ImageHits], b: Sequence[ImageHits], samples: int, over_seeds: bool = True
) -> Comparison:
    old = [run.folds for run in a]
    new = [run.folds for run in b]
    return compare_hits(old, new, samples, over_seeds=over_seeds)[RSUM]


def _corrected(tested: Sequence[Comparison]) -> list[Difference]:
    """Correct the p of a family's tests for each other."""
    chances = [comparison.p for comparison in tested]
    corrections = zip(tested, holm(chances), holm_factors(chances), strict=True)
    return [Difference(*corrected, family=len(tested)) for corrected in corrections]


def _hits(row: HeadlineRow, protocol: str, metrics: Mapping[str, Result]) -> Sequence[ImageHits]:
    """The hits of each image of a system's seeds; () if one has none."""
    packed = [metrics[name].hits.get(protocol) for name in row.systems]
    if not all(packed):
        return ()
    return [ImageHits(hits) for hits in packed if hits]

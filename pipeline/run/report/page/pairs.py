"""The difference of every two systems of a table of results in RSUM, tested on the same images as
`pipeline compare` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.foundation.evaluation.statistics import ImageHits, holm
from pipeline.foundation.evaluation.statistics.significance import (
    LEVEL,
    Comparison,
    compare_hits,
)
from pipeline.judge.tables import compared
from pipeline.judge.tables.bold import swaps_of
from pipeline.judge.tables.table import Cell
from pipeline.run.provenance.results import Result
from pipeline.run.report.page.headline import Headline, HeadlineRow

# The systems of a table whose pairs are shown, the largest RSUM first: 66 pairs.
MOST = 12


@dataclass(frozen=True)
class Pair:
    """Two systems and RSUM of B minus that of A, which has the smaller one."""

    a: HeadlineRow
    b: HeadlineRow
    rsum: Mapping[str, Any]  # the difference, its interval, p, resolution and corrected p
    over_seeds: bool  # whether interval and p are over seeds, too

    @property
    def cells(self) -> list[Cell]:
        """The difference with its interval, p, and the corrected p."""
        return compared.difference(self.rsum)

    @property
    def is_significant(self) -> bool:
        """Whether the corrected p is below 5 %."""
        return bool(self.rsum["holm"] < LEVEL)


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
    tested: list[Comparison] = []
    for better, worse in places:
        old = [run.folds for run in hits_of_rows[worse]]
        new = [run.folds for run in hits_of_rows[better]]
        tested.append(compare_hits(old, new, samples)[RSUM])
    corrected = holm([comparison.p for comparison in tested])
    differences = []
    for (better, worse), comparison, corrected_p in zip(places, tested, corrected, strict=True):
        interval = comparison.difference
        rsum = {
            "difference": interval.value,
            "interval": [interval.low, interval.high],
            "p": comparison.p,
            "resolution": comparison.resolution,
            "holm": corrected_p,
        }
        differences.append(Pair(rows[worse], rows[better], rsum, comparison.over_seeds))
    return differences


def _hits(row: HeadlineRow, protocol: str, metrics: Mapping[str, Result]) -> Sequence[ImageHits]:
    """The hits of each image of a system's seeds; () if one has none."""
    packed = [metrics[name].hits.get(protocol) for name in row.systems]
    if not all(packed):
        return ()
    return [ImageHits(hits) for hits in packed if hits]

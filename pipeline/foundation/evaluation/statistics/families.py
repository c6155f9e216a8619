"""Tests that are printed together, corrected for each other: tests over images by step-down maxT,
tests over seeds by Holm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.metrics.base import Statistic
from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.evaluation.statistics import image_hits
from pipeline.foundation.evaluation.statistics.all_pairs import (
    LEVEL,
    Corrected,
    Pool,
    step_down,
    triples,
)
from pipeline.foundation.evaluation.statistics.significance import (
    Comparison,
    Hits,
    benjamini_yekutieli,
    compare_hits,
    enough_samples,
    holm,
    holm_factors,
    mean_of_runs,
    yekutieli_factor,
)

# What p is corrected by: `step_down`, or `holm` where a test of the family is over seeds;
# `benjamini_yekutieli` where q are asked for.
MAX_T = "maxT"
HOLM = "Holm"
FDR = "Benjamini-Yekutieli"


class Correction(NamedTuple):
    """The corrected p of a family, in the order of its tests, and what they are corrected by."""

    corrected: Sequence[Corrected]
    by: str | None  # `MAX_T`, `HOLM`, `FDR`; None for one test by itself


@dataclass(frozen=True)
class ComparedPairs:
    """Pairs of systems on the same images, each tested by itself."""

    pairs: Sequence[tuple[Hits, Hits]]
    tests: Sequence[Mapping[Statistic, Comparison]]

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[Hits, Hits]], samples: int, seed: int, over_seeds: bool = True
    ) -> "ComparedPairs":
        """Test each pair as `compare_hits` does."""
        tests = []
        for first, second in pairs:
            tests.append(compare_hits(first, second, samples, seed=seed, over_seeds=over_seeds))
        return cls(pairs, tests)

    def swapped(
        self, statistics: Sequence[Statistic], samples: int, seed: int
    ) -> tuple[Pool, list[tuple[int, int]]]:
        """All systems, by some statistics, after the same swaps, and the places of each pair's two
        among them.
        """
        systems: dict[int, Hits] = {}
        for system in [system for pair in self.pairs for system in pair]:
            systems.setdefault(id(system), system)
        place = {key: number for number, key in enumerate(systems)}
        places = [(place[id(first)], place[id(second)]) for first, second in self.pairs]
        names = image_hits.names(self.pairs[0][0][0])
        columns = [names.index(name) for name in statistics]
        parts = parts_of(list(systems.values()))[:, columns]
        return Pool(parts, samples, seed), places


def parts_of(systems: Sequence[Hits]) -> Floats:
    """Each image's part of the statistics of K systems, the mean of a system's runs: float64
    [K, 7 + E, N], E further metrics.
    """
    return np.stack([image_hits.parts(mean_of_runs(runs)).T for runs in systems])


def correct(
    pools: Sequence[ComparedPairs],
    statistics: Sequence[Sequence[Statistic]],
    samples: int,
    seed: int,
    fdr: bool = False,
) -> Correction:
    """Correct the p of all pairs of all pools, by some statistics, for each other.

    Args:
        pools: The pairs of systems.
        statistics: Of each pool, those that belong to the family.
        samples: How many swaps are drawn.
        seed: Of the swaps.
        fdr: Whether to give q, which keep the share of false ones among the differences found
            small, instead of the chance of one or more.

    Returns:
        The corrected p of each statistic of each pair of each pool, in this order.
    """
    tests: list[Comparison] = []
    for pool, names in zip(pools, statistics, strict=True):
        for of_pair in pool.tests:
            tests += [of_pair[name] for name in names]
    if fdr:
        return Correction(_by_fdr([test.p for test in tests]), FDR)
    if len(tests) < 2:
        return Correction([Corrected(test.p, LEVEL) for test in tests], None)
    if any(test.over_seeds for test in tests):
        return Correction(by_holm([test.p for test in tests]), HOLM)
    swapped = []
    tests_of_pools = []
    for number, (pool, names) in enumerate(zip(pools, statistics, strict=True)):
        systems, places = pool.swapped(names, samples, seed + number)
        swapped.append(systems)
        tests_of_pools.append(triples(places, range(len(names))))
    corrected: list[Corrected] = []
    for of_pool in step_down(swapped, tests_of_pools):
        corrected += of_pool
    # Drawn anew for each pair, its own p may be a little larger.
    at_least = []
    for test, each in zip(tests, corrected, strict=True):
        at_least.append(Corrected(max(test.p, each.p), each.level))
    return Correction(at_least, MAX_T)


def by_holm(chances: Sequence[float]) -> list[Corrected]:
    """Correct p by Holm, whatever the tests are."""
    corrected = zip(holm(chances), holm_factors(chances), strict=True)
    return [Corrected(p, LEVEL / factor) for p, factor in corrected]


def _by_fdr(chances: Sequence[float]) -> list[Corrected]:
    """The q of tests, and below which p one more of them would be found."""
    q = benjamini_yekutieli(chances)
    found = sum(each < LEVEL for each in q)
    level = LEVEL * min(found + 1, len(q)) / yekutieli_factor(len(q))
    return [Corrected(each, level) for each in q]


@dataclass(frozen=True)
class EveryTwo:
    """Every two of several systems on the same images, tested, and corrected for each other."""

    places: Sequence[tuple[int, int]]  # of each pair's two systems, the first before the second
    tested: ComparedPairs  # likewise
    samples: int  # how many swaps are drawn
    seed: int  # of the swaps
    _corrected: dict[Statistic, Correction] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, systems: Sequence[Hits], samples: int, seed: int = 0, over_seeds: bool = True
    ) -> "EveryTwo":
        """Test them.

        Args:
            systems: The hits of each system's runs.
            samples: The least number of swaps of a test over images.
            seed: Of the swaps.
            over_seeds: Whether two systems with several seeds are tested over seeds and images.

        Returns:
            The pairs in the order of `combinations`.
        """
        places = list(combinations(range(len(systems)), 2))
        have_seeds = [len(runs) > 1 for runs in systems]
        if over_seeds and sum(have_seeds) > 1:
            samples = enough_samples(samples, len(places))
        pairs = [(systems[first], systems[second]) for first, second in places]
        return cls(places, ComparedPairs.of(pairs, samples, seed, over_seeds), samples, seed)

    def corrected(self, statistic: Statistic) -> Correction:
        """Correct the p of a statistic for each other.

        Args:
            statistic: One of `STATISTICS`.

        Returns:
            The corrected p in the order of the pairs; those of RSUM are what `pipeline compare`
            prints.
        """
        if statistic not in self._corrected:
            correction = correct([self.tested], [[statistic]], self.samples, self.seed)
            self._corrected[statistic] = correction
        return self._corrected[statistic]

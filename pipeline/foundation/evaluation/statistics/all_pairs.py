"""Tests of every two of several systems on the same images, corrected for each other.

Each image gets a random sign, the same for all systems, and a difference of two systems after such
a swap is the mean of the image's differences with their signs. One draw of signs serves every pair
and every statistic, so that pairs and statistics that depend on each other cost less than by Holm's
correction. What a swap does to one pair does not depend on any other system, so that the correction
also holds where some systems are equal and others are not; a shuffle of all systems' results would
be valid for equal systems alone.

Source: Westfall and Young, Resampling-Based Multiple Testing, 1993; Romano and Wolf, Journal of the
    American Statistical Association 2005.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats, Ids

# Two systems differ significantly if their corrected p is below this.
LEVEL = 0.05
# Differences that are closer to each other than this count as equal.
ROUNDING = 1e-9
# To so many digits an image's parts of two differences are compared.
DIGITS = 9
# Numbers in memory at once: signs of images, and swapped differences.
SIGNS_AT_ONCE = 1 << 21
SWAPPED_AT_ONCE = 1 << 20
# With fewer swaps beyond a critical value, the normal distribution says how rare these are.
FEW = 5


@dataclass(frozen=True)
class Corrected:
    """The p of a test that is one of several, corrected for the others."""

    p: float
    level: float  # what the test's own p has to be below for a corrected p below `LEVEL`


@dataclass(frozen=True)
class AllPairs:
    """Every two of K systems tested by M statistics; the second is that of axis 1."""

    difference: Floats  # [K, K, M], the second minus the first
    p: Floats  # [K, K, M], two-sided; 1 on the diagonal
    adjusted: Floats  # [K, K, M], corrected for all pairs and statistics; 1 on the diagonal


class Pool:
    """K systems on the same images, measured by M statistics, after random swaps of whole images.

    The draws depend neither on the order of the images nor on that of the systems, unless two
    systems have the same numbers.
    """

    def __init__(self, parts: Floats, samples: int, seed: int) -> None:
        """Draw the swaps.

        Args:
            parts: Each image's part of each statistic, whose mean is the statistic: float64
                [K, M, N].
            samples: How many swaps are drawn.
            seed: Of the swaps.
        """
        systems, statistics, images = parts.shape
        self.samples = samples
        self.values: Floats = parts.mean(2)  # [K, M]
        in_order = _in_order(parts)
        # What all systems have in common is in no difference.
        apart = parts - parts[in_order[0]]
        self._squares = np.einsum("jmn,kmn->jkm", apart, apart)
        # Images on which all are equal change nothing, so they need no signs.
        columns = apart[in_order].reshape(-1, images).round(DIGITS)
        order = np.lexsort(columns)
        order = order[columns[:, order].any(0)]
        by_image = apart.reshape(-1, images)[:, order].T
        swapped = np.zeros((samples, systems * statistics))
        for rows, signs in _signs(len(order), samples, seed):
            swapped += signs.T @ by_image[rows]
        self._swapped = swapped.reshape(samples, systems, statistics) / images
        self._images = images

    def sizes(self, tests: Ids) -> Floats:
        """How large differences are, over their standard deviation among swaps: float64 [T].

        tests: int64 [T, 3], the first system, the second and the statistic of each.
        """
        first, second, statistic = tests.T
        gaps = self.values[second, statistic] - self.values[first, statistic]
        return np.asarray(np.abs(gaps) / self._deviations(tests))

    def swapped(self, tests: Ids) -> Floats:
        """The same after each swap: float64 [S, T]."""
        first, second, statistic = tests.T
        gaps = self._swapped[:, second, statistic] - self._swapped[:, first, statistic]
        return np.asarray(np.abs(gaps) / self._deviations(tests))

    def _deviations(self, tests: Ids) -> Floats:
        """The standard deviations among swaps; a t-statistic whose standard error is computed anew
        for each swap has the same order, since swaps leave the squares of the parts.
        """
        first, second, statistic = tests.T
        own = self._squares[first, first, statistic] + self._squares[second, second, statistic]
        squares = own - 2 * self._squares[first, second, statistic]
        deviations = np.sqrt(np.maximum(squares, 0)) / self._images
        # Where no image differs, the size is 0 in each swap.
        return np.asarray(np.where(deviations < ROUNDING, 1.0, deviations))


def all_pairs(parts: Floats, samples: int, seed: int) -> AllPairs:
    """Test every two of several systems, corrected for all pairs and statistics.

    Args:
        parts: Each image's part of each statistic, whose mean over images is the statistic: float64
            [K, M, N].
        samples: How many swaps are drawn.
        seed: Of the swaps.

    Returns:
        The differences, p and corrected p.
    """
    systems, statistics, _ = parts.shape
    pool = Pool(parts, samples, seed)
    pairs = list(combinations(range(systems), 2))
    tests = triples(pairs, range(statistics))
    p = np.ones((systems, systems, statistics))
    adjusted = np.ones((systems, systems, statistics))
    own = _own_p(pool, tests)
    corrected = step_down([pool], [tests])[0]
    for (first, second, statistic), single, of_all in zip(
        tests.tolist(), own.tolist(), corrected, strict=True
    ):
        p[[first, second], [second, first], statistic] = single
        adjusted[[first, second], [second, first], statistic] = of_all.p
    difference = pool.values[None] - pool.values[:, None]
    return AllPairs(difference, p, adjusted)


def triples(pairs: Sequence[tuple[int, int]], statistics: Sequence[int]) -> Ids:
    """The tests of some pairs by some statistics, pair after pair: int64 [T, 3]."""
    tests = [(*pair, statistic) for pair in pairs for statistic in statistics]
    return np.array(tests, np.int64).reshape(-1, 3)


def step_down(pools: Sequence[Pool], tests: Sequence[Ids]) -> list[list[Corrected]]:
    """Correct the p of tests for each other, step-down maxT: the chance of one or more false
    differences is at most 5 %, and equal tests cost nothing.

    The test with the largest size has the share of swaps in which the largest of all sizes reaches
    its own; the next, that of all but the first; and so on, and no p is smaller than that of a
    larger size. Swaps of two pools are drawn independently of each other. Where the pools have
    images in common, this makes p no smaller than it should be (Royen, Far East Journal of
    Theoretical Statistics 2014).

    Args:
        pools: All with the same number of swaps.
        tests: Those of each pool, int64 [T, 3], see `Pool.sizes`.

    Returns:
        The corrected p of each test of each pool.
    """
    of_pools = [pool.sizes(of_pool) for pool, of_pool in zip(pools, tests, strict=True)]
    sizes = np.concatenate(of_pools)
    owner = np.repeat(np.arange(len(pools)), [len(each) for each in of_pools])
    table = np.concatenate(tests)
    # Rounded, so that the order of images does not decide which of two equal sizes is first.
    rounded = sizes.round(DIGITS)
    order = np.argsort(-rounded, kind="stable")
    samples = pools[0].samples
    p = np.empty(len(sizes))
    levels = np.empty(len(sizes))
    largest = np.zeros(samples)
    for places in _from_the_smallest(len(sizes), samples):
        some = order[places]
        own = _swapped(pools, table, owner, some)
        # Of each test, the largest size in each swap of it and of all smaller ones.
        reached = np.maximum.accumulate(own[:, ::-1], axis=1)[:, ::-1]
        reached = np.maximum(reached, largest[:, None])
        largest = reached[:, 0]
        p[places] = p_of((reached >= sizes[some] - ROUNDING).sum(0), samples)
        remaining = len(sizes) - np.arange(len(sizes))[places]
        levels[places] = _levels(own, reached, remaining)
    p = np.maximum.accumulate(p)
    levels = _least_of_equal(levels, rounded[order])
    corrected = np.empty((len(sizes), 2))
    corrected[order] = np.stack([p, levels], 1)
    starts = np.cumsum([len(each) for each in of_pools])[:-1]
    found = []
    for of_pool in np.split(corrected, starts):
        found.append([Corrected(*each) for each in of_pool.tolist()])
    return found


def _in_order(parts: Floats) -> Ids:
    """Put systems in one order, whatever order they come in, by numbers that differ between
    them.
    """
    total = parts.sum(0)
    keys = [parts.mean(2), (parts**2).mean(2), (parts * total).mean(2)]
    table = np.concatenate(keys[::-1], axis=1)
    largest = np.maximum(np.abs(table).max(0), ROUNDING)
    return np.lexsort((table / largest).round(DIGITS).T)


def _signs(images: int, samples: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Some images after others, and the sign of each in each swap: float64 [images, samples]."""
    generator = np.random.default_rng(seed)
    at_once = max(1, SIGNS_AT_ONCE // samples)
    for start in range(0, images, at_once):
        count = min(at_once, images - start)
        drawn = generator.integers(0, 256, (count, math.ceil(samples / 8)), np.uint8)
        signs = np.unpackbits(drawn, axis=1, count=samples)
        yield slice(start, start + count), 2 * signs.astype(np.float64) - 1


def _from_the_smallest(tests: int, samples: int) -> Iterator[slice]:
    """Places of tests in descending order of size, the last ones first, as many as fit the
    memory.
    """
    at_once = max(1, SWAPPED_AT_ONCE // samples)
    for end in range(tests, 0, -at_once):
        yield slice(max(0, end - at_once), end)


def _swapped(pools: Sequence[Pool], table: Ids, owner: Ids, some: Ids) -> Floats:
    """The swapped sizes of some tests, each by its own pool: float64 [S, T]."""
    own = np.empty((pools[0].samples, len(some)))
    for number in np.unique(owner[some]).tolist():
        of_pool = owner[some] == number
        own[:, of_pool] = pools[number].swapped(table[some[of_pool]])
    return own


def p_of(as_large: Floats, samples: int) -> Floats:
    """The share of swaps with a difference as large as the measured one, which is itself a swap."""
    return np.asarray((1 + as_large) / (1 + samples))


def _own_p(pool: Pool, tests: Ids) -> Floats:
    """The p of each test by itself."""
    p = np.empty(len(tests))
    sizes = pool.sizes(tests)
    for places in _from_the_smallest(len(tests), pool.samples):
        reached = pool.swapped(tests[places]) >= sizes[places] - ROUNDING
        p[places] = p_of(reached.sum(0), pool.samples)
    return p


def _least_of_equal(levels: Floats, sizes: Floats) -> Floats:
    """Give tests of equal size one level, whichever of them comes first: they have one p, too."""
    _, group = np.unique(sizes, return_inverse=True)
    least = np.full(len(sizes), LEVEL)
    np.minimum.at(least, group, levels)
    return np.asarray(least[group])


def _levels(own: Floats, reached: Floats, remaining: Ids) -> Floats:
    """What each test's own p has to be below.

    own: its sizes in each swap, [S, T]. reached: the largest of those that it is corrected for.
        remaining: how many these are.
    """
    samples = len(own)
    # So many swaps may be as large for a corrected p below the level.
    most = max(0, math.ceil(LEVEL * (1 + samples) - 1 - ROUNDING) - 1)
    critical = -np.partition(-reached, most, axis=0)[most]
    beyond = (own > critical + ROUNDING).sum(0)
    by_swaps = (2 + beyond) / (1 + samples)
    by_normal = [2 * NormalDist().cdf(-each) for each in critical.tolist()]
    levels = np.where(beyond < FEW, np.minimum(by_normal, by_swaps), by_swaps)
    # Few swaps, or differences of few images, show the level roughly; it is never below Holm's.
    return np.clip(levels, LEVEL / remaining, LEVEL)

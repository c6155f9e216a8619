"""How often `compare --margin` calls two systems equal within a margin where they differ by exactly
that, the worst case, and how often where they do not differ: by its bootstrap-t, by the bootstrap-t
without what it adds for images that were not seen, and by random swaps of each image's difference
from the margin, which it does not use.

A query is found by a score of three parts: one that an image has in both systems, one that it has
in one system in both directions, and one of the query alone. Where the second system finds all that
the first does, their scores differ by a constant. The margin is the true difference.

    python -m benchmarks.equivalence  # six minutes of one core
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks import numbers
from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.evaluation.statistics import image_hits
from pipeline.foundation.evaluation.statistics.equivalence import Changes, bootstrap_t
from pipeline.foundation.evaluation.statistics.image_hits import FoldHits

SETS = {50: 2000, 200: 2000, 1000: 1500, 5000: 600}
"""Test sets of so many images; a quarter of them where the systems do not differ."""
CAPTIONS = 5
SWAPS = 999
LEVEL = 0.05
LIMITS = (0.6, -0.6, -1.2)
"""A query is a hit at 1, 5 and 10 where its score is above these."""
QUERY = 0.5
"""The deviation of a score's part that is the query's alone."""
ROUNDING = 1e-3  # of sums in single precision


@dataclass(frozen=True)
class Pair:
    """Two systems that differ by the margin, or not at all."""

    name: str
    own: float  # the deviation of a score's part that one system alone has
    gain: Callable[[int], float]  # how much larger the second's scores are, with so many images
    finds_the_same: bool = False

    def truth(self, images: int) -> Floats:
        """The true difference of each of `STATISTICS`, in percent."""
        normal = NormalDist(0, np.sqrt(1 + self.own**2 + QUERY**2))
        gain = self.gain(images)
        recalls = [100 * (normal.cdf(limit) - normal.cdf(limit - gain)) for limit in LIMITS]
        return np.array([*recalls, *recalls, 2 * sum(recalls)])

    def drawn(self, images: int, gain: float, generator: np.random.Generator) -> FoldHits:
        """The differences in hits of a test set."""
        hard = generator.standard_normal((images, 1))
        first = self._scores(hard, generator)
        second = first
        if not self.finds_the_same:
            second = self._scores(hard, generator)
        hits = []
        for before, after in zip(first, second, strict=True):
            for limit in LIMITS:
                found = np.sum(before > limit, axis=1)
                found_by_second = np.sum(after + gain > limit, axis=1)
                hits.append(found_by_second - found)
        queries = np.tile([1, CAPTIONS], (images, 1))
        return FoldHits(np.stack(hits, 1).astype(np.float64), queries)

    def _scores(self, hard: Floats, generator: np.random.Generator) -> list[Floats]:
        """A system's scores of the queries of both directions."""
        own = hard + self.own * generator.standard_normal(hard.shape)
        scores = []
        for queries in (1, CAPTIONS):
            scores.append(own + QUERY * generator.standard_normal((len(hard), queries)))
        return scores


PAIRS = (
    Pair("unlike", 0.5, lambda images: 6 / np.sqrt(images)),
    Pair("alike", 0.1, lambda images: 4 / np.sqrt(images)),
    # So that some five images of each recall of image -> caption change, whatever their number.
    Pair("second finds all that first does", 0.5, lambda images: 20 / images, True),
)


def equal(drawn: FoldHits, margins: Floats, seed: int) -> Floats:
    """Whether each of `STATISTICS` is called equal by each of `RULES`: bool [3, 7]."""
    changes = Changes.of([drawn])
    low, high = bootstrap_t([drawn], changes.unit, seed)
    wide_low, wide_high = changes.wider(low, high)
    rules = [
        (-margins < wide_low) & (wide_high < margins),
        by_swaps(drawn, margins, seed) < LEVEL,
        (-margins < low) & (high < margins),
    ]
    return np.stack(rules)


def by_swaps(drawn: FoldHits, margins: Floats, seed: int) -> Floats:
    """The larger p of the two one-sided tests by random swaps of images, [7]."""
    parts = image_hits.parts([drawn])
    shifted = np.hstack([parts + margins, margins - parts]).astype(np.float32)
    images = len(parts)
    packed = np.random.default_rng(seed).integers(0, 256, (SWAPS, -(-images // 8)), np.uint8)
    signs = 2 * np.unpackbits(packed, axis=1, count=images).astype(np.float32) - 1
    as_large = np.sum(signs @ shifted >= shifted.sum(0) - ROUNDING, axis=0)
    p = (1 + as_large) / (1 + SWAPS)
    return np.maximum(*np.split(p, 2))


def rates(pair: Pair, images: int, sets: int) -> list[Any]:
    """In percent of test sets: false equalities of recalls of either direction and of RSUM, ours
    and by swaps; those of recalls by the bootstrap-t alone; and equalities that are found.
    """
    margins = pair.truth(images)
    false = np.zeros((3, len(STATISTICS)))
    found = np.zeros((3, len(STATISTICS)))
    for number in range(sets):
        generator = np.random.default_rng([images, number])
        drawn = pair.drawn(images, pair.gain(images), generator)
        false += 100 / sets * equal(drawn, margins, number)
    of_equal = sets // 4
    for number in range(of_equal):
        generator = np.random.default_rng([images, number])
        found += 100 / of_equal * equal(pair.drawn(images, 0.0, generator), margins, number)
    ours_and_swaps = slice(2)
    return [
        false[ours_and_swaps, :3].mean(1).tolist(),
        false[ours_and_swaps, 3:6].mean(1).tolist(),
        false[ours_and_swaps, 6].tolist(),
        float(false[2, :6].mean()),
        found[ours_and_swaps, :6].mean(1).tolist(),
        found[ours_and_swaps, 6].tolist(),
    ]


def main(share: float = 1) -> None:
    """Print a row for each pair of systems and number of images; by swaps in brackets."""
    headings = ["false: i2t", "false: t2i", "false: RSUM", "bootstrap-t alone"]
    headings += ["found: recalls", "found: RSUM"]
    print("called equal within a margin, in % of test sets (by random swaps)")
    print(f"{'systems':34}{'images':>8}{'margin':>8}" + "".join(f"{name:>19}" for name in headings))
    rows: list[list[Any]] = []
    for pair in PAIRS:
        for images, sets in SETS.items():
            measured = rates(pair, images, max(4, int(share * sets)))
            margin = float(pair.truth(images)[0])
            rows.append([pair.name, f"{images:,}", margin, *measured])
            cells = ""
            for value in measured:
                ours, *swaps = np.atleast_1d(value)
                cell = " ".join([f"{ours:.1f}", *(f"({rate:.1f})" for rate in swaps)])
                cells += f"{cell:>19}"
            print(f"{pair.name:34}{images:8,}{margin:8.2f}{cells}", flush=True)
    columns = [("systems", ""), ("images", ""), ("margin, R@1", ".2f")]
    columns += [(heading, ".1f") for heading in headings]
    numbers.keep("equivalence", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the test sets")
    main(parser.parse_args().share)

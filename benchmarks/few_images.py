"""How often 95 % intervals hold the true value on test sets of few images: those of differences of
two systems, beside the random swaps' alone, and those of nDCG@5 and of its differences.

A query is found by a score of three parts: one that an image has in both systems, one that it has
in one system in both directions, and one of the query alone. Where the second system finds all that
the first does, the two differ in what has to be reached alone. The truth is that of 200,000 images,
from which test sets are drawn.

    python -m benchmarks.few_images  # six minutes of one core
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks import numbers
from pipeline.foundation.evaluation.metrics import STATISTICS, Statistic
from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.evaluation.statistics import image_hits
from pipeline.foundation.evaluation.statistics.image_hits import MOST, FoldHits
from pipeline.foundation.evaluation.statistics.significance import difference_of_runs, with_unseen
from pipeline.foundation.evaluation.statistics.wilson import of_mean_share

SWAPS = 1000
SIZES = (50, 60, 100, 200, 1000)
CAPTIONS = 5
POPULATION = 200_000
ROUNDING = 1e-9
WIDTHS = (0, 2)
"""The recalls whose widths are kept: R@1 and R@10 of image → caption."""


@dataclass(frozen=True)
class Pair:
    """Two systems: the first one's recalls at 1, 5 and 10 in percent, and what the second has."""

    recalls: tuple[float, float, float]
    gain: float = 0.0  # by how much the second system's scores are larger
    own: float = 0.5  # the deviation of the score's parts that are not of both systems
    finds_the_same: bool = False  # whether the second finds all that the first does

    @property
    def name(self) -> str:
        recalls = "/".join(f"{recall:g}" for recall in self.recalls)
        if self.finds_the_same:
            return f"{recalls}, second finds all that first does"
        if not self.gain:
            return f"{recalls}, equal"
        if self.own < 0.5:
            return f"{recalls}, second better and alike"
        return f"{recalls}, second better"

    @property
    def limits(self) -> list[float]:
        """What a score has to reach at 1, 5 and 10."""
        deviation = np.sqrt(1 + 2 * self.own**2)
        return [-deviation * NormalDist().inv_cdf(recall / 100) for recall in self.recalls]


PAIRS = (
    Pair((50, 80, 90)),
    Pair((80, 95, 98)),
    Pair((80, 95, 98), gain=0.3),
    Pair((80, 95, 98), gain=0.2, own=0.25),
    Pair((80, 95, 98), gain=0.3, finds_the_same=True),
)


def differences(pair: Pair) -> FoldHits:
    """The differences in hits of all images."""
    generator = np.random.default_rng(0)
    hard = generator.standard_normal((POPULATION, 1))
    first = _scores(hard, pair.own, generator)
    second = first
    if not pair.finds_the_same:
        second = _scores(hard, pair.own, generator)
    hits = []
    for before, after in zip(first, second, strict=True):
        for limit in pair.limits:
            found = np.sum(before > limit, axis=1)
            found_by_second = np.sum(after + pair.gain > limit, axis=1)
            hits.append(found_by_second - found)
    queries = np.tile([1, CAPTIONS], (POPULATION, 1))
    return FoldHits(np.stack(hits, 1).astype(np.float64), queries)


def _scores(hard: Floats, deviation: float, generator: np.random.Generator) -> list[Floats]:
    """A system's scores of the queries of both directions."""
    own = hard + deviation * generator.standard_normal(hard.shape)
    scores = []
    for queries in (1, CAPTIONS):
        of_queries = deviation * generator.standard_normal((len(hard), queries))
        scores.append(own + of_queries)
    return scores


def of_differences(every: FoldHits, images: int, sets: int) -> list[list[float]]:
    """In how many of a hundred test sets each statistic's interval holds the truth, ours and that
    of swaps alone; then their mean widths.
    """
    truth = image_hits.statistics([every])
    held = np.zeros((2, len(STATISTICS)))
    widths = np.zeros((2, len(STATISTICS)))
    for number, rows in enumerate(test_sets(images, sets)):
        drawn = [FoldHits(every.hits[rows], every.queries[rows])]
        low, high, *_ = difference_of_runs(drawn, SWAPS, MOST, 0.95, number)
        ours = with_unseen(drawn, low, high, 0.95)
        for which, ends in enumerate((ours, (low, high))):
            held[which] += (ends[0] - ROUNDING <= truth) & (truth <= ends[1] + ROUNDING)
            widths[which] += ends[1] - ends[0]
    columns = (100 * held / sets).T.tolist()
    for recall in WIDTHS:
        columns.append((widths[:, recall] / sets).tolist())
    return columns


def gains(recall: float) -> Floats:
    """Each image's mean nDCG@5 of its captions, whose one right image has a rank of at most 1 for
    this share in percent.
    """
    generator = np.random.default_rng(0)
    hard = generator.standard_normal((POPULATION, 1))
    return _gains(recall, _scores(hard, 0.5, generator)[1]).mean(1)


def _gains(recall: float, scores: Floats) -> Floats:
    """The nDCG@5 of queries with these scores."""
    missing = Pair((recall, recall, recall)).limits[0] - scores
    # A score that is short by 1 is passed by some ten others.
    ranks = 1 + np.floor(10 ** np.maximum(missing, 0) * (missing > 0))
    return np.asarray(np.where(ranks <= 5, 1 / np.log2(1 + ranks), 0.0))


def differences_of_ndcg(recall: float, gain: float) -> FoldHits:
    """The differences in nDCG@5 of each image's captions, of two systems of which the second has
    scores that are larger by the gain; no recalls.
    """
    generator = np.random.default_rng(0)
    hard = generator.standard_normal((POPULATION, 1))
    first = _scores(hard, 0.5, generator)[1]
    second = _scores(hard, 0.5, generator)[1] + gain
    apart = (_gains(recall, second) - _gains(recall, first)).sum(1)
    sums = np.zeros((POPULATION, len(STATISTICS)))
    sums[:, -1] = apart
    queries = np.tile([1, CAPTIONS], (POPULATION, 1))
    return FoldHits(sums, queries, (Statistic("t2i", "nDCG@5"),))


def of_difference_of_ndcg(every: FoldHits, images: int, sets: int) -> float:
    """In how many of a hundred test sets the interval of the difference in nDCG@5 holds the
    truth.
    """
    truth = image_hits.statistics([every])[-1]
    held = 0
    for number, rows in enumerate(test_sets(images, sets)):
        drawn = [replace(every, hits=every.hits[rows], queries=every.queries[rows])]
        most = image_hits.most(drawn)
        ends = difference_of_runs(drawn, SWAPS, most, 0.95, number)[:2]
        low, high = with_unseen(drawn, *ends, 0.95)
        held += low[-1] - ROUNDING <= truth <= high[-1] + ROUNDING
    return 100 * held / sets


def of_ndcg(every: Floats, images: int, sets: int) -> float:
    """In how many of a hundred test sets the interval of nDCG@5 holds the truth."""
    truth = every.mean()
    held = 0
    for rows in test_sets(images, sets):
        drawn = every[rows]
        mean = float(drawn.mean())
        low, high = of_mean_share(mean, drawn - mean, 0.95)
        held += low <= truth <= high
    return 100 * held / sets


def test_sets(images: int, sets: int) -> Iterator[np.ndarray]:
    """The images of each drawn test set."""
    generator = np.random.default_rng(images)
    for _ in range(sets):
        yield generator.integers(0, POPULATION, images)


def main(sets: int = 4000, sizes: Sequence[int] = SIZES) -> None:
    """Print a row for each pair of systems and number of images: ours, and in brackets by swaps
    alone.
    """
    headings = [str(statistic) for statistic in STATISTICS]
    headings += [f"width, {headings[recall]}" for recall in WIDTHS]
    print("intervals of a difference hold it in % of test sets (by swaps alone)")
    print(
        f"{'images; recalls of the first system':52}" + "".join(f"{name:>15}" for name in headings)
    )
    rows: list[list[Any]] = []
    for pair in PAIRS:
        every = differences(pair)
        for images in sizes:
            measured = of_differences(every, images, sets)
            rows.append([pair.name, f"{images:,}", *measured])
            cells = "".join(f"{ours:8.1f} ({swaps:4.1f})" for ours, swaps in measured)
            print(f"{images:5,}; {pair.name:45}{cells}", flush=True)
    columns = [("recalls of the first system", ""), ("images", "")]
    columns += [(heading, ".1f") for heading in headings]
    numbers.keep("few_images", columns, rows)
    print("\nthe interval of nDCG@5 of one system holds it in % of test sets")
    of_systems: list[list[Any]] = []
    for recall in (50.0, 80.0, 95.0):
        of_images = gains(recall)
        held = [of_ndcg(of_images, images, sets) for images in sizes]
        of_systems.append([f"{100 * of_images.mean():.1f}", *held])
        print(
            f"nDCG@5 {of_systems[-1][0]:>5}" + "".join(f"{rate:8.1f}" for rate in held), flush=True
        )
    columns = [("nDCG@5", ""), *((f"{images:,} images", ".1f") for images in sizes)]
    numbers.keep("few_images_ndcg", columns, of_systems)
    main_of_ndcg(sets, sizes)


def main_of_ndcg(sets: int, sizes: Sequence[int]) -> None:
    """Print a row for each pair of systems that differ in nDCG@5."""
    print("\nthe interval of a difference in nDCG@5 holds it in % of test sets")
    of_pairs: list[list[Any]] = []
    for recall in (50.0, 80.0, 95.0):
        for gain in (0.0, 0.3):
            every = differences_of_ndcg(recall, gain)
            held = [of_difference_of_ndcg(every, images, sets) for images in sizes]
            name = f"R@1 {recall:g}, gain {gain:g}"
            of_pairs.append([name, *held])
            print(f"{name:20}" + "".join(f"{rate:8.1f}" for rate in held), flush=True)
    columns = [("second system", ""), *((f"{images:,} images", ".1f") for images in sizes)]
    numbers.keep("few_images_ndcg_difference", columns, of_pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=4000)
    main(parser.parse_args().sets)

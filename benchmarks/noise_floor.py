"""How often `pipeline compare` says "less than the noise" of two systems, one of them with repeated
runs: of equal ones, which should be 95 times in 100 or more, and of different ones.

    python -m benchmarks.noise_floor  # a minute of one core
"""

from __future__ import annotations

import argparse

import numpy as np

from pipeline.foundation.evaluation.metrics import Metrics
from pipeline.foundation.evaluation.metrics.base import Statistic
from pipeline.foundation.evaluation.metrics.standard import measure
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.statistics import noise

RECALL = Statistic("i2t", "R@1")
REPEATS = (2, 3, 5, 10)
# What a run adds to all images' margins alike, and to each by itself.
MOVES = ((0.0, 0.1), (0.05, 0.1), (0.1, 0.1), (0.1, 0.0))
GAP = 0.25  # what the margins of a better system have more, 10 points of recall


def run(margins: np.ndarray) -> Metrics:
    """A run in which an image's query hits where its margin is above 0."""
    misses = (margins <= 0).astype(np.int64)
    each = np.arange(len(misses))
    ranked = QueryRanks(each, 20 * misses, 0 * each, 1 + 0 * each)
    return measure([Ranks(ranked, ranked, as_relevance(each, (len(each), len(each))))])


def said(repeats: int, moves: tuple[float, float], gap: float, images: int, cases: int) -> float:
    """In how many of 100 cases the difference is said to be less than the noise."""
    common, alone = moves
    generator = np.random.default_rng(0)
    less = 0
    for _ in range(cases):
        margins = generator.normal(size=images)
        runs = []
        for _ in range(repeats + 1):
            moved = common * generator.normal() + alone * generator.normal(size=images)
            runs.append(run(margins + moved + gap * (not runs)))
        limit = noise.limits(runs[1:], runs[:1])[RECALL].limit
        difference = runs[0][RECALL] - np.mean([each[RECALL] for each in runs[1:]])
        less += bool(abs(difference) < limit)
    return 100 * less / cases


def main(images: int, cases: int) -> None:
    """Print a line for each kind of noise."""
    print("| moves of all images, of each | better by |", *(f"{n} runs |" for n in REPEATS))
    print("|:--|--:|" + "--:|" * len(REPEATS))
    for moves in MOVES:
        for gap in (0.0, GAP):
            shares = [said(repeats, moves, gap, images, cases) for repeats in REPEATS]
            print(f"| {moves[0]}, {moves[1]} | {gap} |", *(f"{share:.1f} |" for share in shares))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--cases", type=int, default=500)
    main(**vars(parser.parse_args()))

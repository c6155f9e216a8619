"""How often the six recalls of a pair show a difference where there is none, and how many of those
that there are they show: by `compare`'s step-down maxT and by Holm's correction of the same p.

A query is found by a score of three parts: one that an image has in both systems, one that it has
in one system in both directions, and one of the query alone. So recalls of a pair go together.

    python -m benchmarks.family_wise  # eight minutes of one core
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from benchmarks import numbers
from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.statistics import LEVEL, holm
from pipeline.foundation.evaluation.statistics.families import ComparedPairs, correct
from pipeline.foundation.evaluation.statistics.image_hits import FoldHits

SWAPS = 1000
SIZES = (50, 200, 1000, 5000)
CAPTIONS = 5
LIMITS = (0.6, -0.6, -1.2)
"""A query is a hit at 1, 5 and 10 where its score is above these."""
RECALLS = len(STATISTICS) - 1
CORRECTIONS = ("maxT", "Holm")
GAIN = 3.0
"""How much larger the scores of a better system are, over the root of the number of images."""
CASES = {
    "equal": (0.0, 0.0),
    "t2i differs": (0.0, 3 * GAIN),  # so clearly that step-down also tests i2t
    "all differ": (GAIN, GAIN),
}
"""How much better the second system is in i2t and in t2i."""


def system(
    images: np.ndarray, gains: tuple[float, float], generator: np.random.Generator
) -> FoldHits:
    """The hits of a system; images: what both systems find hard, [I, 1]."""
    own = 0.5 * generator.standard_normal(images.shape)
    hits = []
    for gain, queries in zip(gains, (1, CAPTIONS), strict=True):
        scores = images + own + 0.5 * generator.standard_normal((len(images), queries))
        scores += gain / np.sqrt(len(images))
        for limit in LIMITS:
            hits.append(np.sum(scores > limit, axis=1))
    asked = np.tile([1, CAPTIONS], (len(images), 1))
    return FoldHits(np.stack(hits, 1).astype(np.float64), asked)


def corrected(images: int, gains: tuple[float, float], seed: int) -> Mapping[str, np.ndarray]:
    """The corrected p of the six recalls of a drawn pair, by each correction."""
    generator = np.random.default_rng([images, seed])
    hard = generator.standard_normal((images, 1))
    first = system(hard, (0.0, 0.0), generator)
    second = system(hard, gains, generator)
    pairs = ComparedPairs.of([([[first]], [[second]])], SWAPS, seed)
    names = STATISTICS[:RECALLS]
    family = correct([pairs], [names], SWAPS, seed)
    by_max_t = [each.p for each in family.corrected]
    by_holm = holm([pairs.tests[0][name].p for name in names])
    return {"maxT": np.array(by_max_t), "Holm": np.array(by_holm)}


def rates(images: int, pairs: int) -> list[float]:
    """In percent, by each correction: false differences of equal systems, and where t2i alone
    differs; found differences where all do, and how often there is one or more.
    """
    found = []
    for gains in CASES.values():
        significant = []
        for seed in range(pairs):
            p = corrected(images, gains, seed)
            significant.append([p[name] < LEVEL for name in CORRECTIONS])
        found.append(np.array(significant))  # [pairs, corrections, recalls]
    equal, one_direction, all_differ = found
    columns = [
        equal.any(2),
        one_direction[:, :, : RECALLS // 2].any(2),
        all_differ.mean(2),
        all_differ.any(2),
    ]
    measured = []
    for column in columns:
        measured += (100 * column.mean(0)).tolist()
    return measured


def main(pairs: int = 2000) -> None:
    """Print a row for each number of images."""
    headings = []
    for what in ("false, equal", "false, t2i differs", "found", "any found"):
        headings += [f"{what}: {name}" for name in CORRECTIONS]
    print("\nfalse differences among six recalls, and those found, in % of pairs")
    print(f"{'images':>8}" + "".join(f"{heading:>26}" for heading in headings), flush=True)
    rows = []
    for images in SIZES:
        measured = rates(images, pairs)
        print(f"{images:8,}" + "".join(f"{rate:26.1f}" for rate in measured), flush=True)
        rows.append([f"{images:,}", *measured])
    columns = [("images", ""), *((heading, ".1f") for heading in headings)]
    numbers.keep("family_wise", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2000)
    main(parser.parse_args().pairs)

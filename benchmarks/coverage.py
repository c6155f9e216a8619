"""How often the 95 % intervals of recalls hold the true value, beside those of the percentile
bootstrap.

Then what `benchmarks.power` and `benchmarks.family_wise` measure.

    python -m benchmarks.coverage  # 1,000 images; six minutes of one core
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

from benchmarks import family_wise, numbers, power
from pipeline.foundation.evaluation.statistics.wilson import wilson

RECALLS = (0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
KINDS = ((1, 0.0), (5, 0.05), (5, 0.1), (5, 0.2), (5, 0.3), (5, 0.5), (5, 0.8))
"""Captions an image, and how far their hits go together (intra-cluster correlation)."""


def test_sets(recall: float, captions: int, together: float, images: int, sets: int) -> np.ndarray:
    """How many images of each drawn test set have 0, 1, … hits: int [S, captions + 1].

    An image's chance of a hit follows a beta distribution, its hits a beta-binomial one.
    """
    number = np.arange(captions + 1)
    others = 1 / together - 1 if together else 1.0
    chance = (
        stats.betabinom.pmf(number, captions, recall * others, (1 - recall) * others)
        if together
        else stats.binom.pmf(number, captions, recall)
    )
    return np.random.default_rng(0).multinomial(images, chance, size=sets)


def ours(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of our interval for each test set."""
    values, images = np.arange(counts.shape[1]) / (counts.shape[1] - 1), int(counts[0].sum())
    share = counts @ values / images
    return wilson(share, (counts * (values - share[:, None]) ** 2).sum(1), images, 0.95)


def bootstrap(counts: np.ndarray, resamples: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the percentile bootstrap over images."""
    values, images = np.arange(counts.shape[1]) / (counts.shape[1] - 1), int(counts[0].sum())
    generator = np.random.default_rng(1)
    drawn = np.stack(
        [
            generator.multinomial(images, each / images, size=resamples) @ values / images
            for each in counts
        ]
    )
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
    return low, high


def held(ends: tuple[np.ndarray, np.ndarray], recall: float) -> float:
    """In how many of a hundred test sets the true recall lies between the ends."""
    return float(100 * np.mean((ends[0] <= recall) & (recall <= ends[1])))


def main(images: int = 1000, sets: int = 20_000) -> None:
    """Print a row for each kind of captions: ours, and the bootstrap on a tenth of the test
    sets.
    """
    print(
        f"{images} images; captions, correlation"
        + " " * 13
        + "".join(f"{100 * recall:8g}" for recall in RECALLS)
    )
    rows = []
    for captions, together in KINDS:
        drawn = {recall: test_sets(recall, captions, together, images, sets) for recall in RECALLS}
        found = {
            "ours": [held(ours(each), recall) for recall, each in drawn.items()],
            "bootstrap": [
                held(bootstrap(each[: sets // 10]), recall) for recall, each in drawn.items()
            ],
        }
        for name, rates in found.items():
            row = "".join(f"{rate:8.1f}" for rate in rates)
            print(f"{captions} caption(s), {together:4g}  {name:25}{row}", flush=True)
        rows.append(
            [
                f"{captions}, {together:g}" if captions > 1 else "1",
                *zip(*found.values(), strict=True),
            ]
        )
    numbers.keep(
        "coverage",
        [("captions, correlation", ""), *((f"{100 * recall:g} %", ".1f") for recall in RECALLS)],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=20_000)
    given = parser.parse_args()
    main(given.images, given.sets)
    power.main()
    family_wise.main()

"""How often two equal recipes are said to differ, p < 0.05, by how many seeds and how far seeds
spread.

    python -m benchmarks.rejections  # a minute
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import numbers
from pipeline.foundation.evaluation.statistics.significance import difference_over_seeds
from pipeline.foundation.evaluation.statistics.welch import Runs

SPREADS = (0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5)
"""Standard deviation over seeds, in standard errors of the image sampling of the difference."""
IMAGES, AT_ONCE = 100, 2000


def side(seeds: int, spread: float, own: float, generator: np.random.Generator) -> Runs:
    """A recipe's runs on as many test sets as `AT_ONCE`; own: of an image's variance, what each
    seed has for itself.
    """
    shared = np.sqrt(1 - own) * generator.standard_normal((IMAGES, AT_ONCE))
    each = np.sqrt(own) * generator.standard_normal((seeds, IMAGES, AT_ONCE))
    # Two sides, each a mean over seeds: with this scale their difference has a standard error of 1
    # over images.
    hits = (shared + each) * np.sqrt(IMAGES / 2 / (1 - own + own / seeds))
    values = hits.mean(1)
    return Runs(values + spread * generator.standard_normal(values.shape), hits - values[:, None])


def rejections(
    seeds: tuple[int, int], spreads: tuple[float, float], own: float, sets: int
) -> tuple[float, float]:
    """In how many of a hundred cases p < 0.05: by seeds and images, and by images with the seeds
    held fixed.
    """
    generator, found = np.random.default_rng(0), []
    for _ in range(max(1, sets // AT_ONCE)):
        a, b = (
            side(count, spread, own, generator)
            for count, spread in zip(seeds, spreads, strict=True)
        )
        p = difference_over_seeds(a, b, np.ones(AT_ONCE), 0.95)[2]
        gap, images = (
            b.values.mean(0) - a.values.mean(0),
            b.contributions.mean(0) - a.contributions.mean(0),
        )
        found.append([p < 0.05, np.abs(gap) > 1.96 * images.std(0, ddof=1) / np.sqrt(IMAGES)])
    both = 100 * np.mean(found, axis=(0, 2))
    return float(both[0]), float(both[1])


def main(sets: int = 20_000) -> None:
    """Print a row for each number of seeds; the last rows have one recipe whose seeds do not
    spread.
    """
    print(f"{'seeds, own share of an image':34}" + "".join(f"{spread:14g}" for spread in SPREADS))
    kinds = [((n, n), own, True) for n in (2, 3, 5) for own in (0.0, 0.5, 1.0)] + [
        ((2, 5), 0.5, True)
    ]
    rows = []
    for seeds, own, alike in kinds + [((n, n), 0.5, False) for n in (2, 3, 5)]:
        rates = [
            rejections(seeds, (spread, spread if alike else 0.0), own, sets) for spread in SPREADS
        ]
        name = f"{seeds[0]} and {seeds[1]}, {own:g}" + ("" if alike else ", one spreads alone")
        print(
            f"{name:34}" + "".join(f"{new:6.1f} ({old:4.1f})" + " " for new, old in rates),
            flush=True,
        )
        rows.append([name, *rates])
    numbers.keep(
        "rejections",
        [("seeds, own share", ""), *((f"{spread:g}", ".1f") for spread in SPREADS)],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", type=int, default=20_000, help=f"test sets of each case, in whole {AT_ONCE:,}s"
    )
    main(parser.parse_args().sets)

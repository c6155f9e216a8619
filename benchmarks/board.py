"""How often all true ranks of several systems are within the intervals that `compare` prints, how
wide these are, and how often one or more differences are false; beside intervals by Holm's
correction and the percentiles of ranks after drawing images again.

Systems are drawn as by `benchmarks.family_wise`, and every two of them are one family that goes
together more. Gains are in standard errors: with more images, ties are as near.

    python -m benchmarks.board  # nine minutes of one core
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from benchmarks import family_wise, numbers
from pipeline.foundation.evaluation.statistics import holm, image_hits
from pipeline.foundation.evaluation.statistics.all_pairs import all_pairs
from pipeline.foundation.evaluation.statistics.distributions import chance_beyond
from pipeline.foundation.evaluation.statistics.rank_intervals import RankIntervals, rank_intervals

SWAPS = 1000
DRAWN_AGAIN = 300
SIZES = (50, 200, 1000, 5000)
METHODS = ("maxT", "Holm", "bootstrap")
BOARDS: Mapping[str, Sequence[float]] = {
    "8 equal": [0] * 8,
    "8 in two groups": [0] * 4 + [8] * 4,
    "8 near ties": [0.1 * place for place in range(8)],
    "8 mixed": [0, 0, 0, 0.5, 1, 1, 3, 6],
}
"""How much better each system is than the worst one, about in standard errors of a difference."""
OFTENER = {"8 equal": 4, "8 in two groups": 2}
"""Boards with the most differences that may be false are drawn so many times as often."""
MANY = [0.5 * (place // 2) for place in range(50)]
FAMILY = 0.4
"""What the systems of a family have in common, in standard deviations of an image's score."""


def parts(gains: Sequence[float], images: int, seed: int) -> np.ndarray:
    """Each image's part of the RSUM of systems, whose mean is the RSUM: [K, N]."""
    generator = np.random.default_rng([images, seed])
    hard = generator.standard_normal((images, 1))
    of_systems = []
    for place, gain in enumerate(gains):
        if place % 2 == 0:
            of_family = hard + FAMILY * generator.standard_normal((images, 1))
        hits = family_wise.system(of_family, (gain, gain), generator)
        of_systems.append(image_hits.parts([hits])[:, -1])
    return np.stack(of_systems)


def by_holm(table: np.ndarray) -> RankIntervals:
    """Intervals of ranks from paired t tests."""
    systems, images = table.shape
    covariance = np.cov(table) / images
    variances = covariance.diagonal()
    errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 1e-12))
    values = table.mean(1)
    difference = values - values[:, None]
    pairs = np.array(list(combinations(range(systems), 2))).T
    t = (difference / errors)[pairs[0], pairs[1]]
    corrected = holm(chance_beyond(np.full(len(t), images - 1.0), t).tolist())
    adjusted = np.ones((systems, systems))
    adjusted[pairs[0], pairs[1]] = corrected
    adjusted[pairs[1], pairs[0]] = corrected
    return rank_intervals(difference, adjusted)


def by_bootstrap(table: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The 2.5 % and 97.5 % percentiles of each system's rank, with images drawn again."""
    images = table.shape[1]
    drawn = np.random.default_rng(seed).integers(0, images, (DRAWN_AGAIN, images))
    drawn += images * np.arange(DRAWN_AGAIN)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=DRAWN_AGAIN * images)
    values = counts.reshape(DRAWN_AGAIN, images) @ table.T
    better = (values[:, :, None] < values[:, None] - 1e-9).sum(2)
    low, high = np.percentile(1 + better, [2.5, 97.5], axis=0, method="nearest")
    return low, high


def measured(gains: Sequence[float], images: int, boards: int) -> list[float]:
    """In percent of boards: one or more false differences; all true ranks within; then the mean
    number of ranks in an interval; each by each method.
    """
    true = np.array(gains)
    best = 1 + (true[:, None] < true).sum(1)
    worst = len(true) - (true[:, None] > true).sum(1)
    false = np.zeros(2)
    within = np.zeros(3)
    width = np.zeros(3)
    for seed in range(boards):
        table = parts(gains, images, seed)
        tested = all_pairs(table[:, None], SWAPS, seed)
        by_max = rank_intervals(tested.difference[..., 0], tested.adjusted[..., 0])
        found = [by_max, by_holm(table)]
        ends = [(each.best, each.worst) for each in found]
        ends.append(by_bootstrap(table, seed))
        for at, each in enumerate(found):
            false[at] += (each.above & (true[:, None] <= true)).any()
        for at, (low, high) in enumerate(ends):
            within[at] += ((low <= best) & (worst <= high)).all()
            width[at] += (high - low + 1).mean()
    rates = 100 * np.concatenate([false, within]) / boards
    return [*rates.tolist(), *(width / boards).tolist()]


def main(boards: int = 1000) -> None:
    """Print a row for each kind of board and number of images."""
    headings = []
    for what, methods in (("false", METHODS[:2]), ("within", METHODS), ("ranks", METHODS)):
        headings += [f"{what}: {method}" for method in methods]
    print("\nfalse differences and true ranks within, in % of boards; ranks in an interval")
    print(
        f"{'systems':>16}{'images':>8}{'boards':>8}" + "".join(f"{each:>19}" for each in headings)
    )
    rows = []
    cases = [(name, gains, images) for name, gains in BOARDS.items() for images in SIZES]
    cases.append(("50 mixed", MANY, 1000))
    for name, gains, images in cases:
        drawn = boards * OFTENER.get(name, 1)
        found = measured(gains, images, drawn)
        shown = "".join(f"{each:19.1f}" for each in found)
        print(f"{name:>16}{images:8,}{drawn:8,}{shown}", flush=True)
        rows.append([name, f"{images:,}", drawn, *found])
    columns = [("systems", ""), ("images", ""), ("boards", ",")]
    columns += [(heading, ".1f") for heading in headings]
    numbers.keep("board", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boards", type=int, default=1000)
    main(parser.parse_args().boards)

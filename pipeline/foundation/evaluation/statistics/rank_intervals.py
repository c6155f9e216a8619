"""The best and the worst possible rank of each of several systems, for all of them at once."""

from dataclasses import dataclass

from pipeline.foundation.evaluation.retrieval import Floats, Ids, Marks
from pipeline.foundation.evaluation.statistics.all_pairs import LEVEL


@dataclass(frozen=True)
class RankIntervals:
    """The best and the worst rank of each of K systems; 1 is that of the largest value."""

    best: Ids  # int64 [K]
    worst: Ids  # int64 [K]
    above: Marks  # bool [K, K], whether the first (axis 0) is significantly above the second


def rank_intervals(difference: Floats, adjusted: Floats, level: float = LEVEL) -> RankIntervals:
    """Count for each system those that are significantly above it and below it.

    If the p are corrected for all pairs, so that one or more false differences are as rare as the
    level, the true ranks of all systems are within these intervals with a confidence of 1 - level.
    Equal systems have all the ranks that they share, and each of these is within.

    Args:
        difference: The second system (axis 1) minus the first (axis 0): float64 [K, K].
        adjusted: The corrected p of each pair, likewise.
        level: What a corrected p of a significant difference is below.

    Returns:
        The intervals, and which systems are above which.

    Source: Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 2024, section 3.
    """
    above = (adjusted < level) & (difference < 0)
    best = 1 + above.sum(0)
    worst = len(above) - above.sum(1)
    return RankIntervals(best, worst, above)

"""What every metric offers: a number for each query, and how these become one, with its 95 %
interval.

Intervals are over test sets of other images, each drawn with its captions.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from pipeline.evaluation.metrics.numbers import Statistic, nested
from pipeline.evaluation.retrieval import Floats, Ids, QueryRanks, Ranks, Scores, Ties
from pipeline.evaluation.retrieval.placements import Placements, place
from pipeline.evaluation.statistics.wilson import Interval, of_mean_share
from pipeline.evaluation.student import quantile

Cutoff = Literal["none", "optional", "needed"]


@dataclass(frozen=True, eq=False)
class Ranked:
    """One direction's queries after ranking."""

    best: QueryRanks  # each query's best right candidate
    drawn_with: np.ndarray  # int64 [Q], the image with which intervals draw each query
    every: Placements | None = (
        None  # all right candidates of the same queries; None where no metric asks for them
    )

    @property
    def placements(self) -> Placements:
        """All right candidates; for metrics with `needs_every`."""
        assert self.every is not None
        return self.every


@dataclass(frozen=True, eq=False)
class Fold:
    """Both directions of one pool, and how ties count."""

    i2t: Ranked
    t2i: Ranked
    images: int
    ties: Ties = "expected"

    @classmethod
    def of(
        cls, ranks: Ranks, ties: Ties, every: tuple[Placements, Placements] | None = None
    ) -> "Fold":
        """Bring together what was counted of one pool."""
        i2t, t2i = every or (None, None)
        return cls(
            Ranked(ranks.i2t, ranks.i2t.query, i2t and i2t.broken(ties)),
            Ranked(
                ranks.t2i, ranks.relevance.drawn_with[ranks.t2i.query], t2i and t2i.broken(ties)
            ),
            ranks.shape[0],
            ties,
        )

    def ranked(self, direction: str) -> Ranked:
        """The queries of one direction."""
        return self.i2t if direction == "i2t" else self.t2i


@dataclass(frozen=True)
class Metric(ABC):
    """A metric with its cutoff: nDCG@10.

    A subclass sets the class variables and writes `of_queries`; its docstring says what it is, and
    names its source. All but ranks are shares from 0 to `most`, which are printed in percent.
    """

    name: ClassVar[str]  # As it is printed, without a cutoff
    cutoff: ClassVar[Cutoff] = "none"  # Whether it has a K
    # Whether it asks for all right candidates of a query, or for the best alone.
    needs_every: ClassVar[bool] = False
    less_is_better: ClassVar[bool] = False  # Whether the smallest value is the best
    is_share: ClassVar[bool] = True  # Whether it is printed in percent
    is_median: ClassVar[bool] = False  # Whether the queries' median is taken, not their mean
    # None for a number for each direction; else the sum of both directions' is taken, divided by
    # this.
    summed: ClassVar[float | None] = None
    most: ClassVar[float] = 1
    k: int | None = None
    # Candidates of a lower grade are wrong, `nDCG(rel=2)@10`; None: every one with a grade above 0
    # is right.
    grade: float | None = field(default=None)

    def __str__(self) -> str:
        grade = "" if self.grade is None else f"(rel={self.grade:g})"
        return f"{self.name}{grade}" + ("" if self.k is None else f"@{self.k}")

    @property
    def asks_for_every(self) -> bool:
        """Whether all right candidates must be placed."""
        return self.needs_every or self.grade is not None

    @property
    def scale(self) -> float:
        """By what a value is multiplied when it is printed."""
        return 100 if self.is_share else 1

    def number(
        self, folds: Sequence["Fold"], direction: str, values: Sequence[Floats] | None = None
    ) -> float:
        """The metric as printed, shares in percent: the mean over folds of the mean or median over
        queries.

        values: what `values` gave for each fold of the direction, "" for a metric that is `summed`,
            if known.
        """
        known = values or [self.values(fold.ranked(direction), fold.ties) for fold in folds]
        return float(np.mean([self._mean(each) for each in known]))

    def _mean(self, values: Floats) -> float:
        return (
            float(np.median(values))
            if self.is_median
            else self.scale * math.fsum(values) / len(values)
        )

    def values(self, ranked: Ranked, ties: Ties) -> Floats:
        """The value of each of one direction's ranked queries, float64 [Q], by how ties count.

        With a `grade`, candidates below it are wrong, and a query without a right candidate has 0.
        """
        if self.grade is None:
            return self.of_queries(ranked, ties)
        every = ranked.placements.at_least(self.grade)
        return self.of_queries(Ranked(every.best(), ranked.drawn_with, every), ties)

    @abstractmethod
    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        """The value of each query, float64 [Q], where every candidate with a grade is right.

        Args:
            ranked: One direction's queries; `ranked.every` has the ties broken already.
            ties: "expected" asks for the exact mean over all orders of tied candidates, the others
                for the worst or the best.

        Raises:
            InputError: If a rank is needed and not known: a run file may leave out a right
                candidate.
        """


CONFIDENCE = 0.95
DRAWN_AT_ONCE = 4_000_000  # queries of resampled test sets in memory at once


class Sampling(Protocol):
    """The settings that metrics need."""

    resamples: int  # how many test sets are drawn for the interval of a median
    seed: int  # of the drawing
    block_megabytes: float  # size of all blocks in memory at once (10^6 bytes)


def fold_of(
    source: Scores,
    ranks: Ranks,
    metrics: Sequence[Metric],
    ties: Ties,
    block_megabytes: float = 32,
    progress: Callable[[int], object] = lambda queries: None,
) -> Fold:
    """One pool, with all right candidates placed where a metric asks for them."""
    relevance, images, every = ranks.relevance, ranks.shape[0], None
    if any(metric.asks_for_every for metric in metrics):
        every = (
            place(source, relevance, "i2t", block_megabytes, progress),
            place(source, relevance, "t2i", block_megabytes, lambda done: progress(images + done)),
        )
    return Fold.of(ranks, ties, every)


def with_intervals(
    metrics: Sequence[Metric],
    folds: Sequence[Fold],
    resamples: int = 1000,
    seed: int = 0,
    directions: Sequence[str] = ("i2t", "t2i"),
) -> dict[Statistic, Interval]:
    """Compute several metrics with their 95 % intervals."""
    return {
        Statistic(way, str(metric)): _with_interval(metric, folds, way, resamples, seed)
        for metric in metrics
        for way in (directions if metric.summed is None else [""])
    }


def as_dict(numbers: Mapping[Statistic, Interval]) -> dict[str, Any]:
    """Turn numbers into plain JSON values."""
    return {
        **nested({name: each.value for name, each in numbers.items()}),
        "interval": nested({name: [each.low, each.high] for name, each in numbers.items()}),
    }


def _with_interval(
    metric: Metric, folds: Sequence[Fold], way: str, resamples: int, seed: int
) -> Interval:
    parts = [
        (
            [metric.values(fold.ranked(each), fold.ties) for fold in folds],
            [fold.ranked(each).drawn_with for fold in folds],
        )
        for each in ([way] if way else ["i2t", "t2i"])
    ]
    value = metric.number(folds, way, parts[0][0])
    if metric.is_median:
        return Interval(value, *of_median(*parts[0], resamples, seed), CONFIDENCE)
    each = joint(parts) / (metric.summed or 1)
    if not metric.is_share:
        return Interval(value, *of_mean(value, each, least=1), CONFIDENCE)
    share, scale = each / metric.most, metric.scale * metric.most
    low, high = of_mean_share(value / scale, share, CONFIDENCE)
    return Interval(value, scale * low, scale * high, CONFIDENCE)


def joint(parts: Sequence[tuple[Sequence[Floats], Sequence[Ids]]]) -> Floats:
    """By how much each image of all folds lies above or below the sum of several means over
    queries.
    """
    folds = []
    for fold in range(len(parts[0][0])):
        images = 1 + max(int(owners[fold].max()) for _, owners in parts)
        asked, total = np.zeros(images, bool), np.zeros(images)
        counts, sums = [], []
        for values, owners in parts:
            counts.append(np.bincount(owners[fold], minlength=images))
            sums.append(np.bincount(owners[fold], values[fold], minlength=images))
            asked |= counts[-1] > 0
        for count, total_of_fold in zip(counts, sums, strict=True):
            total += (total_of_fold - total_of_fold.sum() / count.sum() * count) / count[
                asked
            ].mean()
        folds.append(total[asked])
    images = sum(map(len, folds))
    # A number is the mean over folds, so an image of a smaller fold has more weight.
    return np.concatenate([each * (images / (len(folds) * len(each))) for each in folds])


def of_mean(value: float, each: Floats, least: float) -> tuple[float, float]:
    """Compute Student's interval of a mean of any values."""
    freedom = max(len(each) - 1, 1)
    half = float(
        quantile(freedom, (1 + CONFIDENCE) / 2) * np.sqrt((each**2).sum() / (freedom * len(each)))
    )
    return max(least, value - half), value + half


def of_median(
    values: Sequence[Floats], owners: Sequence[Ids], resamples: int, seed: int
) -> tuple[float, float]:
    """Compute the percentile bootstrap's interval of a median over queries, with images drawn
    within each fold.

    Source:
        Efron and Tibshirani, 1993, chapter 13.
    """
    generator = np.random.default_rng(seed)
    folds = [_in_one_order(*fold) for fold in zip(values, owners, strict=True)]
    folds.sort(key=lambda fold: [each.tobytes() for each in fold])
    drawn = np.mean([_medians(*fold, resamples, generator) for fold in folds], axis=0)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _in_one_order(values: Floats, owner: Ids) -> tuple[Floats, Ids]:
    """Sort values, and number their images by the values that each has, so that the same are drawn
    in any order of images.
    """
    image = np.unique(owner, return_inverse=True)[1]
    order = np.lexsort((values, image))
    ends = np.cumsum(np.bincount(image))
    of_each = [each.tobytes() for each in np.split(values[order], ends[:-1])]
    number = np.empty(len(of_each), np.int64)
    number[sorted(range(len(of_each)), key=of_each.__getitem__)] = np.arange(len(of_each))
    order = np.lexsort((number[image], values))
    return values[order], number[image][order]


def _medians(values: Floats, image: Ids, resamples: int, generator: np.random.Generator) -> Floats:
    """The medians of values, ascending, each of one of so many images that are drawn again."""
    images = int(image.max()) + 1
    medians = []
    at_once = max(1, DRAWN_AT_ONCE // len(values))
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        weights = generator.multinomial(images, np.full(images, 1 / images), size=count)
        total = np.cumsum(weights[:, image], axis=1)
        # The two middle ones of the queries that were drawn, in order.
        for middle in zip(total, total[:, -1], strict=True):
            cumulated, size = middle
            ranks = np.searchsorted(cumulated, [(size + 1) // 2, size // 2 + 1])
            medians.append(values[ranks].mean())
    return np.array(medians)

"""What every metric offers: a number for each query, and how these become one, with its 95 %
interval.

A number is named by a direction and a metric; in JSON {"i2t": {"R@1": 55.1}, "t2i": {...}, "RSUM":
412.3}. Intervals are over test sets of other images, each drawn with its captions.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats, Ids, QueryRanks, Ranks, Scores, Ties
from pipeline.foundation.evaluation.retrieval.placements import NEVER, Placements, place
from pipeline.foundation.evaluation.statistics.distributions import quantile
from pipeline.foundation.evaluation.statistics.wilson import Interval, of_mean_share
from pipeline.foundation.parts.errors import InputError

Cutoff = Literal["none", "optional", "needed"]
# What is asked and what is found; the last two are tasks of CxC alone.
TASKS = {
    "i2t": "image → caption",
    "t2i": "caption → image",
    "i2i": "image → image",
    "t2t": "caption → caption",
}


class Statistic(NamedTuple):
    """What a number is: the metric of a direction, or of both together."""

    # A key of `TASKS`, "" for both. Tables also have metrics of something else, such as a language.
    direction: str
    metric: str  # Its name, see `pipeline.foundation.evaluation.metrics`

    def __str__(self) -> str:
        """The heading of its column in a flat table: i2t R@1, RSUM."""
        return f"{self.direction} {self.metric}".lstrip()


RECALLS = (1, 5, 10)
RSUM = Statistic("", "RSUM")
# What systems are compared by: six recalls and their sum.
STATISTICS = (*(Statistic(way, f"R@{k}") for way in ("i2t", "t2i") for k in RECALLS), RSUM)


def nested(numbers: Mapping[Statistic, Any]) -> dict[str, Any]:
    """Numbers as JSON has them: by direction and metric."""
    tree: dict[str, Any] = {}
    for (direction, metric), value in numbers.items():
        if direction:
            tree.setdefault(direction, {})[metric] = value
        else:
            tree[metric] = value
    return tree


def at(numbers: Mapping[str, Any], statistic: Statistic) -> Any:
    """One of the numbers that `nested` nested."""
    if statistic.direction:
        return numbers[statistic.direction][statistic.metric]
    return numbers[statistic.metric]


def joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Nested numbers of both; the first's where both have one."""
    both = dict(first)
    for name, value in second.items():
        if name not in first:
            both[name] = value
        elif isinstance(first[name], Mapping):
            both[name] = joined(first[name], value)
    return both


def flat(numbers: Mapping[str, Any]) -> dict[Statistic, Any]:
    """What `nested` was made of."""
    values: dict[Statistic, Any] = {}
    for name, value in numbers.items():
        if name not in TASKS:
            values[Statistic("", name)] = value
            continue
        for metric, number in value.items():
            values[Statistic(name, metric)] = number
    return values


@dataclass(frozen=True, eq=False)
class Ranked:
    """One direction's queries after ranking."""

    best: QueryRanks  # each query's best right candidate
    drawn_with: np.ndarray  # int64 [Q], the image with which intervals draw each query
    # All right candidates of the same queries; None where no metric asks for them.
    every: Placements | None = None

    def broken(self, ties: Ties) -> "Ranked":
        """The same queries with the ties of all right candidates broken."""
        if self.every is None:
            return self
        return replace(self, every=self.every.broken(ties))

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
        owner = ranks.relevance.drawn_with[ranks.t2i.query]
        i2t = None
        t2i = None
        if every is not None:
            i2t, t2i = every
        of_images = Ranked(ranks.i2t, ranks.i2t.query, i2t)
        of_captions = Ranked(ranks.t2i, owner, t2i)
        return cls(of_images, of_captions, ranks.shape[0]).broken(ties)

    def broken(self, ties: Ties) -> "Fold":
        """The same pool with its ties broken, of one where they are not."""
        return Fold(self.i2t.broken(ties), self.t2i.broken(ties), self.images, ties)

    def tells(self, metric: "Metric", direction: str) -> bool:
        """Whether a metric is known: there are queries, and for a rank each one's right candidate
        is listed.
        """
        above = self.ranked(direction).best.greater
        if not len(above):
            return False
        return metric.is_share or bool((above < NEVER).all())

    def ranked(self, direction: str) -> Ranked:
        """The queries of one direction."""
        if direction == "i2t":
            return self.i2t
        return self.t2i


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
        name = self.name
        if self.grade is not None:
            name += f"(rel={self.grade:g})"
        if self.k is not None:
            name += f"@{self.k}"
        return name

    @property
    def asks_for_every(self) -> bool:
        """Whether all right candidates must be placed."""
        return self.needs_every or self.grade is not None

    @property
    def scale(self) -> float:
        """By what a value is multiplied when it is printed."""
        if self.is_share:
            return 100
        return 1

    def number(
        self, folds: Sequence["Fold"], direction: str, values: Sequence[Floats] | None = None
    ) -> float:
        """The metric as printed, shares in percent: the mean over folds of the mean or median over
        queries.

        values: what `values` gave for each fold of the direction, "" for a metric that is `summed`,
            if known.
        """
        if not values:
            values = [self.values(fold.ranked(direction), fold.ties) for fold in folds]
        return self.mean(values)

    def mean(self, values: Sequence[Floats]) -> float:
        """The mean over folds of the mean or median over queries, as printed, of their values."""
        return float(np.mean([self._mean(of_fold) for of_fold in values]))

    def _mean(self, values: Floats) -> float:
        if self.is_median:
            return float(np.median(values))
        return self.scale * math.fsum(values) / len(values)

    def values(self, ranked: Ranked, ties: Ties) -> Floats:
        """The value of each of one direction's ranked queries, float64 [Q], by how ties count.

        With a `grade`, candidates below it are wrong, and a query without a right candidate has 0.
        """
        if self.grade is None:
            return self.of_queries(ranked, ties)
        placements = ranked.placements.at_least(self.grade)
        right = Ranked(placements.best(), ranked.drawn_with, placements)
        return self.of_queries(right, ties)

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
WIDE = 0.05  # A narrower range over ties does not show in the digits that are printed.
Range: TypeAlias = tuple[float, float]
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
    if not any(metric.asks_for_every for metric in metrics):
        return Fold.of(ranks, ties)
    relevance = ranks.relevance
    images = ranks.shape[0]
    of_images = place(source, relevance, "i2t", block_megabytes, progress)
    of_captions = place(
        source, relevance, "t2i", block_megabytes, lambda done: progress(images + done)
    )
    return Fold.of(ranks, ties, (of_images, of_captions))


def with_intervals(
    metrics: Sequence[Metric],
    folds: Sequence[Fold],
    resamples: int = 1000,
    seed: int = 0,
    directions: Sequence[str] = ("i2t", "t2i"),
) -> dict[Statistic, Interval]:
    """Compute several metrics with their 95 % intervals."""
    numbers = {}
    for metric in metrics:
        ways = directions
        if metric.summed is not None:
            ways = [""]
        for way in ways:
            statistic = Statistic(way, str(metric))
            numbers[statistic] = of_runs(metric, [folds], way, resamples, seed)
    return numbers


def over_ties(metrics: Sequence[Metric], folds: Sequence[Fold]) -> dict[Statistic, Range]:
    """The smallest and the largest value of metrics over all orders of tied candidates.

    The metrics are those that are the better the higher a right candidate is, and the folds have
    ties that are not broken. A range that is not wider than `WIDE` is left out, and so is what
    lists do not tell.
    """
    bounds: list[Ties] = ["pessimistic", "optimistic"]
    broken = [[fold.broken(ties) for fold in folds] for ties in bounds]
    ranges = {}
    for metric in metrics:
        ways = ["i2t", "t2i"]
        if metric.summed is not None:
            ways = [""]
        for way in ways:
            asking = [way] if way else ["i2t", "t2i"]
            if not all(fold.tells(metric, each) for fold in folds for each in asking):
                continue
            ends = [metric.number(of_bound, way) for of_bound in broken]
            low, high = sorted(ends)
            if high - low > WIDE:
                ranges[Statistic(way, str(metric))] = (low, high)
    return ranges


def as_dict(numbers: Mapping[Statistic, Interval]) -> dict[str, Any]:
    """Turn numbers into plain JSON values."""
    values = {}
    ends = {}
    for statistic, interval in numbers.items():
        values[statistic] = interval.value
        ends[statistic] = [interval.low, interval.high]
    return {**nested(values), "interval": nested(ends)}


def of_runs(
    metric: Metric,
    runs: Sequence[Sequence[Fold]],
    way: str,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The mean of a metric over runs of one system, such as seeds, with its 95 % interval over the
    images that all of them rank.

    runs: the folds of each. way: the direction, "" for a metric of both. For the median of several
        runs it is as wide as if all of them erred alike.
    """
    directions = ["i2t", "t2i"]
    if way:
        directions = [way]
    found = [_of_run(metric, folds, directions) for folds in runs]
    numbers = [
        metric.number(folds, way, of_run.values) for folds, of_run in zip(runs, found, strict=True)
    ]
    value = float(np.mean(numbers))
    if metric.is_median:
        ends = [of_median(*of_run.parts[0], resamples, seed) for of_run in found]
        low, high = np.mean(ends, axis=0).tolist()
        return Interval(value, low, high, CONFIDENCE)
    apart = [joint(of_run.parts) for of_run in found]
    by_image: Floats = np.mean(apart, axis=0) / (metric.summed or 1)
    return _interval(metric, value, by_image, metric.most)


class ByImage(NamedTuple):
    """A metric of one system, the mean over its runs."""

    interval: Interval
    # float64 [N], each image's part of it, multiplied by N so that their mean is the metric.
    parts: Floats


def by_image(metric: Metric, runs: Sequence[Sequence[Fold]], directions: Sequence[str]) -> ByImage:
    """The mean of a metric over runs of one system and over directions, whose sum is taken of a
    metric that is `summed`, with its 95 % interval and each image's part.

    runs: the folds of each, on the same queries. directions: those that have queries.

    Raises:
        InputError: For a median, of which no image has a part, and for a mean of both directions
            where there is one.
    """
    if metric.is_median:
        raise InputError(
            f"{metric}: is a median, not a mean over images, so it cannot be tested by image; choose MeanR"
        )
    divisor = float(len(directions))
    most = metric.most
    if metric.summed is not None:
        divisor = metric.summed
        most *= len(directions) / 2
    if metric.summed not in (None, 1.0) and len(directions) == 1:
        raise InputError(
            f"{metric}: is of both directions, and there is one; choose RSUM, which is then the sum of its "
            "three recalls, or mean_recall"
        )
    found = [_of_run(metric, folds, directions) for folds in runs]
    apart = np.mean([joint(of_run.parts) for of_run in found], axis=0) / divisor
    parts = np.mean([_parts(of_run.parts) for of_run in found], axis=0) / divisor
    means = []
    for of_run in found:
        of_directions = [metric.mean(values) for values, _ in of_run.parts]
        means.append(sum(of_directions) / divisor)
    interval = _interval(metric, float(np.mean(means)), apart, most)
    return ByImage(interval, metric.scale * parts)


def _interval(metric: Metric, value: float, apart: Floats, most: float) -> Interval:
    """The interval of a mean.

    apart: [N], how far each image's values are from it, before they are scaled. most: the largest
        that a share can be.
    """
    if not metric.is_share:
        low, high = of_mean(value, apart, least=1)
        return Interval(value, low, high, CONFIDENCE)
    scale = metric.scale * most
    low, high = of_mean_share(value / scale, apart / most, CONFIDENCE)
    return Interval(value, scale * low, scale * high, CONFIDENCE)


class _Run(NamedTuple):
    # Of each direction, the values of each fold's queries and the images with which they are drawn.
    parts: list[tuple[list[Floats], list[Ids]]]

    @property
    def values(self) -> list[Floats]:
        """The values of the first direction's queries."""
        values, _ = self.parts[0]
        return values


def _of_run(metric: Metric, folds: Sequence[Fold], directions: Sequence[str]) -> _Run:
    parts = []
    for direction in directions:
        ranked = [fold.ranked(direction) for fold in folds]
        values = [
            metric.values(queries, fold.ties) for queries, fold in zip(ranked, folds, strict=True)
        ]
        parts.append((values, [queries.drawn_with for queries in ranked]))
    return _Run(parts)


def joint(parts: Sequence[tuple[Sequence[Floats], Sequence[Ids]]]) -> Floats:
    """For each image of all folds, how far its queries' values are from their mean; of several
    means, such as both directions, the sum of these.
    """
    count = len(parts[0][0])
    folds = []
    for fold in range(count):
        of_fold = [(values[fold], drawn_with[fold]) for values, drawn_with in parts]
        folds.append(_apart(of_fold))
    images = sum(len(apart) for apart in folds)
    # A number is the mean over folds, so an image of a smaller fold has more weight.
    return np.concatenate([apart * (images / (count * len(apart))) for apart in folds])


def _parts(parts: Sequence[tuple[Sequence[Floats], Sequence[Ids]]]) -> Floats:
    """For each image of all folds its queries' part of their mean, multiplied by N; of several
    means, such as both directions, the sum of these.
    """
    count = len(parts[0][0])
    folds = []
    for fold in range(count):
        images = 1 + max(int(drawn_with[fold].max()) for _, drawn_with in parts)
        asked = np.zeros(images, bool)
        of_fold = np.zeros(images)
        for values, drawn_with in parts:
            asked[drawn_with[fold]] = True
            of_fold += np.bincount(drawn_with[fold], values[fold], images) / len(values[fold])
        folds.append(of_fold[asked])
    every = np.concatenate(folds)
    return every * (len(every) / count)


def _apart(parts: Sequence[tuple[Floats, Ids]]) -> Floats:
    """For each image of one fold, how far its queries' values are from their mean; of several
    means, such as both directions, the sum of these.
    """
    images = 1 + max(int(owner.max()) for _, owner in parts)
    counts = [np.bincount(owner, minlength=images) for _, owner in parts]
    asked = np.any(counts, axis=0)
    apart = np.zeros(images)
    for (values, owner), count in zip(parts, counts, strict=True):
        total = np.bincount(owner, values, minlength=images)
        mean = total.sum() / count.sum()
        apart += (total - mean * count) / count[asked].mean()
    return apart[asked]


def of_mean(value: float, apart: Floats, least: float) -> tuple[float, float]:
    """Compute Student's interval of a mean of any values."""
    freedom = max(len(apart) - 1, 1)
    deviation = np.sqrt((apart**2).sum() / (freedom * len(apart)))
    half = float(quantile(freedom, (1 + CONFIDENCE) / 2) * deviation)
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
    folds.sort(key=_as_bytes)
    medians = [_medians(*fold, resamples, generator) for fold in folds]
    drawn = np.mean(medians, axis=0)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _as_bytes(fold: tuple[Floats, Ids]) -> list[bytes]:
    return [array.tobytes() for array in fold]


def _in_one_order(values: Floats, owner: Ids) -> tuple[Floats, Ids]:
    """Sort values, and number their images by the values that each has, so that the same are drawn
    in any order of images.
    """
    image = np.unique(owner, return_inverse=True)[1]
    order = np.lexsort((values, image))
    ends = np.cumsum(np.bincount(image))
    by_image = [part.tobytes() for part in np.split(values[order], ends[:-1])]
    images = len(by_image)
    number = np.empty(images, np.int64)
    number[sorted(range(images), key=by_image.__getitem__)] = np.arange(images)
    order = np.lexsort((number[image], values))
    return values[order], number[image][order]


def _medians(values: Floats, image: Ids, resamples: int, generator: np.random.Generator) -> Floats:
    """The medians of values, ascending, each of one of so many images that are drawn again."""
    images = int(image.max()) + 1
    chances = np.full(images, 1 / images)
    medians = []
    at_once = max(1, DRAWN_AT_ONCE // len(values))
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        weights = generator.multinomial(images, chances, size=count)
        total = np.cumsum(weights[:, image], axis=1)
        for cumulated in total:
            size = cumulated[-1]
            # The two middle ones of the queries that were drawn, in order.
            middle = np.searchsorted(cumulated, [(size + 1) // 2, size // 2 + 1])
            medians.append(values[middle].mean())
    return np.array(medians)

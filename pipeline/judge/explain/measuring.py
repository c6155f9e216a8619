"""Numbers of many measurements of one system; what several of them share is ranked once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, product
from typing import Any, NoReturn, TypeAlias, get_args

import numpy as np

from pipeline.foundation.evaluation.metrics import parse
from pipeline.foundation.evaluation.metrics.base import RECALLS, Fold, Metric, Ranked, of_runs
from pipeline.foundation.evaluation.metrics.kinds import Hit, Recall, RSum
from pipeline.foundation.evaluation.retrieval import (
    Floats,
    QueryRanks,
    Relevance,
    Scores,
    Ties,
    rank,
    select,
)
from pipeline.foundation.evaluation.retrieval.blocks import Cells, Matrix
from pipeline.foundation.evaluation.retrieval.owners import numbered
from pipeline.foundation.evaluation.retrieval.placements import NEVER, Placements, Placing, place
from pipeline.foundation.evaluation.retrieval.positions import by_position
from pipeline.foundation.evaluation.retrieval.ranks import KnownRanks
from pipeline.foundation.evaluation.retrieval.relevance import without_queries
from pipeline.foundation.evaluation.retrieval.similarity import PerDirection
from pipeline.foundation.evaluation.statistics.wilson import Interval
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain.arrays import multiplied, read, rounded
from pipeline.judge.explain.differences import CORRECTIONS, Measurement
from pipeline.judge.explain.given import WAYS, Given, Pool
from pipeline.judge.systems.rescoring import RESCORERS
from pipeline.judge.systems.rescoring.bank import of_test

Progress: TypeAlias = Callable[[int, int], object]
# The recalls in a sum are rounded to so many decimals.
DECIMALS = 1
# By what the sum of six recalls is divided.
SHARES: Mapping[str, int] = {"half": 2, "third": 3, "sixth": 6}

# (What is a hit, the rule for ties) -> the folds ranked so.
Folds: TypeAlias = Mapping[tuple[str, str], list[Fold]]


class Measuring:
    """The numbers of measurements of a system in one or several splits."""

    def __init__(self, splits: Mapping[str, Given], needs_every: bool = False) -> None:
        """Measure the pools of some splits. needs_every: whether a metric asks for all right
        candidates.
        """
        self.splits = splits
        self.needs_every = needs_every
        self._folds: dict[tuple[object, ...], Folds] = {}
        self._values: dict[tuple[object, ...], float] = {}
        # Of one fold alone, which several measurements have.
        self._of_folds: dict[tuple[object, ...], float] = {}
        # The last product of vectors, and what it is.
        self._product: tuple[tuple[object, ...], Cells] | None = None

    def rank(
        self, wanted: Iterable[Measurement], progress: Progress = lambda done, total: None
    ) -> None:
        """Rank all that measurements share, so that scores are computed once; one matrix is in
        memory at a time.
        """
        missing_by_ranking = {}
        for measurement in chain.from_iterable(map(self.of_seeds, wanted)):
            ranking = _ranking(measurement)
            if ranking not in self._folds:
                missing_by_ranking[ranking] = measurement
        missing = list(missing_by_ranking.values())
        missing.sort(key=lambda measurement: str(_scores(measurement)))
        total = len(self._folds) + len(missing)
        for _, measurements_of_scores in groupby(missing, _scores):
            measurements = list(measurements_of_scores)
            scores = self._scores(measurements[0])
            for measurement in measurements:
                folds: Folds = {}
                if scores is not None:
                    folds = self._ranked(measurement, scores)
                self._folds[_ranking(measurement)] = folds
                progress(len(self._folds), total)

    def given(self, wanted: Measurement) -> Given:
        """The pool that is measured."""
        given = self.splits[wanted.split].read(wanted.reading)
        assert given is not None, "the search asks for readings that there are"
        return given

    def _seed(self, wanted: Measurement) -> Given:
        """The pool by the seed that is measured."""
        return self.given(wanted).seeds[wanted.seed or 0]

    def is_ranked(self, wanted: Measurement) -> bool:
        """Is a measurement's ranking already computed?"""
        return all(_ranking(of_seed) in self._folds for of_seed in self.of_seeds(wanted))

    def of_seeds(self, wanted: Measurement) -> list[Measurement]:
        """The measurements of each seed whose mean is wanted."""
        seeds = len(self.given(wanted).seeds)
        if wanted.seed is not None or seeds == 1:
            return [wanted]
        return [replace(wanted, seed=seed) for seed in range(seeds)]

    def number(self, wanted: Measurement, metric: Metric, way: str) -> float | None:
        """A metric of a direction, "" for both; None where it cannot be measured."""
        of_seeds = self.of_seeds(wanted)
        if len(of_seeds) > 1:
            numbers = [self.number(of_seed, metric, way) for of_seed in of_seeds]
            known = [number for number in numbers if number is not None]
            if len(known) < len(numbers):
                return None
            return float(np.mean(known))
        ranking = _ranking(wanted)
        measured_key = (ranking, wanted.of("ranking", "metric"), wanted.sum_of_rounded, metric, way)
        if measured_key not in self._values:
            self.rank([wanted])
            folds = self._folds[ranking].get((wanted.hits, wanted.ties))
            self._values[measured_key] = np.nan
            if folds is not None:
                self._values[measured_key] = self._number(wanted, metric, way, folds)
        value = self._values[measured_key]
        if np.isnan(value):
            return None
        return value

    def interval(self, wanted: Measurement, metric: Metric, way: str) -> Interval:
        """A metric of a direction, "" for both, with its 95 % interval over images."""
        self.rank([wanted])
        runs = []
        for of_seed in self.of_seeds(wanted):
            runs.append(self._folds[_ranking(of_seed)][wanted.hits, wanted.ties])
        return of_runs(metric, runs, way)

    def images(self, wanted: Measurement, way: str) -> int:
        """How many images the queries of a direction are drawn with, "" for both."""
        of_seed = self.of_seeds(wanted)[0]
        self.rank([of_seed])
        ways: tuple[str, ...] = WAYS
        if way:
            ways = (way,)
        count = 0
        for fold in self._folds[_ranking(of_seed)][wanted.hits, wanted.ties]:
            drawn_with = [fold.ranked(each_way).drawn_with for each_way in ways]
            count += len(np.unique(np.concatenate(drawn_with)))
        return count

    def _scores(self, wanted: Measurement) -> Scores | None:
        given = self._seed(wanted)
        with _unless_as_given(wanted):
            if given.vectors is None:
                return _corrected(read(given, wanted), wanted)
            cells = rounded(self._multiplied(given, wanted), wanted.scores)
            return _corrected(Matrix(cells), wanted)
        return None

    def _multiplied(self, given: Given, wanted: Measurement) -> Cells:
        """The product of vectors; one at a time is in memory."""
        name = (wanted.split, wanted.reading, *wanted.of("vectors"))
        if self._product is None or self._product[0] != name:
            self._product = None
            self._product = name, multiplied(given, wanted)
        return self._product[1]

    def _ranked(self, wanted: Measurement, scores: Scores) -> Folds:
        """The folds of a pool, by what is a hit and the rule for ties."""
        given = self._seed(wanted)
        relevance = given.relevance(wanted.right)
        if isinstance(scores, KnownRanks):
            return self._of_hits(scores, given.pool(wanted), relevance)
        ranked: Callable[..., Iterator[tuple[tuple[str, str], Fold]]] = _each
        if wanted.hits == "any":
            ranked = partial(_any, needs_every=self.needs_every)
        folds = defaultdict[tuple[str, str], list[Fold]](list)
        with _unless_as_given(wanted):
            for rows, columns in given.pool(wanted):
                of_pool = select(scores, rows, columns)
                right = relevance.select(rows, columns)
                if without_queries(right):
                    return {}
                for hit_and_ties, fold in ranked(of_pool, right):
                    folds[hit_and_ties].append(fold)
            return folds
        return {}

    def _of_hits(self, hits: KnownRanks, pool: Pool, relevance: Relevance) -> Folds:
        """The folds of a pool by ranks that were counted before."""
        if self.needs_every:
            hits.refuse("the rank of every right candidate")
        folds = defaultdict[tuple[str, str], list[Fold]](list)
        for rows, columns in pool:
            ranks = hits.among(rows, columns, relevance.select(rows, columns))
            for ties in get_args(Ties):
                folds["any", ties].append(Fold.of(ranks, ties))
        return folds

    def _number(self, wanted: Measurement, metric: Metric, way: str, folds: list[Fold]) -> float:
        if wanted.directions == "mean" and metric.summed is None:
            own = replace(wanted, directions="own")
            return float(np.mean([self._known(own, metric, each_way) for each_way in WAYS]))
        metric = _instead(wanted, metric)
        if wanted.tool:
            return self._of_tool(wanted, metric, way)
        if isinstance(metric, RSum):
            return self._sum_of_recalls(wanted, metric, way)
        if wanted.fold is not None:
            folds = [folds[wanted.fold]]
        if isinstance(metric, Hit):
            metric = _hit(wanted, metric)
        if wanted.directions == "exchanged":
            way = WAYS[way == WAYS[0]]
        return float(np.mean([self._of_fold(wanted, metric, way, fold) for fold in folds]))

    def _of_tool(self, wanted: Measurement, metric: Metric, way: str) -> float:
        """A metric as another tool measures it; NaN where it does not."""
        of_tools = self._seed(wanted).of_tools
        if of_tools is None or way != "t2i":
            return np.nan
        return of_tools.number(wanted.tool, metric)

    def _known(self, wanted: Measurement, metric: Metric, way: str) -> float:
        """A metric of a direction; NaN where it cannot be measured."""
        number = self.number(wanted, metric, way)
        if number is None:
            return np.nan
        return number

    def _of_fold(self, wanted: Measurement, metric: Metric, way: str, fold: Fold) -> float:
        """A metric of one direction of one fold; NaN where lists of the best do not tell it."""
        if not fold.tells(metric, way):
            return np.nan
        if metric.asks_for_every and fold.ranked(way).every is None:
            return np.nan
        # Folds are kept, so that no other one has the identity of one of them.
        fold_key = (id(fold), metric, way, wanted.averaged, wanted.from_zero, wanted.median)
        if fold_key not in self._of_folds:
            values = metric.values(fold.ranked(way), fold.ties)
            if wanted.averaged == "images":
                values = _by_image(values, fold.ranked(way))
            if wanted.averaged == "found":
                values = values[fold.ranked(way).best.greater < NEVER]
            if wanted.averaged == "judged" and metric.is_share:
                unlisted = self._seed(wanted).unlisted
                values = np.concatenate([values, np.zeros(unlisted)])
            if not len(values):
                return np.nan
            if not metric.is_share and wanted.from_zero:
                values = values - 1
            if metric.is_median and wanted.median != "mean":
                number = _median(values, wanted.median)
            else:
                number = metric.number([fold], way, [values])
            self._of_folds[fold_key] = number
        return self._of_folds[fold_key]

    def _sum_of_recalls(self, wanted: Measurement, metric: RSum, way: str) -> float:
        """A sum of recalls, or a mean of them."""
        ways: tuple[str, ...] = WAYS
        if metric.summed is None:
            ways = (way,)
            divisor: float = len(RECALLS)
        elif wanted.summed in WAYS:
            ways = (wanted.summed,)
            divisor = max(1, metric.summed / len(WAYS))
        elif metric.summed == 1:
            divisor = SHARES.get(wanted.summed, 1)
        else:
            divisor = metric.summed
        recalls = []
        for direction, k in product(ways, RECALLS):
            recalls.append(self._known(wanted, Hit(k), direction))
        if wanted.sum_of_rounded:
            recalls = [round(recall, DECIMALS) for recall in recalls]
        return sum(recalls) / divisor


def _corrected(scores: Scores, wanted: Measurement) -> Scores:
    """The scores with hubs corrected by the queries that are ranked, if that is wanted."""
    if not wanted.rescored:
        return scores
    assert not isinstance(scores, PerDirection)
    form, value = CORRECTIONS[wanted.rescored]
    options: dict[str, Any] = {form.option: value}
    if form.option == "beta":
        options["bank"] = "test"
    return RESCORERS.build(form.rescorer, **options).rescore(scores, of_test(scores, _no_heads))


def _no_heads() -> NoReturn:
    raise InputError("scores alone have no vectors")


def _instead(wanted: Measurement, metric: Metric) -> Metric:
    """The metric that is measured in place of one with a cutoff."""
    if not wanted.instead or not metric.k:
        return metric
    return parse(f"{wanted.instead}@{wanted.at or metric.k}")


def _hit(wanted: Measurement, hit: Hit) -> Metric:
    """Recall at K as it is wanted."""
    assert hit.k is not None
    k = hit.k + wanted.cutoff
    if wanted.hits == "share":
        return Recall(k)
    return Hit(k)


@contextmanager
def _unless_as_given(wanted: Measurement) -> Iterator[None]:
    """Leave out a measurement whose numbers are too large for their type; scores as given are
    refused.
    """
    try:
        yield
    except InputError:
        if wanted.vectors == wanted.scores == "given":
            raise


def _scores(wanted: Measurement) -> tuple[object, ...]:
    return wanted.split, *wanted.of("vectors", "scores")


def _ranking(wanted: Measurement) -> tuple[object, ...]:
    return *wanted.of("vectors", "scores", "pool"), wanted.hits == "any"


def _any(
    scores: Scores, relevance: Relevance, needs_every: bool
) -> Iterator[tuple[tuple[str, str], Fold]]:
    """Rank one pool by the best right candidate, with ties broken by each rule; and all right ones
    where a metric asks for them.
    """
    ranks = rank(scores, relevance)
    every = None
    is_tied = bool(ranks.i2t.tied or ranks.t2i.tied)
    if needs_every:
        every = place(scores, relevance, "i2t"), place(scores, relevance, "t2i")
        is_tied = True  # others than the best may be
    # Without ties all rules give the same numbers, this one soonest.
    fold = Fold.of(ranks, "optimistic", every)
    for ties in get_args(Ties):
        if is_tied:
            fold = Fold.of(ranks, ties, every)
        yield ("any", ties), fold
    if isinstance(scores, Placing):
        return  # lists of the best lack what is tied with a right candidate but not listed
    for ties in ("first", "last"):
        if not is_tied:
            yield ("any", ties), fold
            continue
        ordered = by_position(scores, ranks, last_first=ties == "last")
        yield ("any", ties), Fold.of(ordered, "optimistic")


def _each(scores: Scores, relevance: Relevance) -> Iterator[tuple[tuple[str, str], Fold]]:
    """Rank one pool by all right captions of an image, each of which has one image."""
    owner = relevance.owner
    above = np.zeros(len(owner), np.int64)
    tied = np.zeros(len(owner), np.int64)
    caption_of_image = numbered(owner, relevance.shape[0])
    # Each caption alone, with those of all other images; no sorting.
    for nth in range(int(caption_of_image.max()) + 1):
        owner_of_nth = np.where(caption_of_image == nth, owner, -1)
        nth_ranks = rank(scores, owner_of_nth).i2t
        nth_captions = np.flatnonzero(owner_of_nth >= 0)
        of_image = np.searchsorted(nth_ranks.query, owner[nth_captions])
        above[nth_captions] = nth_ranks.greater[of_image]
        tied[nth_captions] = nth_ranks.equal[of_image] + 1
    pairs = relevance.i2t
    captions = Placements.of(pairs, above[pairs.candidate], tied[pairs.candidate], len(owner))
    ranks = rank(scores, relevance)
    best = ranks.t2i
    images = Placements.of(relevance.t2i, best.greater, best.equal + 1, relevance.shape[0])
    for ties in get_args(Ties):
        fold = Fold.of(ranks, ties, (captions, images))
        yield ("share", ties), fold
        yield ("pairs", ties), _pairs(fold, captions)


def _pairs(fold: Fold, captions: Placements) -> Fold:
    """Each caption with a copy of its image, which is right for it alone.

    An image's copies ask for one caption each, and are equally similar to each caption.
    """
    copies = int(captions.count[0])
    owner = captions.query[captions.owner]
    of_images = QueryRanks(owner, captions.above, captions.tied - 1, np.ones_like(captions.above))
    best = fold.t2i.best
    of_captions = QueryRanks(
        best.query,
        copies * best.greater,
        copies * best.equal + copies - 1,
        np.ones_like(best.greater),
    )
    return replace(fold, i2t=Ranked(of_images, owner), t2i=replace(fold.t2i, best=of_captions))


def _by_image(values: Floats, ranked: Ranked) -> Floats:
    """The mean of each image's queries."""
    queries_of_image = np.bincount(ranked.drawn_with)
    sum_of_image = np.bincount(ranked.drawn_with, values)
    means: Floats = sum_of_image[queries_of_image > 0] / queries_of_image[queries_of_image > 0]
    return means


def _median(ranks: Floats, which: str) -> float:
    if which == "floor":
        # VSE++ takes the median of ranks from 0, rounds it down and adds one.
        return float(np.floor(np.median(ranks - 1)) + 1)
    middle = len(ranks) // 2
    if which == "lower":
        middle = (len(ranks) - 1) // 2
    return float(np.sort(ranks)[middle])

"""The card of a result: one page on one system's numbers, to attach to a review or to keep beside
the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple, get_args

import numpy as np
from markupsafe import Markup

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import Metrics
from pipeline.foundation.evaluation.metrics.standard import measure
from pipeline.foundation.evaluation.retrieval import Direction
from pipeline.foundation.evaluation.retrieval.collection import Side
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.retrieval.similarity import of_direction, of_queries
from pipeline.foundation.evaluation.statistics.hubness import Hubness, hubness
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.files.left_out import by_reason
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.items import Items
from pipeline.judge.systems.scores.system import Part, System
from pipeline.judge.tables import evaluated, html
from pipeline.judge.tables.table import Cell, number
from pipeline.run.report import names
from pipeline.run.report.page import duplicates
from pipeline.run.report.page.render import known, policy

WORST = 10  # queries of a direction
SIDE = 160  # pixels of a photograph
EDGES = (1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
WIDTH = 150  # of the bar of all queries
# Direction -> the axes of the scores that have its queries and its candidates.
SIDES: dict[Direction, tuple[int, int]] = {"i2t": (0, 1), "t2i": (1, 0)}


@dataclass(frozen=True)
class Origin:
    """Where the numbers come from."""

    command: str  # As it was typed
    made_with: Mapping[str, str | int]  # The day, the versions and the machine
    files: Mapping[str, str]  # What was read -> its digest
    # What the data set's splits have in common, a line each; () where its photographs are not
    # known, None where nothing compares them.
    leaks: Sequence[str] | None = None


class Bar(NamedTuple):
    """The queries of some ranks."""

    ranks: str  # "1", "2–5"
    queries: int
    share: float  # in percent
    width: float  # of its drawing


class Candidate(NamedTuple):
    """One image or caption on the page."""

    title: str  # its file's name or its text, else its id
    file: GalleryFile | None  # the photograph, of an image whose file is known
    score: float | None = None  # its score for the query


class Query(NamedTuple):
    """One of the worst queries."""

    item: Candidate
    rank: float  # of its best right answer, from 1, the expectation over ties
    right: Candidate  # its best right answer
    first: Candidate  # the candidate with the highest score


class OfDirection(NamedTuple):
    """What the card says of one direction."""

    title: str
    cells: Sequence[Cell]  # three recalls, median and mean rank
    bars: Sequence[Bar]  # the distribution of ranks
    queries: int
    tied: int  # for how many queries a wrong candidate ties with the right one
    hubs: Hubness  # of its candidates
    worst: Sequence[Query]


class Equal(NamedTuple):
    """Candidates of one side with equal scores for every query, and vectors that nearly agree."""

    side: Side
    groups: Sequence[Sequence[Candidate]]  # with equal scores for every query, the largest first
    candidates: int  # how many are in groups
    near: int | None  # pairs of vectors with a cosine of 0.99 or more; None without vectors
    closest: Sequence[tuple[Candidate, Candidate, float]]  # of these, those that are not equal


def write(
    part: Part,
    metrics: Metrics,
    numbers: Mapping[str, Any],
    settings: Evaluate,
    items: Items,
    origin: Origin,
) -> str:
    """Make the card of a pool: HTML, one file that loads nothing. Text from data is escaped."""
    style = (files("pipeline.run.report.page") / "page.css").read_text(encoding="utf-8")
    card = _Card(part, metrics, items, settings)
    rsum = number(numbers["RSUM"], numbers["interval"]["RSUM"])
    best = measure(metrics.ranks, metrics.protocol, "optimistic")
    worst = measure(metrics.ranks, metrics.protocol, "pessimistic")
    directions = [card.direction(way, numbers) for way in get_args(Direction)]
    left_out = numbers.get("left_out") or {}
    name = part.system.name
    if part.system.made_from.dataset:
        name = names.title(part.system.made_from)
    return html.page(
        "run/report/page/card.html",
        known,
        style=Markup(style),
        policy=policy(style),
        name=name,
        numbers=numbers,
        rsum=rsum,
        origin=origin,
        of_ties=(number(worst.rsum), number(best.rsum)),
        directions=directions,
        equal=list(card.equal()),
        remarks=list(evaluated.remarks(numbers)),
        lacks=by_reason(left_out),
        alike=duplicates.ALIKE,
        thumbnail=lambda file: html.thumbnail(file.picture, SIDE),
    )


@dataclass(frozen=True)
class _Card:
    """The measurements for one card."""

    part: Part
    metrics: Metrics
    items: Items
    settings: Evaluate

    @property
    def pool(self) -> System:
        return self.part.system

    def direction(self, way: Direction, numbers: Mapping[str, Any]) -> OfDirection:
        folds = [getattr(fold, way) for fold in self.metrics.ranks]
        ranks = np.concatenate([fold.ranks(self.metrics.ties) for fold in folds])
        return OfDirection(
            evaluated.DIRECTIONS[way],
            evaluated.cells_of(numbers, way),
            list(_bars(ranks)),
            len(ranks),
            self.metrics.tied[way],
            hubness(self.pool.scores, way, self.settings),
            list(self._worst(way)),
        )

    def _worst(self, way: Direction) -> Iterator[Query]:
        """The queries with the highest ranks, by the fold that each is in."""
        relevance = as_relevance(self.pool.truth, self.pool.shape)
        queries: list[tuple[float, int, int]] = []
        for fold, ranks in enumerate(self.metrics.ranks):
            of_way = getattr(ranks, way)
            ranks_of_fold = of_way.ranks(self.metrics.ties).tolist()
            for rank, query in zip(ranks_of_fold, of_way.query.tolist(), strict=True):
                queries.append((-rank, fold, query))
        parts = self.part.rules.parts(relevance.owner, self.pool.shape[0])
        asking, answering = SIDES[way]
        for minus_rank, fold, query in sorted(queries)[:WORST]:
            rows = parts[fold]
            relevance_of_fold = relevance.select(*rows)
            matrix = of_direction(retrieval.select(self.pool.scores, *rows), way)
            scores = np.asarray(of_queries(matrix, way, slice(query, query + 1)))[0]
            positives = getattr(relevance_of_fold, way)
            right = positives.candidate[positives.start[query] : positives.start[query + 1]]
            highest = int(scores.argmax())
            positive = int(right[scores[right].argmax()])
            candidates = rows[answering]
            best_right = self._candidate(answering, candidates[positive], float(scores[positive]))
            ranked_first = self._candidate(answering, candidates[highest], float(scores[highest]))
            asked = self._candidate(asking, rows[asking][query])
            yield Query(asked, -minus_rank, best_right, ranked_first)

    def _candidate(self, side: int, row: int, score: float | None = None) -> Candidate:
        if side == 1:
            text = f"caption {self.pool.caption_ids[row]}"
            if self.items.captions:
                text = self.items.captions[row]
            return Candidate(text, None, score)
        if self.items.photographs:
            file = self.items.photographs[row]
            return Candidate(file.title, file, score)
        return Candidate(f"image {self.pool.image_ids[row]}", None, score)

    def equal(self) -> Iterator[Equal]:
        """What the candidates of each side have in common."""
        equal = duplicates.with_equal_scores(self.pool.scores)
        for place, (side, groups) in enumerate(equal.items()):
            shown = []
            for group in sorted(groups, key=len, reverse=True)[:WORST]:
                shown.append([self._candidate(place, row) for row in group])
            near = None
            closest: list[duplicates.Near] = []
            vectors = None
            if side == "image":
                vectors = self._vectors()
            if vectors is not None:
                near, closest = duplicates.nearly_equal(
                    np.asarray(vectors.images[:], np.float32), WORST
                )
            pairs = []
            for pair in closest:
                first = self._candidate(0, pair.first)
                second = self._candidate(0, pair.second)
                pairs.append((first, second, pair.cosine))
            yield Equal(side, shown, sum(map(len, groups)), near, pairs)

    def _vectors(self) -> retrieval.Embeddings | None:
        scores = self.pool.scores
        if isinstance(scores, retrieval.Embeddings):
            return scores
        if self.pool.record is not None and self.pool.has_vectors():
            return self.pool.embeddings()
        return None


def _bars(ranks: np.ndarray) -> Iterator[Bar]:
    """Count the queries between the edges of ranks, up to the highest."""
    edge_before = 0
    for edge in EDGES:
        first_rank = edge_before + 1
        ranks_of_bar = f"{first_rank:,}–{edge:,}"
        if edge == first_rank:
            ranks_of_bar = f"{first_rank:,}"
        yield _bar(ranks_of_bar, (ranks > edge_before) & (ranks <= edge))
        edge_before = edge
        if ranks.max(initial=1) <= edge:
            return
    yield _bar(f"above {edge_before:,}", ranks > edge_before)


def _bar(label: str, inside: np.ndarray) -> Bar:
    queries = int(inside.sum())
    width = round(WIDTH * queries / len(inside), 1)
    return Bar(label, queries, 100 * queries / len(inside), width)

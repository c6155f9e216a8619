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

from pipeline.evaluation import retrieval
from pipeline.evaluation.metrics import Metrics
from pipeline.evaluation.metrics.standard import measure
from pipeline.evaluation.retrieval import Direction
from pipeline.evaluation.retrieval.collection import Side
from pipeline.evaluation.retrieval.relevance import as_relevance
from pipeline.evaluation.retrieval.similarity import of_direction, of_queries
from pipeline.evaluation.statistics.hubness import Hubness, hubness
from pipeline.files.gallery_file import GalleryFile
from pipeline.files.left_out import by_reason
from pipeline.report import evaluated, html
from pipeline.report.page import duplicates
from pipeline.report.page.render import known, policy
from pipeline.report.table import Cell, number
from pipeline.settings import Evaluate
from pipeline.systems.scores.items import Items
from pipeline.systems.scores.system import Part, System

WORST = 10  # queries of a direction
SIDE = 160  # pixels of a photograph
EDGES = (1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
WIDTH = 150  # of the bar of all queries


@dataclass(frozen=True)
class Origin:
    """Where the numbers come from."""

    command: str  # As it was typed
    made_with: Mapping[str, str | int]  # The day, the versions and the machine
    files: Mapping[str, str]  # What was read -> its digest
    # What the data set's splits have in common, a line each; () where its photographs are not
    # known.
    leaks: Sequence[str] = ()


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
    tied: int  # how many queries share their score with a wrong candidate
    hubs: Hubness  # of its candidates
    worst: Sequence[Query]


class Equal(NamedTuple):
    """Candidates of one side that no query can tell apart, and vectors that nearly agree."""

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
    style = (files("pipeline.report.page") / "page.css").read_text(encoding="utf-8")
    card = _Card(part, metrics, items, settings)
    best, worst = (
        measure(metrics.ranks, metrics.protocol, ties).rsum
        for ties in ("optimistic", "pessimistic")
    )
    return html.page(
        "report/page/card.html",
        known,
        style=Markup(style),
        policy=policy(style),
        name=part.system.name,
        numbers=numbers,
        rsum=number(numbers["RSUM"], numbers["interval"]["RSUM"]),
        origin=origin,
        of_ties=(number(worst), number(best)),
        directions=[card.direction(way, numbers) for way in get_args(Direction)],
        equal=list(card.equal()),
        remarks=list(evaluated.remarks(numbers)),
        lacks=by_reason(numbers.get("left_out") or {}),
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
        ranks = np.concatenate(
            [getattr(fold, way).ranks(self.metrics.ties) for fold in self.metrics.ranks]
        )
        hubs = hubness(self.pool.scores, way, self.settings)
        return OfDirection(
            evaluated.DIRECTIONS[way],
            evaluated.cells_of(numbers, way),
            list(_bars(ranks)),
            len(ranks),
            self.metrics.tied[way],
            hubs,
            [*self._worst(way)],
        )

    def _worst(self, way: Direction) -> Iterator[Query]:
        """The queries with the highest ranks, by the fold that each is in."""
        relevance = as_relevance(self.pool.truth, self.pool.shape)
        every = [
            (rank, fold, query)
            for fold, ranks in enumerate(self.metrics.ranks)
            for rank, query in zip(
                getattr(ranks, way).ranks(self.metrics.ties).tolist(),
                getattr(ranks, way).query.tolist(),
                strict=True,
            )
        ]
        parts = self.part.rules.parts(relevance.owner, self.pool.shape[0])
        asking, answering = (0, 1) if way == "i2t" else (1, 0)
        for rank, fold, query in sorted(every, key=lambda each: (-each[0], *each[1:]))[:WORST]:
            rows = parts[fold]
            inside = relevance.select(*rows)
            matrix = of_direction(retrieval.select(self.pool.scores, *rows), way)
            scores = np.asarray(of_queries(matrix, way, slice(query, query + 1)))[0]
            positives = inside.i2t if way == "i2t" else inside.t2i
            right = positives.candidate[positives.start[query] : positives.start[query + 1]]
            first, best = int(scores.argmax()), int(right[scores[right].argmax()])
            yield Query(
                self._candidate(asking, rows[asking][query]),
                rank,
                self._candidate(answering, rows[answering][best], float(scores[best])),
                self._candidate(answering, rows[answering][first], float(scores[first])),
            )

    def _candidate(self, side: int, row: int, score: float | None = None) -> Candidate:
        if side == 0:
            file = self.items.photographs[row] if self.items.photographs else None
            return Candidate(
                file.title if file else f"image {self.pool.image_ids[row]}", file, score
            )
        text = (
            self.items.captions[row]
            if self.items.captions
            else f"caption {self.pool.caption_ids[row]}"
        )
        return Candidate(text, None, score)

    def equal(self) -> Iterator[Equal]:
        """What the candidates of each side have in common."""
        scores, vectors = self.pool.scores, None
        if isinstance(scores, retrieval.Embeddings):
            vectors = scores
        elif self.pool.record is not None and self.pool.has_vectors():
            vectors = self.pool.embeddings()
        for number_of_side, (side, groups) in enumerate(
            duplicates.with_equal_scores(scores).items()
        ):
            near, closest = None, list[duplicates.Near]()
            if vectors is not None and side == "image":
                near, closest = duplicates.nearly_equal(
                    np.asarray(vectors.images[:], np.float32), WORST
                )
            shown = sorted(groups, key=len, reverse=True)[:WORST]
            yield Equal(
                side,
                [[self._candidate(number_of_side, row) for row in group] for group in shown],
                sum(map(len, groups)),
                near,
                [
                    (self._candidate(0, pair.first), self._candidate(0, pair.second), pair.cosine)
                    for pair in closest
                ],
            )


def _bars(ranks: np.ndarray) -> Iterator[Bar]:
    """Count the queries between the edges of ranks, up to the highest."""
    counts, before = [], 0
    for edge in EDGES:
        counts.append(
            (
                f"{before + 1:,}" if edge == before + 1 else f"{before + 1:,}–{edge:,}",
                int(((ranks > before) & (ranks <= edge)).sum()),
            )
        )
        before = edge
        if ranks.max(initial=1) <= edge:
            break
    else:
        counts.append((f"above {before:,}", int((ranks > before).sum())))
    for label, count in counts:
        yield Bar(label, count, 100 * count / len(ranks), round(WIDTH * count / len(ranks), 1))

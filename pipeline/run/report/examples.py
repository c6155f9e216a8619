"""Single queries as examples: how they are chosen, what they retrieve, and what is relevant."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from pipeline.foundation.evaluation.retrieval import (
    Direction,
    Positives,
    QueryRanks,
    Relevance,
    Scores,
    rank,
    select,
)
from pipeline.foundation.evaluation.retrieval.similarity import of_direction
from pipeline.foundation.evaluation.retrieval.top import best_of_each, top
from pipeline.foundation.parts.errors import counted
from pipeline.judge.systems.scores.items import Items
from pipeline.judge.systems.scores.made import Member, Reranked
from pipeline.judge.systems.scores.system import System
from pipeline.run.report import names

WORDS: dict[Direction, dict[str, str]] = {
    "t2i": {
        "query": "caption",
        "first": "found the right image first",
        "missed": "did not find it among the first",
        "none missed": "every one found it among the first",
        "texts": "the captions",
    },
    "i2t": {
        "query": "image",
        "first": "found a right caption first",
        "missed": "found none among the first",
        "none missed": "every one found one among the first",
        "texts": "the images' file names",
    },
}


@dataclass(frozen=True)
class Gallery:
    """A scored system with the images and captions that it ranks."""

    pool: System  # Images, captions, scores, right answers and languages
    captions: Sequence[str] = field(repr=False)  # C texts
    # I file names; for a part of a file, the name and the part.
    files: Sequence[str] = field(repr=False)
    # From a row to the decoded image, or a strip of a clip's frames; raises ImageError if the file
    # cannot be read.
    open: Callable[[int], Image.Image] = field(repr=False)

    @classmethod
    def of(cls, pool: System, items: Items, images_folder: Path) -> Gallery:
        """Join a system with its items, whose photographs are in a folder."""
        assert items.captions is not None
        assert items.photographs is not None
        photographs = items.photographs
        photograph_names = []
        for file in photographs:
            file_name = file.path.relative_to(images_folder).as_posix()
            photograph_names.append(f"{file_name}, {file.part}" if file.part else file_name)
        return cls(pool, items.captions, photograph_names, lambda row: photographs[row].picture())

    @property
    def title(self) -> str:
        """Its name for readers, composed from its record; the system's own name if it has no such
        record.
        """
        if self.pool.made_from.dataset:
            return names.title(self.pool.made_from)
        return self.pool.name

    @property
    def retriever(self) -> str | None:
        """The system whose candidates it reranks."""
        made = self.pool.made_from
        if not isinstance(made, Reranked):
            return None
        return made.retriever

    @property
    def members(self) -> tuple[Member, ...]:
        """The heads behind it."""
        return tuple(self.pool.made_from.members)

    @cached_property
    def truth(self) -> Relevance:
        """The right answers."""
        if self.pool.relevance:
            return self.pool.relevance
        return Relevance.of_owner(self.pool.caption_image, self.pool.shape[0])

    def right(self, direction: Direction) -> Positives:
        """The right answers of all queries of a direction."""
        return self.truth.t2i if direction == "t2i" else self.truth.i2t

    def relevant(self, direction: Direction, query: int) -> np.ndarray:
        """The relevant candidates of a query: int64, rows of images (t2i) or columns of captions
        (i2t).
        """
        right = self.right(direction)
        return right.candidate[right.start[query] : right.start[query + 1]]


@dataclass(frozen=True)
class Example:
    """One query."""

    query: int  # a column (t2i) or a row (i2t) of the scores
    rank: float  # the rank of its best relevant candidate, from 1, the expectation over ties
    shown: tuple[int, ...]  # the candidates in the first places, best first
    best: int  # the best relevant candidate


def examples(
    gallery: Gallery, direction: Direction, each: int, shown: int
) -> tuple[list[Example], list[Example]]:
    """Choose queries that succeed and queries that fail, the first of either by `digest_order`:
    [first, missed].
    """
    scores = gallery.pool.scores
    ranks = rank(scores, gallery.truth)
    queries = ranks.t2i
    texts_of_queries = gallery.captions
    if direction == "i2t":
        queries = ranks.i2t
        texts_of_queries = gallery.files
    order = digest_order(texts_of_queries, queries.query)
    rank_of = expected_ranks(queries)
    right = gallery.right(direction)

    def shown_for(chosen: list[int]) -> list[Example]:
        candidates = top_candidates(scores, direction, np.array(chosen, np.int64), shown, right)
        shown_rows = zip(chosen, candidates.places.tolist(), candidates.best.tolist(), strict=True)
        return [Example(query, rank_of[query], tuple(row), best) for query, row, best in shown_rows]

    first = [query for query in order if rank_of[query] == 1]
    missed = [query for query in order if rank_of[query] > shown]
    return shown_for(first[:each]), shown_for(missed[:each])


def how_chosen(
    direction: Direction, successes: Sequence[Example], failures: Sequence[Example], shown: int
) -> str:
    """A sentence for a caption on how `examples` chose."""
    words = WORDS[direction]
    missed = f"{words['missed']} {shown}"
    queries = []
    if successes:
        count = counted(len(successes), words["query"])
        queries.append(f"the first {count} that {words['first']}")
    if failures:
        count = counted(len(failures), words["query"])
        queries.append(f"the first {count} that {missed}")
    if not successes:
        queries.append(f"no others, as none {words['first']}")
    if not failures:
        queries.append(f"no others, as {words['none missed']} {shown}")
    return (
        f"Not picked by hand: {' and '.join(queries)}; in the order of the SHA-256 digests of "
        f"{words['texts']}."
    )


def expected_ranks(queries: QueryRanks) -> dict[int, float]:
    """Query -> its rank, from 1, the exact expectation over ties."""
    return dict(zip(queries.query.tolist(), queries.ranks().tolist(), strict=True))


def digest_order(texts: Sequence[str], queries: np.ndarray) -> list[int]:
    """Order queries, int64 [Q] positions in `texts`, by their SHA-256 digests: an arbitrary, stable
    order.
    """

    def digest(query: int) -> tuple[bytes, int]:
        return hashlib.sha256(texts[query].encode()).digest(), query

    return sorted(queries.tolist(), key=digest)


class Top(NamedTuple):
    """The most similar candidates of queries, best first."""

    places: np.ndarray  # int64 [Q, count], rows of images (t2i) or columns of captions (i2t)
    similarity: np.ndarray  # float [Q, count]
    best: np.ndarray  # int64 [Q], the most similar relevant candidate
    relevant: np.ndarray  # float [Q], its similarity


def top_candidates(
    scores: Scores, direction: Direction, queries: np.ndarray, count: int, right: Positives
) -> Top:
    """The most similar candidates of queries, int64 [Q] columns (t2i) or rows (i2t) of scores; ties
    by position.
    """
    source = of_direction(scores, direction)
    is_of_captions = direction == "t2i"
    images, captions = source.shape
    if is_of_captions:
        candidates = np.arange(images)
        asked = select(source, candidates, queries)
    else:
        candidates = np.arange(captions)
        asked = select(source, queries, candidates)
    best_ranked = top(asked, direction, count)
    positives = right.restricted(queries, candidates, len(candidates))
    asking = queries[positives.query]
    if is_of_captions:
        similarity = source.pairs(positives.candidate, asking)
    else:
        similarity = source.pairs(asking, positives.candidate)
    similarity = similarity.astype(np.float64)
    best = best_of_each(positives.query, similarity, positives.candidate, 1)
    return Top(best_ranked.places, best_ranked.scores, positives.candidate[best], similarity[best])

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

from pipeline.evaluation.retrieval import (
    Direction,
    Positives,
    QueryRanks,
    Relevance,
    Scores,
    rank,
    select,
)
from pipeline.evaluation.retrieval.similarity import of_direction
from pipeline.evaluation.retrieval.top import best_of_each, top
from pipeline.parts.errors import counted
from pipeline.report import names
from pipeline.systems.scores.items import Items
from pipeline.systems.scores.made import Member
from pipeline.systems.scores.system import System

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
    files: Sequence[str] = field(
        repr=False
    )  # I file names; for a part of a file, the name and the part
    # From a row to the decoded image, or a strip of a clip's frames; raises ImageError if the file
    # cannot be read.
    open: Callable[[int], Image.Image] = field(repr=False)

    @classmethod
    def of(cls, pool: System, items: Items, images_folder: Path) -> Gallery:
        """Join a system with its items, whose photographs are in a folder."""
        assert items.captions is not None
        assert items.photographs is not None
        files = items.photographs
        return cls(
            pool,
            items.captions,
            [
                file.path.relative_to(images_folder).as_posix()
                + (f", {file.part}" if file.part else "")
                for file in files
            ],
            lambda row: files[row].picture(),
        )

    @property
    def title(self) -> str:
        """Its name for readers, composed from its record; the system's own name if it has no such
        record.
        """
        return names.title(self.pool.made_from) if self.pool.made_from.dataset else self.pool.name

    @property
    def retriever(self) -> str | None:
        """The system whose candidates it reranks."""
        reranked = self.pool.made_from.reranked
        return reranked.retriever if reranked else None

    @property
    def members(self) -> tuple[Member, ...]:
        """The heads behind it."""
        return tuple(self.pool.made_from.members)

    @cached_property
    def truth(self) -> Relevance:
        """The right answers."""
        return self.pool.relevance or Relevance.of_owner(
            self.pool.caption_image, self.pool.shape[0]
        )

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
    queries = ranks.t2i if direction == "t2i" else ranks.i2t
    order = digest_order(gallery.files if direction == "i2t" else gallery.captions, queries.query)
    of = expected_ranks(queries)

    def shown_for(chosen: list[int]) -> list[Example]:
        found = top_candidates(
            scores, direction, np.array(chosen, np.int64), shown, gallery.right(direction)
        )
        return [
            Example(query, of[query], tuple(row), best)
            for query, row, best in zip(
                chosen, found.places.tolist(), found.best.tolist(), strict=True
            )
        ]

    return (
        shown_for([query for query in order if of[query] == 1][:each]),
        shown_for([query for query in order if of[query] > shown][:each]),
    )


def how_chosen(
    direction: Direction, successes: Sequence[Example], failures: Sequence[Example], shown: int
) -> str:
    """A sentence for a caption on how `examples` chose."""
    w = WORDS[direction]
    queries = [
        f"the first {counted(len(chosen), w['query'])} that {how}"
        for chosen, how in ((successes, w["first"]), (failures, f"{w['missed']} {shown}"))
        if chosen
    ]
    if not successes:
        queries.append(f"no others, as none {w['first']}")
    if not failures:
        queries.append(f"no others, as {w['none missed']} {shown}")
    return f"Not picked by hand: {' and '.join(queries)}; in the order of the SHA-256 digests of {w['texts']}."


def expected_ranks(queries: QueryRanks) -> dict[int, float]:
    """Query -> its rank, from 1, the exact expectation over ties."""
    return dict(zip(queries.query.tolist(), queries.ranks().tolist(), strict=True))


def digest_order(texts: Sequence[str], queries: np.ndarray) -> list[int]:
    """Order queries, int64 [Q] positions in `texts`, by their SHA-256 digests: an arbitrary, stable
    order.
    """
    return sorted(
        queries.tolist(), key=lambda query: (hashlib.sha256(texts[query].encode()).digest(), query)
    )


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
    every = np.arange(source.shape[0 if direction == "t2i" else 1])
    found = top(
        select(source, *((every, queries) if direction == "t2i" else (queries, every))),
        direction,
        count,
    )
    positives = right.restricted(queries, every, len(every))
    pairs = queries[positives.query], positives.candidate
    similarity = source.pairs(*(pairs if direction == "i2t" else pairs[::-1])).astype(np.float64)
    best = best_of_each(positives.query, similarity, positives.candidate, 1)
    return Top(found.places, found.scores, positives.candidate[best], similarity[best])

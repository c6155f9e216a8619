"""Retrieve and rerank: each query's candidates ordered by a scorer of pairs, above all others in the retriever's order.

Source: Geigle et al., "Retrieve Fast, Rerank Smart", TACL 2022; combinations: its appendix A.2, equations 4 to 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval.blocks import Cells, Ids, Index, cut
from pipeline.evaluation.retrieval.similarity import (
    Direction,
    Directions,
    PerDirection,
    Similarity,
    WholeQueries,
    select,
)
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.combining import BLOCK_BYTES, PerQuery, of_direction
from pipeline.systems.fusion.folded import Folded

Floats = npt.NDArray[np.float64]

BYTES_A_CELL = 24
"""What one cell takes: the retriever's score, and its copies in float64 by query."""


def scorer_alone(retrieved: Floats, scored: Floats, weight: float) -> Floats:
    """Order by the scorer alone."""
    return scored


def add(retrieved: Floats, scored: Floats, weight: float) -> Floats:
    """Add both scores: ADD of equation 4."""
    return weight * retrieved + (1 - weight) * scored


def norm_add(retrieved: Floats, scored: Floats, weight: float) -> Floats:
    """Add both scores, each scaled among the query's candidates: NORM_ADD, equations 5 and 6, |min| as printed."""
    return add(_scaled(retrieved), _scaled(scored), weight)


def _scaled(scores: Floats) -> Floats:
    least, most = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
    spread = most - least
    return np.where(spread > 0, (scores - np.abs(least)) / np.where(spread > 0, spread, 1), 0.0)


COMBINATIONS: dict[str, Callable[[Floats, Floats, float], Floats]] = {
    "scorer": scorer_alone, "add": add, "norm_add": norm_add}
"""Name -> how a candidate's two scores become one."""


@dataclass(frozen=True)
class Combination:
    """How the retriever's and the scorer's scores of a query's candidates become one."""

    name: str = "scorer"  # a key of `COMBINATIONS`
    weight: float = 0.0  # λ, the retriever's share, 0 to 1; 0 for "scorer"

    def __post_init__(self) -> None:
        if self.name not in COMBINATIONS:
            raise InputError(f"unknown combination {self.name!r}: choose one of {', '.join(COMBINATIONS)}")
        if not 0 <= self.weight <= 1:
            raise InputError(f"expected a weight from 0 to 1, received {self.weight}")

    def of(self, retrieved: npt.NDArray[np.floating], scored: npt.NDArray[np.floating], are_logits: bool) -> Floats:
        """Combine the scores of queries' candidates."""
        there, here = retrieved.astype(np.float64), scored.astype(np.float64)
        if are_logits and self.name != "scorer":
            here = 0.5 * (1 + np.tanh(0.5 * here))  # the sigmoid, without overflow
        return COMBINATIONS[self.name](there, here, self.weight)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of the queries of one direction."""

    places: Ids  # int64 [Q, k], rows or columns of the pool; -1 for a query that the protocol leaves out
    worth: Floats  # float64 [Q, k], the combined scores; the larger, the better


class Reranked(Folded):
    """A retriever's scores, with each query's candidates above all others in the order of their worth.

    Attributes:
        shape: Images and captions.
    """

    def __init__(self, source: Similarity | PerDirection, candidates: Mapping[Direction, Candidates],
                 folds: tuple[Ids, Ids], name: str, chosen: tuple[Ids, Ids] | None = None,
                 languages: Sequence[Reranked] = ()) -> None:
        """Hold the source."""
        super().__init__(source, folds, name, chosen)
        self.candidates, self.languages = candidates, languages

    def select(self, images: Ids, captions: Ids) -> Reranked:
        """Restrict the pool. It must be one fold, see `direction`."""
        chosen = self.chosen[0][images], self.chosen[1][captions]
        inside = [each for each in self.languages if (each.folds[1][chosen[1]] >= 0).any()]
        own = inside[0] if len(inside) == 1 and len(self.languages) > 1 else self
        return Reranked(own.source, own.candidates, own.folds, own.name, chosen, own.languages)

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Order one direction's candidates anew."""
        self.require_one_fold()
        return self._reordered(name, block_bytes)

    def of_every_fold(self) -> Directions:
        """Order the candidates of all folds at once. What it says within a fold holds, between folds nothing does."""
        if self.languages:
            raise InputError("candidates were reranked within each language, which an ensemble cannot keep apart; "
                             "rerank the ensemble instead")
        if isinstance(self.source, PerQuery) and any(fold.max(initial=0) > 0 for fold in self.folds):
            raise InputError(f"candidates were reranked within the folds of {self.name}, by a retriever that is fused "
                             "query by query; fuse its members by mean, or rerank the ensemble instead")
        return Directions(self._reordered("i2t", BLOCK_BYTES), self._reordered("t2i", BLOCK_BYTES))

    def _reordered(self, name: Direction, block_bytes: int) -> _Reordered:
        by_image, mine = name == "i2t", self.candidates[name]
        asked, sought = self.chosen if by_image else self.chosen[::-1]
        asked = asked[asked < len(mine.places)]  # distractors ask nothing
        place = np.full(self.source.shape[1 if by_image else 0] + 1, -1, np.int64)  # the last entry is that of -1
        place[sought] = np.arange(len(sought))
        places = place[mine.places[asked]]
        left_out = self.folds[0 if by_image else 1][asked] < 0
        if (places[~left_out] < 0).any():
            raise self.of_another_pool()
        source = of_direction(select(self.source, *self.chosen), name, block_bytes)
        return _Reordered(source, places, _dense(mine.worth[asked]), by_image, block_bytes)


def _dense(worth: Floats) -> Ids:
    """Each row's values as places from 0 up, equal where the values are: int64 [Q, k]."""
    order = np.argsort(worth, axis=1, kind="stable")
    ascending = np.take_along_axis(worth, order, 1)
    steps = np.zeros(worth.shape, np.int64)
    np.cumsum(ascending[:, 1:] > ascending[:, :-1], axis=1, out=steps[:, 1:])
    found = np.empty_like(steps)
    np.put_along_axis(found, order, steps, 1)
    return found


class _Reordered(WholeQueries):
    """The scores [I, C] of one direction, block by block of whole queries."""

    equal = None

    def __init__(self, source: Similarity, places: Ids, worth: Ids, by_image: bool, block_bytes: int) -> None:
        self.source, self.places, self.worth, self.by_image, self.shape = source, places, worth, by_image, source.shape
        self.candidates = self.shape[1] if by_image else self.shape[0]
        self.queries_at_once = max(1, block_bytes // (BYTES_A_CELL * self.candidates))
        self.same: Ids | None = None
        if source.equal is not None:  # equal candidates outside take the first one's score, not one rounded otherwise
            first, label = np.unique(source.equal[1 if by_image else 0], return_index=True, return_inverse=True)[1:]
            self.same = first[label] if len(first) < len(label) else None

    def block(self, images: Index, captions: Index) -> Cells:
        return self._queries(images)[:, captions] if self.by_image else self._queries(captions).T[images]

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        queries, others = (images, captions) if self.by_image else (captions, images)
        found = np.empty(len(queries))
        asked, number = np.unique(queries, return_inverse=True)
        for start in range(0, len(asked), self.queries_at_once):
            here = np.flatnonzero((number >= start) & (number < start + self.queries_at_once))
            scores = self._queries(asked[start:start + self.queries_at_once])
            found[here] = scores[number[here] - start, others[here]]
        return found

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        queries = len(self.places)
        return cut(*(((queries, shape[1]), self.queries_at_once, shape[1]) if self.by_image else
                     ((shape[0], queries), shape[0], self.queries_at_once)))

    def _queries(self, which: Index) -> Floats:
        """All scores of some queries: float64 [queries, candidates]."""
        every = slice(0, self.candidates)
        block = self.source.block(which, every) if self.by_image else self.source.block(every, which).T
        scores = np.array(block, np.float64, order="C")
        if self.same is not None:
            scores = scores[:, self.same]
        above = scores.max(1, keepdims=True) + 1
        places = self.places[which]
        asking = len(places)  # of a slice that ends among distractors, which ask nothing, the first
        np.put_along_axis(scores[:asking], places, above[:asking] + self.worth[which], 1)
        return scores

"""Retrieve and rerank: each query's candidates ordered by a scorer of pairs, above all others in the retriever's order.

Source: Geigle et al., "Retrieve Fast, Rerank Smart", TACL 2022; combinations: its appendix A.2, equations 4 to 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval.blocks import Ids, Index
from pipeline.evaluation.retrieval.similarity import Direction, Directions, PerDirection, Similarity, select
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.combining import BLOCK_BYTES, PerQuery, QueryByQuery, of_direction

Floats = npt.NDArray[np.float64]


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


class Folded:
    """Scores that were made within folds of one protocol, and are ranked in no other pool.

    Reranked systems have such scores, and ensembles of these.
    """

    def __init__(self, source: Similarity | PerDirection, folds: tuple[Ids, Ids], name: str,
                 chosen: tuple[Ids, Ids] | None = None) -> None:
        """Hold the source."""
        self.source, self.folds, self.name = source, folds, name
        self.chosen = chosen or (np.arange(source.shape[0]), np.arange(source.shape[1]))
        self.shape = len(self.chosen[0]), len(self.chosen[1])

    def fold(self, image: int) -> tuple[Ids, Ids]:
        """Find the fold of an image, in which its and its captions' candidates were sought."""
        number = self.folds[0][self.chosen[0][image]]
        rows, columns = (np.flatnonzero(fold[chosen] == number)
                         for fold, chosen in zip(self.folds, self.chosen, strict=True))
        return rows, columns

    @property
    def is_whole(self) -> bool:
        """Whether candidates were sought in one pool of all images and captions."""
        return not any(fold.any() for fold in self.folds)

    def select(self, images: Ids, captions: Ids) -> Folded:
        """Restrict the pool. It must be one fold, see `direction`."""
        return Folded(self.source, self.folds, self.name, (self.chosen[0][images], self.chosen[1][captions]))

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Give the matrix of one direction."""
        self.require_one_fold()
        return of_direction(select(self.source, *self.chosen), name, block_bytes)

    def require_one_fold(self) -> None:
        """Check that the pool lies in one fold."""
        pools = [np.unique(fold[chosen]) for fold, chosen in zip(self.folds, self.chosen, strict=True)]
        if any(len(pool) != 1 for pool in pools) or pools[0][0] != pools[1][0] or pools[0][0] < 0:
            raise self.of_another_pool()

    def of_another_pool(self) -> InputError:
        """Compose the refusal of another pool."""
        return InputError(f"candidates were reranked by the protocol {self.name}, which is not the one asked for; "
                          f"measure by {self.name}, or rerank by the other protocol")


class Reranked(Folded):
    """A retriever's scores, with each query's candidates above all others in the order of their worth."""

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


class _Reordered(QueryByQuery):
    """The scores [I, C] of one direction, block by block of whole queries."""

    def __init__(self, source: Similarity, places: Ids, worth: Ids, by_image: bool, block_bytes: int) -> None:
        super().__init__(source.shape, by_image, block_bytes)
        self.source, self.places, self.worth, self.asking = source, places, worth, len(places)
        self.same: Ids | None = None
        if source.equal is not None:  # equal candidates outside take the first one's score, not one rounded otherwise
            first, label = np.unique(source.equal[1 if by_image else 0], return_index=True, return_inverse=True)[1:]
            self.same = first[label] if len(first) < len(label) else None

    def queries(self, which: Index) -> Floats:
        scores = np.array(self.of_source(self.source, which), np.float64, order="C")
        if self.same is not None:
            scores = scores[:, self.same]
        above = scores.max(1, keepdims=True) + 1
        places = self.places[which]
        asking = len(places)  # of a slice that ends among distractors, which ask nothing, the first
        np.put_along_axis(scores[:asking], places, above[:asking] + self.worth[which], 1)
        return scores

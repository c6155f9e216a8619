"""Reranked systems: each query's candidates on disk, with the retriever's and the scorer's scores,
and their order.

    NAME.zarr/
      record.json      with the facts `Made.reranked`
      image_ids/       [I] int64; caption_ids/, caption_image/ [C] int64, as in similarity stores
      i2t_candidates/  [I, k] int64, rows of captions, the retriever's best first; -1 for an image
                       that the protocol leaves out. With distractors, rows count from the pool's
                       own captions on
      i2t_retrieved/   [I, k] float64, the retriever's scores
      i2t_scores/      [I, k] float32, the scorer's
      t2i_candidates/, t2i_retrieved/, t2i_scores/   [C, k], the same for captions
      0_i2t_candidates/ …  with captions in several languages: the same arrays for each language in
                       alphabetical order, sought among its captions and the images that have one;
                       -1 for queries outside these

Each query's candidates are ordered by a scorer of pairs, above all others in the retriever's order,
which is read from its own store beside this one. Source: Geigle et al., "Retrieve Fast, Rerank
Smart", TACL 2022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import (
    PROTOCOLS,
    Direction,
    Protocol,
    Scores,
    Similarity,
    protocol,
    select,
)
from pipeline.foundation.evaluation.retrieval.blocks import Floats, Ids, Index, Singles
from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.evaluation.retrieval.similarity import (
    BLOCK_BYTES,
    Directions,
    first_equal,
    of_direction,
)
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.fusion.combining import PerQuery, QueryByQuery
from pipeline.judge.systems.scores import made
from pipeline.judge.systems.scores.layout import IDS, whole as whole_array

if TYPE_CHECKING:
    import zarr

# How a candidate's two scores become one, see `Combination`.
COMBINATIONS = ("scorer", "add", "norm_add")


@dataclass(frozen=True)
class Combination:
    """How the retriever's and the scorer's scores of a query's candidates become one (appendix A.2,
    equations 4 to 6).

    "scorer" takes its score alone. "add" adds both. "norm_add" adds both, each scaled among the
    query's candidates, with |min| as printed.
    """

    name: str = "scorer"  # how: one of `COMBINATIONS`
    weight: float = 0.0  # λ, the retriever's share, 0 to 1; 0 for "scorer"

    def __post_init__(self) -> None:
        if self.name not in COMBINATIONS:
            raise InputError(
                f"unknown combination {self.name!r}: choose one of {', '.join(COMBINATIONS)}"
            )
        if not 0 <= self.weight <= 1:
            raise InputError(f"expected a weight from 0 to 1, received {self.weight}")

    def of(self, retrieved: np.ndarray, scored: np.ndarray, are_logits: bool) -> Floats:
        """Combine the scores of queries' candidates."""
        first = retrieved.astype(np.float64)
        second = scored.astype(np.float64)
        if self.name == "scorer":
            return second
        if are_logits:
            second = 0.5 * (1 + np.tanh(0.5 * second))  # the sigmoid, without overflow
        if self.name == "norm_add":
            first = _scaled(first)
            second = _scaled(second)
        return self.weight * first + (1 - self.weight) * second


def _scaled(scores: Floats) -> Floats:
    least = scores.min(1, keepdims=True)
    spread = scores.max(1, keepdims=True) - least
    differs = spread > 0
    divisor = np.where(differs, spread, 1)
    return np.where(differs, (scores - np.abs(least)) / divisor, 0.0)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of the queries of one direction."""

    # int64 [Q, k], rows or columns of the pool; -1 for a query that the protocol leaves out
    places: Ids
    worth: Floats  # float64 [Q, k], the combined scores; the larger, the better


class Folded:
    """Scores that were computed within folds of one protocol, and can be ranked in these folds
    alone.

    Reranked systems have such scores, and so have ensembles of them.
    """

    def __init__(
        self,
        source: Scores,
        folds: tuple[Ids, Ids],
        name: str,
        chosen: tuple[Ids, Ids] | None = None,
    ) -> None:
        self.source = source
        self.folds = folds
        self.name = name
        if chosen is None:
            images, captions = source.shape
            chosen = np.arange(images), np.arange(captions)
        self.chosen: tuple[Ids, Ids] = chosen
        rows, columns = chosen
        self.shape = len(rows), len(columns)

    def fold(self, image: int) -> tuple[Ids, Ids]:
        """Find the fold of an image, in which its and its captions' candidates were sought."""
        of_images, of_captions = self._chosen_folds()
        number = of_images[image]
        images = np.flatnonzero(of_images == number)
        captions = np.flatnonzero(of_captions == number)
        return images, captions

    def _chosen_folds(self) -> tuple[Ids, Ids]:
        """The fold of each image and of each caption of the pool."""
        of_images, of_captions = self.folds
        images, captions = self.chosen
        return of_images[images], of_captions[captions]

    @property
    def is_whole(self) -> bool:
        """Whether candidates were sought in one pool of all images and captions."""
        return not any(fold.any() for fold in self.folds)

    def select(self, images: Ids, captions: Ids) -> Folded:
        """Restrict the pool. It must be one fold, see `direction`."""
        of_images, of_captions = self.chosen
        chosen = of_images[images], of_captions[captions]
        return Folded(self.source, self.folds, self.name, chosen)

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Give the matrix of one direction."""
        self.require_one_fold()
        return of_direction(select(self.source, *self.chosen), name, block_bytes)

    def require_one_fold(self) -> None:
        """Check that the pool is one fold."""
        of_images, of_captions = self._chosen_folds()
        images = np.unique(of_images)
        captions = np.unique(of_captions)
        is_one_fold = len(images) == 1 and np.array_equal(images, captions)
        if not is_one_fold or images[0] < 0:
            raise self.of_another_pool()

    def of_another_pool(self) -> InputError:
        """Make the error for a pool that is not one of the folds."""
        return InputError(
            f"candidates were reranked by the protocol {self.name}, not by the requested one; "
            f"measure by {self.name}, or rerank by the other protocol"
        )


class Reranked(Folded):
    """A retriever's scores, with each query's candidates above all others, ordered by their
    combined scores.
    """

    def __init__(
        self,
        source: Scores,
        candidates: Mapping[Direction, Candidates],
        folds: tuple[Ids, Ids],
        name: str,
        chosen: tuple[Ids, Ids] | None = None,
        languages: Sequence[Reranked] = (),
    ) -> None:
        super().__init__(source, folds, name, chosen)
        self.candidates = candidates
        self.languages = languages

    def select(self, images: Ids, captions: Ids) -> Reranked:
        """Restrict the pool. It must be one fold, see `direction`."""
        of_images, of_captions = self.chosen
        chosen = of_images[images], of_captions[captions]
        inside = []
        for language in self.languages:
            _, fold_of_caption = language.folds
            if (fold_of_caption[chosen[1]] >= 0).any():
                inside.append(language)
        part = self
        if len(inside) == 1 and len(self.languages) > 1:
            part = inside[0]
        return Reranked(part.source, part.candidates, part.folds, part.name, chosen, part.languages)

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Reorder one direction's candidates."""
        self.require_one_fold()
        return self._reordered(name, block_bytes)

    def of_every_fold(self) -> Directions:
        """Order the candidates of all folds at once. Only scores within one fold can be
        compared.
        """
        if self.languages:
            raise InputError(
                "candidates were reranked within each language, which an ensemble cannot keep apart; "
                "rerank the ensemble instead"
            )
        has_folds = any(fold.max(initial=0) > 0 for fold in self.folds)
        if has_folds and isinstance(self.source, PerQuery):
            raise InputError(
                f"candidates were reranked within the folds of {self.name}, by a retriever that is fused "
                "query by query; fuse its members by mean, or rerank the ensemble instead"
            )
        i2t = self._reordered("i2t", BLOCK_BYTES)
        t2i = self._reordered("t2i", BLOCK_BYTES)
        return Directions(i2t, t2i)

    def _reordered(self, name: Direction, block_bytes: int) -> _Reordered:
        candidates = self.candidates[name]
        by_image = name == "i2t"
        if by_image:
            asked, sought = self.chosen
            fold_of_query, _ = self.folds
            size = self.source.shape[1]
        else:
            sought, asked = self.chosen
            _, fold_of_query = self.folds
            size = self.source.shape[0]
        asked = asked[asked < len(candidates.places)]  # distractors are no queries
        place = np.full(size + 1, -1, np.int32)  # the last entry is that of -1
        place[sought] = np.arange(len(sought))
        placed = place[candidates.places[asked]]
        is_query = fold_of_query[asked] >= 0
        if (placed[is_query] < 0).any():
            raise self.of_another_pool()
        source = of_direction(select(self.source, *self.chosen), name, block_bytes)
        worth = _dense(candidates.worth[asked])
        return _Reordered(source, placed, worth, by_image, block_bytes)


def _dense(worth: Floats) -> np.ndarray:
    """Each row's values as ranks from 0 up, the smallest first; equal values have one rank: [Q,
    k].
    """
    order = np.argsort(worth, axis=1, kind="stable")
    ascending = np.take_along_axis(worth, order, 1)
    steps = np.zeros(worth.shape, np.int64)
    np.cumsum(ascending[:, 1:] > ascending[:, :-1], axis=1, out=steps[:, 1:])
    dense = np.empty_like(steps)
    np.put_along_axis(dense, order, steps, 1)
    return dense.astype(np.min_scalar_type(worth.shape[1]))


class _Reordered(QueryByQuery):
    """The scores [I, C] of one direction, block by block of whole queries."""

    def __init__(
        self, source: Similarity, places: Any, worth: Any, by_image: bool, block_bytes: int
    ) -> None:
        super().__init__(source.shape, by_image, block_bytes)
        self.source = source
        self.places = places
        self.worth = worth
        self.asking = len(places)
        # Equal candidates get the score of the first, since rounding may differ.
        self.same: Ids | None = None
        if source.equal is not None:
            images, captions = source.equal
            self.same = first_equal(captions if by_image else images)

    def queries(self, which: Index) -> Floats:
        scores = np.array(self.of_source(self.source, which), np.float64, order="C")
        if self.same is not None:
            scores = scores[:, self.same]
        above = scores.max(1, keepdims=True) + 1
        candidates = self.places[which]
        asking = len(candidates)  # fewer if the slice ends among distractors, which are no queries
        worth = above[:asking] + self.worth[which]
        np.put_along_axis(scores[:asking], candidates, worth, 1)
        return scores


@dataclass(frozen=True, eq=False)
class Scored:
    """The candidates of one direction with both scores."""

    # int64 [Q, k], rows or columns of the pool; -1 for a query that the protocol leaves out
    places: Ids
    retrieved: Floats  # float64 [Q, k], the retriever's scores
    scores: Singles  # float32 [Q, k], the scorer's


def of_language(number: int, direction: str) -> str:
    """Compose the name of the arrays of a language's candidates; the number -1 is for those of all
    captions.
    """
    return direction if number < 0 else f"{number}_{direction}"


def combination_of(record: made.Reranked) -> Combination:
    """Find how the two scores of a candidate become one."""
    return Combination(record.combine, record.weight)


def protocol_of(recorded: made.Folds) -> Protocol:
    """Find the protocol within whose folds candidates were sought."""
    if recorded.name in PROTOCOLS:
        return protocol(recorded.name)
    return Protocol(recorded.name, folds=recorded.folds)


def folds(rules: Protocol, owner: Ids, images: int) -> tuple[Ids, Ids]:
    """Number the folds of a protocol."""
    if rules.folds > 1 and (owner < 0).any():
        raise InputError(
            f"protocol {rules.name}: a caption that belongs to no image is a candidate in every fold, "
            "and reranked systems know one fold of each caption; rerank in one pool, by protocol all"
        )
    of_images = np.full(images, -1, np.int64)
    of_captions = np.full(len(owner), -1, np.int64)
    for number, (rows, columns) in enumerate(rules.parts(owner, images)):
        of_images[rows] = number
        of_captions[columns] = number
    return of_images, of_captions


def source(
    retriever: Scores, found: Mapping[str, Scored], owner: Ids, record: made.Reranked
) -> Reranked:
    """Order candidates by their combined scores."""
    rules = protocol_of(record.protocol)
    languages = []
    for number in range(len(found) // 2 - 1):
        candidates = _of_both_directions(found, number)
        of_language_folds = _folds_of(candidates, owner, rules)
        languages.append(_reordered(retriever, candidates, of_language_folds, record))
    candidates = _of_both_directions(found, -1)
    of_all = folds(rules, owner, retriever.shape[0])
    return _reordered(retriever, candidates, of_all, record, languages)


def _of_both_directions(found: Mapping[str, Scored], number: int) -> dict[Direction, Scored]:
    """The candidates of a language, or of all captions for the number -1."""
    return {
        "i2t": found[of_language(number, "i2t")],
        "t2i": found[of_language(number, "t2i")],
    }


def _folds_of(found: Mapping[Direction, Scored], owner: Ids, rules: Protocol) -> tuple[Ids, Ids]:
    """The fold of each image and caption of a language, by its candidates; -1 for those of other
    languages.
    """
    of_first_caption = found["i2t"].places[:, 0]
    of_first_image = found["t2i"].places[:, 0]
    images = np.flatnonzero(of_first_caption >= 0)
    captions = np.flatnonzero(of_first_image >= 0)
    of_images = np.full(len(of_first_caption), -1, np.int64)
    of_captions = np.full(len(owner), -1, np.int64)
    images_a_fold = max(1, len(images) // rules.folds)
    of_images[images] = np.arange(len(images)) // images_a_fold
    of_captions[captions] = of_owners(of_images, owner[captions])
    return of_images, of_captions


def _reordered(
    retriever: Scores,
    found: Mapping[Direction, Scored],
    in_folds: tuple[Ids, Ids],
    record: made.Reranked,
    languages: Sequence[Reranked] = (),
) -> Reranked:
    how = combination_of(record)
    rules = protocol_of(record.protocol)
    k = None if record.k == "all" else record.k
    # At weight 1 it is the retriever's own order, also if the k-th of its scores is tied.
    keeps_order = how.name != "scorer" and how.weight == 1
    candidates: dict[Direction, Candidates] = {}
    for name, scored in found.items():
        places = scored.places[:, :k]
        retrieved = scored.retrieved[:, :k]
        worth = how.of(retrieved, scored.scores[:, :k], record.logits)
        if keeps_order:
            places = places[:, :0]
            worth = worth[:, :0]
        candidates[name] = Candidates(places, worth)
    return Reranked(retriever, candidates, in_folds, rules.name, languages=languages)


def read(path: Path, group: zarr.Group, pool: tuple[int, int] | None = None) -> dict[str, Scored]:
    """Read the candidates of both directions."""
    images, captions = (group[name].shape[0] for name in IDS[:2])  # type: ignore[union-attr]
    pool_images, pool_captions = pool or (images, captions)
    by_direction: dict[str, Scored] = {}
    for name in _names(group):
        if name.endswith("i2t"):
            queries = images
            candidates = pool_captions
        else:
            queries = captions
            candidates = pool_images
        indices, retrieved, scores = (
            whole_array(path / f"{name}_{what}", group[f"{name}_{what}"])
            for what in ("candidates", "retrieved", "scores")
        )
        has_one_shape = indices.shape == retrieved.shape == scores.shape
        are_candidates = has_one_shape and _are_candidates(indices, queries, candidates)
        are_finite = np.isfinite(scores).all() and np.isfinite(retrieved).all()
        if not are_candidates or not are_finite:
            raise InputError(
                f"{path}: its candidates {name} do not fit its {images} images and {captions} captions; "
                "run `pipeline rerank` again"
            )
        by_direction[name] = Scored(
            indices, retrieved.astype(np.float64), scores.astype(np.float32)
        )
    return by_direction


def _are_candidates(indices: np.ndarray, queries: int, candidates: int) -> bool:
    """Whether each query has the rows of existing candidates, or -1 alone."""
    if indices.ndim != 2 or indices.dtype != np.int64:
        return False
    if len(indices) != queries:
        return False
    is_query = (indices >= 0).all(1)
    is_left_out = (indices == -1).all(1)
    if not (is_query | is_left_out).all():
        return False
    return bool(indices[is_query].max(initial=0) < candidates)


def _names(group: zarr.Group) -> list[str]:
    """The names under which a store keeps candidates: those of both directions, then those of each
    language.
    """
    names: list[str] = ["i2t", "t2i"]
    number = 0
    while f"{of_language(number, 'i2t')}_candidates" in group:
        names += [of_language(number, "i2t"), of_language(number, "t2i")]
        number += 1
    return names

"""Reranked systems on disk: each query's candidates, with the retriever's and the scorer's scores.

    NAME.zarr/
      zarr.json        attributes: made_from, with what is described at `made.RERANKED`; made_with
      image_ids/       [I] int64; caption_ids/, caption_image/ [C] int64, as in similarity stores
      i2t_candidates/  [I, k] int64, rows of captions, the retriever's best first; -1 for an image that the protocol
                       leaves out. With distractors, rows count from the pool's own captions on
      i2t_retrieved/   [I, k] float64, the retriever's scores
      i2t_scores/      [I, k] float32, the scorer's
      t2i_candidates/, t2i_retrieved/, t2i_scores/   [C, k], the same for captions
      0_i2t_candidates/ …   with captions in several languages: the same arrays for each language in alphabetical order,
                       sought among its captions and the images that have one; -1 for queries that it has not

The other candidates keep the retriever's order, which is read from its own store beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval import PROTOCOLS, Direction, Ids, PerDirection, Protocol, Similarity
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.reranked import Candidates, Combination, Reranked
from pipeline.systems.scores.layout import IDS

if TYPE_CHECKING:
    import zarr


@dataclass(frozen=True, eq=False)
class Scored:
    """The candidates of one direction with both scores."""

    places: Ids  # int64 [Q, k], rows or columns of the pool; -1 for a query that the protocol leaves out
    retrieved: npt.NDArray[np.float64]  # float64 [Q, k], the retriever's scores
    scores: npt.NDArray[np.float32]  # float32 [Q, k], the scorer's

    def first(self, k: int | Literal["all"]) -> Scored:
        """Keep the retriever's best k."""
        if k == "all":
            return self
        return Scored(self.places[:, :k], self.retrieved[:, :k], self.scores[:, :k])


def of_language(number: int, direction: str) -> str:
    """Compose the name under which a language's candidates are kept."""
    return f"{number}_{direction}"


def by_language(found: Mapping[str, Scored]) -> list[dict[Direction, Scored]]:
    """Take the candidates of each language."""
    return [{name: found[of_language(number, name)] for name in get_args(Direction)}
            for number in range(len(found) // 2 - 1)]


def combination_of(record: Mapping[str, Any]) -> Combination:
    """Find how the two scores of a candidate become one."""
    return Combination(str(record["combine"]), float(record["weight"]))


def protocol_of(record: Mapping[str, Any]) -> Protocol:
    """Find the protocol within whose folds candidates were sought."""
    said = record["protocol"]
    return PROTOCOLS.get(said["name"]) or Protocol(str(said["name"]), folds=int(said["folds"]))


def folds(rules: Protocol, owner: Ids, images: int) -> tuple[Ids, Ids]:
    """Number the folds of a protocol."""
    of_images, of_captions = np.full(images, -1, np.int64), np.full(len(owner), -1, np.int64)
    for number, (rows, columns) in enumerate(rules.parts(owner, images)):
        of_images[rows], of_captions[columns] = number, number
    return of_images, of_captions


def source(retriever: Similarity | PerDirection, found: Mapping[str, Scored], owner: Ids,
           record: Mapping[str, Any]) -> Reranked:
    """Order candidates by their combined scores."""
    rules = protocol_of(record)
    parts = [_reordered(retriever, each, _folds_of(each, owner, rules), record) for each in by_language(found)]
    own = {name: found[name] for name in get_args(Direction)}
    return _reordered(retriever, own, folds(rules, owner, retriever.shape[0]), record, parts)


def _folds_of(found: Mapping[Direction, Scored], owner: Ids, rules: Protocol) -> tuple[Ids, Ids]:
    """The fold of each image and caption of a language, by its candidates; -1 for those of others."""
    images, captions = (np.flatnonzero(found[name].places[:, 0] >= 0) for name in get_args(Direction))
    of_images, of_captions = np.full(len(found["i2t"].places), -1, np.int64), np.full(len(owner), -1, np.int64)
    of_images[images] = np.arange(len(images)) // max(1, len(images) // rules.folds)
    of_captions[captions] = of_images[owner[captions]]
    return of_images, of_captions


def _reordered(retriever: Similarity | PerDirection, found: Mapping[Direction, Scored], in_folds: tuple[Ids, Ids],
               record: Mapping[str, Any], languages: Sequence[Reranked] = ()) -> Reranked:
    how, rules = combination_of(record), protocol_of(record)
    counting = {name: each.first(record["k"]) for name, each in found.items()}
    worth = {name: Candidates(each.places, how.of(each.retrieved, each.scores, record["logits"]))
             for name, each in counting.items()}
    if how.name != "scorer" and how.weight == 1:  # the retriever's own order, also of equal scores where k ends
        worth = {name: Candidates(each.places[:, :0], each.worth[:, :0]) for name, each in worth.items()}
    return Reranked(retriever, worth, in_folds, rules.name, languages=languages)


def read(path: Path, group: zarr.Group, pool: tuple[int, int] | None = None) -> dict[str, Scored]:
    """Read the candidates of both directions."""
    own = [group[name].shape[0] for name in IDS[:2]]  # type: ignore[union-attr]
    whole = pool or (own[0], own[1])
    found: dict[str, Scored] = {}
    for name in _names(group):
        queries, candidates = (own[0], whole[1]) if name.endswith("i2t") else (own[1], whole[0])
        places, retrieved, scores = (np.asarray(group[f"{name}_{each}"][:])  # type: ignore[index]
                                     for each in ("candidates", "retrieved", "scores"))
        known = places[(places >= 0).all(1)] if places.ndim == 2 else places
        if not (places.shape == retrieved.shape == scores.shape and places.ndim == 2 and len(places) == queries
                and places.dtype == np.int64 and ((places >= 0).all(1) | (places == -1).all(1)).all()
                and known.max(initial=0) < candidates and np.isfinite(scores).all() and np.isfinite(retrieved).all()):
            raise InputError(f"{path}: its candidates {name} do not fit its {own[0]} images and {own[1]} captions; run "
                             "`pipeline rerank` again")
        found[name] = Scored(places, retrieved.astype(np.float64), scores.astype(np.float32))
    return found


def _names(group: zarr.Group) -> list[str]:
    """The names under which a store keeps candidates: those of both directions, then of each language's."""
    found: list[str] = list(get_args(Direction))
    while f"{of_language(len(found) // 2 - 1, found[0])}_candidates" in group:
        found += [of_language(len(found) // 2 - 1, name) for name in get_args(Direction)]
    return found


def arrays_of(found: Mapping[str, Scored]) -> dict[str, np.ndarray]:
    """Name the arrays in which a store keeps candidates."""
    return {f"{name}_{kind}": values for name, each in found.items()
            for kind, values in (("candidates", each.places), ("retrieved", each.retrieved), ("scores", each.scores))}

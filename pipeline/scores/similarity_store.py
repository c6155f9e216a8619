"""Similarities on disk: the matrix, the ids of its rows and columns, and what made them.

    NAME.zarr/
      zarr.json       attributes: made_with, the machine; made_from (see README, "From a number back to its features")
                      with digests of the arrays, see `contents.py`; and of an ensemble that is fused query by query its
                      fusion: method and weights
      similarity/     [I, C] float32, images x captions, in chunks of at most ROWS x COLUMNS
      similarity_1/ … [I, C] the further members of an ensemble that is fused query by query; a member with a matrix for
                      each direction has two, and `fusion` says how many each has
      image_ids/      [I] int64
      caption_ids/    [C] int64
      caption_image/  [C] int64, each caption's image as a row of the matrix
      image_embeddings/, caption_embeddings/   [I, d], [C, d] float32, unit vectors; of single heads alone

A reranked system has its candidates in the place of a matrix, see `reranked_store.py`.

A z-score or a rank depends on the candidates, which a protocol may divide into folds. Such an ensemble therefore keeps
its members' matrices, and fuses them when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pipeline.compute import machine
from pipeline.errors import InputError
from pipeline.files.atomic import creating
from pipeline.files.digest import digest
from pipeline.fusion import FUSIONS
from pipeline.fusion.combining import PerQuery
from pipeline.fusion.folded import Folded
from pipeline.retrieval import as_similarity
from pipeline.retrieval.blocks import TILE_WIDTH, Ids, cut
from pipeline.retrieval.directions import Directions
from pipeline.scores import contents, reranked_store
from pipeline.scores.embedding_store import EmbeddingStore, holds_no_scores
from pipeline.scores.ids import read as read_ids

if TYPE_CHECKING:
    import zarr

    from pipeline.retrieval import Embeddings, PerDirection, Protocol, Similarity
    from pipeline.scores.reranked_store import Scored

DIRECTIONS = "directions"
"""In place of a fusion: two matrices, of the scores by which images rank captions and captions rank images."""
# Images and captions in a chunk: 8 MB, read and counted at once, whatever the size of the pool.
ROWS, COLUMNS = 256, TILE_WIDTH

Progress: TypeAlias = Callable[[int], object]


def holds_scores(path: Path) -> bool:
    """Recognise a similarity store, which holds the ids of its images and captions."""
    return (path / "similarity").is_dir() or (path / "i2t_candidates").is_dir()


@dataclass(frozen=True)
class SimilarityStore:
    """A similarity store, open for reading; the ids are in memory.

    Attributes:
        path: The store.
        matrices: zarr arrays [I, C]: one, or one for each member of an ensemble that is fused query by query.
        image_ids: Int64 [I].
        caption_ids: Int64 [C].
        caption_image: Int64 [C], each caption's image as a row.
        made_from: What made them.
        fusion: The fusion of such an ensemble; None otherwise.
        weights: A weight for each member of such an ensemble.
        matrices_each: How many of the matrices each member has: 1, or 2 for one for each direction.
        retriever: The store of a reranked system's retriever, whose matrices these are; None otherwise.
        reranked: The candidates of a reranked system; {} otherwise, and with distractors.
    """

    path: Path
    matrices: tuple[zarr.Array, ...]
    image_ids: Ids
    caption_ids: Ids
    caption_image: Ids
    made_from: dict[str, Any]
    fusion: str | None = None
    weights: tuple[float, ...] = ()
    matrices_each: tuple[int, ...] = ()
    retriever: SimilarityStore | None = None
    reranked: Mapping[str, Scored] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> SimilarityStore:
        """Open a store."""
        import zarr

        try:
            group = zarr.open_group(path, mode="r", zarr_format=3)
            ids = read_ids(path, group)
            made_from: dict[str, Any] = dict(group.attrs["made_from"])  # type: ignore[arg-type]
            if reranked_store.KEY in made_from:
                return cls._reranked(path, group, ids, made_from)
            matrices = _matrices(group)
            fusion: dict[str, Any] = dict(group.attrs.get("fusion")  # type: ignore[arg-type]
                                          or {"method": None, "weights": []})
            method, weights = fusion["method"], tuple(fusion["weights"])
            each = tuple(fusion.get("matrices") or (1,) * len(weights))
        except (FileNotFoundError, KeyError, ValueError, TypeError):
            raise InputError(f"{path}: no similarity store there; make it with `pipeline score` or "
                             "`pipeline ensemble`") from None
        wrong = [each.shape for each in matrices if each.shape != (len(ids[0]), len(ids[1]))]
        if wrong or len(ids[2]) != len(ids[1]):
            raise InputError(f"{path}: a matrix of {(wrong or [matrices[0].shape])[0]} with {len(ids[0])} image and "
                             f"{len(ids[1])} caption ids; score again")
        if len(ids[2]) and not 0 <= ids[2].min() <= ids[2].max() < len(ids[0]):
            raise InputError(f"{path}: caption_image holds rows {ids[2].min()} to {ids[2].max()}, expected 0 to "
                             f"{len(ids[0]) - 1}; score again")
        if (method is None) != (len(matrices) == 1) or (
                method and (method not in {*FUSIONS, DIRECTIONS} or len(weights) != len(each)
                            or not set(each) <= {1, 2} or sum(each) != len(matrices))):
            raise InputError(f"{path}: {len(matrices)} matrices do not fit its fusion {method!r} with {len(weights)} "
                             "weights; make the ensemble again")
        return cls(path, matrices, ids[0], ids[1], ids[2], made_from, method, weights, each)

    @classmethod
    def _reranked(cls, path: Path, group: zarr.Group, ids: list[Ids], made_from: dict[str, Any]) -> SimilarityStore:
        """Open a reranked system with its retriever. Raises KeyError, and InputError as `open`."""
        record = made_from[reranked_store.KEY]
        name = record["retriever"]["system"]
        beside = path.parent / f"{name}.zarr"
        if not (beside / "similarity").is_dir():  # nor another reranked system
            raise InputError(f"{path}: its retriever {name} is gone; score it and run `pipeline rerank` again")
        retriever = cls.open(beside)
        theirs = retriever.image_ids, retriever.caption_ids, retriever.caption_image
        if retriever.seal != record["retriever"]["seal"] or not all(map(np.array_equal, ids, theirs)):
            raise InputError(f"{path}: was reranked from an older {name} than is scored now; run `pipeline rerank` "
                             "again")
        _ = reranked_store.combination_of(record), reranked_store.protocol_of(record), bool(record["logits"])
        found = {} if record["distractors"] else reranked_store.read(path, group)
        return cls(path, retriever.matrices, ids[0], ids[1], ids[2], made_from, retriever.fusion, retriever.weights,
                   retriever.matrices_each, retriever, found)

    @property
    def seal(self) -> str:
        """SHA-256 over `made_from`, which holds the arrays' digests. What is made from the store records it."""
        return digest(self.made_from)

    def check(self) -> SimilarityStore:
        """Compare scores and ids, not embeddings, with their recorded digests; it reads all of them once."""
        contents.require(self.path, self.made_from, ("image_embeddings", "caption_embeddings"))
        if self.retriever is not None:
            self.retriever.check()
        return self

    @property
    def similarity(self) -> zarr.Array:
        """The matrix [I, C]."""
        if self.retriever is not None:
            raise InputError(f"{self.path}: is reranked, and scores each query's candidates by themselves; use its "
                             f"retriever {self.retriever.path.stem}")
        if self.fusion is not None:
            what = "two matrices, one a direction" if self.fusion == DIRECTIONS else (
                f"an ensemble by {self.fusion} scores each query by itself and has no one matrix")
            raise InputError(f"{self.path}: {what}; use a head, or an ensemble by mean")
        return self.matrices[0]

    @property
    def protocol(self) -> Protocol | None:
        """The only protocol by which a reranked system, or an ensemble of some, can be measured; None for any."""
        record = self.made_from.get(reranked_store.KEY) or self.made_from
        return reranked_store.protocol_of(record) if "protocol" in record else None

    @property
    def scores(self) -> Similarity | PerDirection:
        """The scores with their fusion, as `retrieval.evaluate` takes them."""
        if self.retriever is not None:
            if not self.reranked:
                raise InputError(f"{self.path}: was reranked among distractors; name them with --distractors")
            return reranked_store.source(self.retriever.scores, self.reranked, self.caption_image,
                                         self.made_from[reranked_store.KEY])
        if self.fusion is None:
            return as_similarity(self.matrices[0])
        members = [as_similarity(matrix) for matrix in self.matrices]
        if self.fusion == DIRECTIONS:
            return Directions(*members)  # type: ignore[arg-type]
        stored = iter(members)
        sources = [next(stored) if count == 1 else Directions(next(stored), next(stored))  # type: ignore[arg-type]
                   for count in self.matrices_each]
        fused = FUSIONS[self.fusion](sources, list(self.weights))
        if self.protocol is None:
            return fused
        folds = reranked_store.folds(self.protocol, self.caption_image, len(self.image_ids))
        return Folded(fused, folds, self.protocol.name)

    def embeddings(self) -> Embeddings:
        """Map the unit vectors of images and captions."""
        return EmbeddingStore.open(self.path).embeddings()


def opened(path: Path) -> SimilarityStore | EmbeddingStore:
    """Open a store of either kind."""
    return EmbeddingStore.open(path) if holds_no_scores(path) else SimilarityStore.open(path)


def _array(group: zarr.Group, name: str) -> zarr.Array:
    import zarr

    array = group[name]
    if not isinstance(array, zarr.Array):
        raise KeyError(name)
    return array


def _matrices(group: zarr.Group) -> tuple[zarr.Array, ...]:
    found = [_array(group, "similarity")]
    for number in count(1):
        if f"similarity_{number}" not in group:
            return tuple(found)
        found.append(_array(group, f"similarity_{number}"))
    raise AssertionError


def parts(scores: Similarity | PerDirection, method: str = "mean") -> tuple[list[Similarity], dict[str, Any] | None]:
    """Divide scores into what a store holds."""
    if isinstance(scores, PerQuery):
        members = [_matrices_of(source) for source in scores.sources]
        each = [len(matrices) for matrices in members]
        said: dict[str, Any] = {"method": method, "weights": list(scores.weights)}
        said |= {"matrices": each} if max(each) > 1 else {}
        return [matrix for matrices in members for matrix in matrices], said
    matrices = _matrices_of(scores)
    return matrices, {"method": DIRECTIONS, "weights": [1.0, 1.0]} if len(matrices) > 1 else None


def _matrices_of(scores: Similarity | PerDirection) -> list[Similarity]:
    if isinstance(scores, Directions):
        return [scores.both["i2t"], scores.both["t2i"]]
    return [scores]  # type: ignore[list-item]


def save(path: Path, matrices: Sequence[Similarity], image_ids: Ids, caption_ids: Ids, caption_image: Ids,
         made_from: Mapping[str, Any], fusion: Mapping[str, Any] | None = None,
         progress: Progress = lambda rows: None, **embeddings: np.ndarray) -> None:
    """Write a store. It appears complete or not at all, and replaces an older one."""
    import zarr

    if path.exists() and not holds_scores(path):
        raise InputError(f"{path}: exists and is not a similarity store; move it, or write elsewhere")
    if (fusion is None) != (len(matrices) == 1):
        raise ValueError(f"{len(matrices)} matrices with fusion {fusion}")
    attributes = {"made_with": machine.record()} | ({"fusion": dict(fusion)} if fusion else {})
    with creating(path) as making:
        group = zarr.create_group(making, zarr_format=3, attributes=attributes)
        shape = (len(image_ids), len(caption_ids))
        for number, source in enumerate(matrices):
            if source.shape != shape:
                raise InputError(f"{path}: a matrix of {source.shape} for {shape[0]} image and {shape[1]} caption ids")
            _write(group, f"similarity_{number}" if number else "similarity", source,
                   lambda rows, before=number * shape[0]: progress(before + rows))  # type: ignore[misc]
        named = {"image_ids": image_ids, "caption_ids": caption_ids, "caption_image": caption_image, **embeddings}
        for name, values in named.items():
            array = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=values.shape,
                                       compressors=None, filters=None, config={"write_empty_chunks": True})
            array[:] = values
        group.attrs["made_from"] = {**made_from, contents.KEY: contents.of(making)}


def _write(group: zarr.Group, name: str, source: Similarity, progress: Progress) -> None:
    images, captions = source.shape
    chunks = (min(ROWS, images), min(COLUMNS, captions))
    # A chunk that is missing reads back as NaN, which is refused.
    matrix = group.create_array(name, shape=source.shape, dtype="float32", chunks=chunks, compressors=None,
                                filters=None, fill_value=float("nan"))
    for rows, columns in cut(source.shape, *chunks):
        matrix[rows, columns] = source.block(rows, columns)
        if columns.stop == captions:
            progress(rows.stop)

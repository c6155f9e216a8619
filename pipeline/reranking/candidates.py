"""The candidates that a retriever hands on: the best k of each query, sought within the folds of a protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.protocols import Protocol
from pipeline.retrieval.similarity import Direction, PerDirection, Similarity, select
from pipeline.retrieval.top import top
from pipeline.scores.reranked_store import Scored

SEED = 0
"""Of the order in which equally similar candidates are taken where k ends among them."""


@dataclass(frozen=True, eq=False)
class Searched:
    """The pool in which candidates are sought.

    Attributes:
        scores: The retriever's [I, C].
        image_ids: Int64 [I].
        caption_ids: Int64 [C].
        caption_image: Int64 [C], each caption's image as a row; -1 for distractors.
        datasets: The data sets of images and captions, the queries' first.
        image_dataset: Int64 [I], each image's place among `datasets`.
        caption_dataset: Int64 [C], each caption's.
        queries: How many images and captions are queries; they come first, distractors after them.
    """

    scores: Similarity | PerDirection
    image_ids: Ids
    caption_ids: Ids
    caption_image: Ids
    datasets: tuple[str, ...]
    image_dataset: Ids
    caption_dataset: Ids
    queries: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that some query wants, each once, those of an image together.

    Attributes:
        image: Int64 [P], rows of the pool.
        caption: Int64 [P], columns of the pool.
    """

    image: Ids
    caption: Ids

    def __len__(self) -> int:
        return len(self.image)


def sizes(pool: Searched, protocol: Protocol, k: int | Literal["all"]) -> dict[Direction, int]:
    """Count the candidates of a query.

    Args:
        pool: Where they are sought.
        protocol: Its folds.
        k: How many are wanted; "all" for the whole fold.

    Returns:
        Their number in each direction.

    Raises:
        InputError: If a fold has fewer than k candidates.
    """
    parts = protocol.parts(pool.caption_image, pool.scores.shape[0])
    found: dict[Direction, int] = {}
    for name, side, called in (("i2t", 1, "captions"), ("t2i", 0, "images")):
        size = min(len(part[side]) for part in parts)
        if k != "all" and k > size:
            raise InputError(f"k {k} is above the pool: a query of protocol {protocol.name} has {size} {called}; give "
                             "a smaller k, or all")
        found[name] = size if k == "all" else k  # type: ignore[index]
    return found


def find(pool: Searched, protocol: Protocol, k: int | Literal["all"], block_megabytes: float = 32,
         progress: Callable[[int], object] = lambda queries: None) -> dict[Direction, Scored]:
    """Find each query's best k candidates within its own fold.

    Equally similar candidates come in an order that is drawn once for each query, by the order of ids: it depends
    neither on rows and columns nor on the size of blocks.

    Args:
        pool: Where they are sought.
        protocol: Its folds.
        k: How many; "all" for the whole fold.
        block_megabytes: About the size of one block (10^6 bytes).
        progress: Called with the number of queries finished so far.

    Returns:
        The candidates of each direction, best first, their scores by the scorer still 0.

    Raises:
        InputError: If a fold has fewer than k candidates.
    """
    parts = protocol.parts(pool.caption_image, pool.scores.shape[0])
    found: dict[Direction, Scored] = {}
    done = 0
    for name, wanted in sizes(pool, protocol, k).items():
        queries = pool.queries[0 if name == "i2t" else 1]
        places = np.full((queries, wanted), -1, np.int64)
        retrieved = np.zeros((queries, wanted))
        for images, captions in parts:
            asked, best, scores = _of_fold(pool, name, _by_id(pool, images, captions), wanted, block_megabytes,
                                           lambda here, before=done: progress(before + here))  # type: ignore[misc]
            places[asked], retrieved[asked] = best, scores
            done += len(asked)
        found[name] = Scored(places, retrieved, np.zeros(places.shape, np.float32))
    return found


def _by_id(pool: Searched, images: Ids, captions: Ids) -> tuple[Ids, Ids]:
    """The rows and columns of a fold in the order of data sets and ids."""
    return (images[np.lexsort((pool.image_ids[images], pool.image_dataset[images]))],
            captions[np.lexsort((pool.caption_ids[captions], pool.caption_dataset[captions]))])


def _of_fold(pool: Searched, name: Direction, fold: tuple[Ids, Ids], k: int, block_megabytes: float,
             progress: Callable[[int], object]) -> tuple[Ids, Ids, np.ndarray]:
    """The queries of a fold with their candidates and these candidates' scores."""
    images, captions = fold
    if name == "i2t":
        images = images[images < pool.queries[0]]
    else:
        captions = captions[captions < pool.queries[1]]
    source = select(pool.scores, images, captions)
    if isinstance(source, PerDirection):
        source = source.direction(name, int(block_megabytes * 1e6))
    best = top(source, name, k, np.random.default_rng(SEED), block_megabytes, progress).places
    asking = np.repeat(np.arange(len(best)), k)
    rows, columns = (asking, best.reshape(-1)) if name == "i2t" else (best.reshape(-1), asking)
    scores = np.asarray(source.pairs(rows, columns), np.float64).reshape(best.shape)
    asked, sought = (images, captions) if name == "i2t" else (captions, images)
    return asked, sought[best], scores


def wanted(found: Mapping[Direction, Scored], captions: int) -> Pairs:
    """List the pairs that any query wants.

    Args:
        found: The candidates of each direction.
        captions: How many captions the pool has.

    Returns:
        Each pair once, sorted by image and caption.
    """
    keys = np.unique(np.concatenate([_keys(name, found[name].places, captions).reshape(-1) for name in found]))
    keys = keys[keys >= 0]
    return Pairs(keys // captions, keys % captions)


def with_scores(found: Mapping[Direction, Scored], pairs: Pairs, scores: np.ndarray, captions: int
                ) -> dict[Direction, Scored]:
    """Give each candidate the score of its pair.

    Args:
        found: The candidates of each direction.
        pairs: Of `wanted`.
        scores: Float32 [P], of these pairs.
        captions: How many captions the pool has.

    Returns:
        The candidates with their scores; 0 for queries that the protocol leaves out.
    """
    keys = pairs.image * captions + pairs.caption
    scored: dict[Direction, Scored] = {}
    for name, each in found.items():
        mine = _keys(name, each.places, captions)
        here = np.searchsorted(keys, np.maximum(mine, keys[0]))
        scored[name] = Scored(each.places, each.retrieved, np.where(mine < 0, np.float32(0), scores[here]))
    return scored


def _keys(name: Direction, places: Ids, captions: int) -> Ids:
    """A number for each pair, -1 for none: int64 [Q, k]."""
    query = np.arange(len(places))[:, None]
    keys = query * captions + places if name == "i2t" else places * captions + query
    return np.where(places < 0, -1, keys)

"""The candidates that are reranked: the retriever's best k of each query, within the folds of a
protocol.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, Ids, Protocol, select
from pipeline.foundation.evaluation.retrieval.similarity import of_direction
from pipeline.foundation.evaluation.retrieval.top import top, top_of_index
from pipeline.foundation.evaluation.retrieval.workers import Progress, after
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.reranked import Scored, of_language
from pipeline.judge.systems.scores.system import Part, System

# The seed of the order of equally similar candidates, which decides where the k-th is one of
# several.
SEED = 0


class Pairs(NamedTuple):
    """The pairs of any query with a candidate, each once, those of an image together."""

    image: Ids  # int64 [P], rows of the pool
    caption: Ids  # int64 [P], columns of the pool


def sizes(pool: System, protocol: Protocol, k: int | Literal["all"]) -> dict[str, int]:
    """Count the candidates of a query, for each direction and language. Raises InputError if k is
    above the pool.
    """
    widths = {}
    for number, part in enumerate(pool.parts(protocol), -1):
        folds = _folds(part)
        where = ""
        if part.language:
            where = f" in {part.language}"
        for name, side, called in (("i2t", 1, "captions"), ("t2i", 0, "images")):
            size = min(len(fold[side]) for fold in folds)
            if k != "all" and k > size:
                raise InputError(
                    f"k {k} is above the pool: a query of protocol {part.rules.name} has {size} {called}"
                    f"{where}; give a smaller k, or all"
                )
            if k != "all":
                size = k
            widths[of_language(number, name)] = size
    return widths


def _folds(part: Part) -> list[tuple[Ids, Ids]]:
    return part.rules.parts(part.system.caption_image, part.system.shape[0])


def find(
    pool: System,
    protocol: Protocol,
    k: int | Literal["all"],
    block_megabytes: float = 32,
    progress: Progress = lambda queries: None,
    index: str | None = None,
) -> dict[str, Scored]:
    """Find each query's best k candidates within its own fold.

    Equally similar candidates come in an order that is drawn once for each query, by the order of
    ids: it depends neither on rows and columns nor on the size of blocks. An index has its own
    order.
    """
    widths = sizes(pool, protocol, k)
    candidates = {}
    done = 0
    for number, part in enumerate(pool.parts(protocol), -1):
        for name, queries, rows, columns in (
            ("i2t", pool.queries[0], part.images, part.captions),
            ("t2i", pool.queries[1], part.captions, part.images),
        ):
            key = of_language(number, name)
            best_of_query = np.full((queries, widths[key]), -1, np.int64)
            retrieved = np.zeros(best_of_query.shape)
            for fold in _folds(part):
                asked, best, scores = _of_fold(
                    part.system,
                    name,  # type: ignore[arg-type]
                    fold,
                    widths[key],
                    block_megabytes,
                    after(progress, done),
                    index,
                )
                best_of_query[rows[asked]] = columns[best]
                retrieved[rows[asked]] = scores
                done += len(asked)
            not_scored = np.zeros(best_of_query.shape, np.float32)
            candidates[key] = Scored(best_of_query, retrieved, not_scored)
    return candidates


def _of_fold(
    pool: System,
    name: Direction,
    fold: tuple[Ids, Ids],
    k: int,
    block_megabytes: float,
    progress: Progress,
    index: str | None,
) -> tuple[Ids, Ids, np.ndarray]:
    """The queries of a fold with their candidates and these candidates' scores."""
    images = _by_ids(fold[0], *pool.items("image"))
    captions = _by_ids(fold[1], *pool.items("caption"))
    if name == "i2t":
        images = images[images < pool.queries[0]]
    else:
        captions = captions[captions < pool.queries[1]]
    block_bytes = int(block_megabytes * 1e6)
    source = of_direction(select(pool.scores, images, captions), name, block_bytes)
    if index:
        best = top_of_index(index, source, name, k)
    else:
        generator = np.random.default_rng(SEED)
        best = top(source, name, k, generator, block_megabytes, progress)
    if name == "i2t":
        return images, captions[best.places], best.scores
    return captions, images[best.places], best.scores


def _by_ids(rows: Ids, datasets: Ids, ids: Ids) -> Ids:
    """The rows in the order of data sets and ids."""
    order = np.lexsort((ids[rows], datasets[rows]))
    return rows[order]


def pairs_of(scored: Mapping[str, Scored], captions: int) -> Pairs:
    """List the pairs of all queries with their candidates."""
    of_directions = []
    for name, candidates in scored.items():
        keys = keys_of(name, candidates.places, captions)
        of_directions.append(keys.reshape(-1))
    keys = np.unique(np.concatenate(of_directions))
    keys = keys[keys >= 0]
    return Pairs(keys // captions, keys % captions)


def with_scores(
    candidates: Mapping[str, Scored], pairs: Pairs, scores: np.ndarray, captions: int
) -> dict[str, Scored]:
    """Give each candidate the score of its pair."""
    keys_of_pairs = pairs.image * captions + pairs.caption
    scored: dict[str, Scored] = {}
    for name, each in candidates.items():
        keys = keys_of(name, each.places, captions)
        places = np.searchsorted(keys_of_pairs, np.maximum(keys, keys_of_pairs[0]))
        of_candidates = np.where(keys < 0, np.float32(0), scores[places])
        scored[name] = Scored(each.places, each.retrieved, of_candidates)
    return scored


def keys_of(name: str, places: Ids, captions: int) -> Ids:
    """A number for each pair, -1 for none: int64 [Q, k]."""
    query = np.arange(len(places))[:, None]
    image = places
    caption = query
    if name.endswith("i2t"):
        image = query
        caption = places
    return np.where(places < 0, -1, image * captions + caption)

"""The candidates that a retriever hands on: the best k of each query, sought within the folds of a protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pipeline.evaluation.retrieval import Direction, Ids, PerDirection, Protocol, select
from pipeline.evaluation.retrieval.top import top
from pipeline.parts.errors import InputError
from pipeline.systems.scores.layout import Progress, after
from pipeline.systems.scores.reranked import Scored, of_language
from pipeline.systems.scores.system import System

SEED = 0
"""Of the order in which equally similar candidates are taken where k ends among them."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that some query wants, each once, those of an image together."""

    image: Ids  # int64 [P], rows of the pool
    caption: Ids  # int64 [P], columns of the pool

    def __len__(self) -> int:
        return len(self.image)


def sizes(pool: System, protocol: Protocol, k: int | Literal["all"]) -> dict[str, int]:
    """Count the candidates of a query."""
    found = _sizes(pool, protocol, k)
    for number, (name, (part, *_)) in enumerate(pool.by_language().items()):
        each = _sizes(part, protocol.of_language(name), k, f" in {name}")
        found |= {of_language(number, way): size for way, size in each.items()}
    return found


def _sizes(pool: System, protocol: Protocol, k: int | Literal["all"], where: str = "") -> dict[str, int]:
    parts = protocol.parts(pool.caption_image, pool.shape[0])
    found: dict[str, int] = {}
    for name, side, called in (("i2t", 1, "captions"), ("t2i", 0, "images")):
        size = min(len(part[side]) for part in parts)
        if k != "all" and k > size:
            raise InputError(f"k {k} is above the pool: a query of protocol {protocol.name} has {size} {called}"
                             f"{where}; give a smaller k, or all")
        found[name] = size if k == "all" else k
    return found


def find(pool: System, protocol: Protocol, k: int | Literal["all"], block_megabytes: float = 32,
         progress: Progress = lambda queries: None) -> dict[str, Scored]:
    """Find each query's best k candidates within its own fold.

    Equally similar candidates come in an order that is drawn once for each query, by the order of ids: it depends
    neither on rows and columns nor on the size of blocks.
    """
    found = _find(pool, protocol, k, block_megabytes, progress)
    done = sum(pool.queries)
    for number, (name, (part, images, captions)) in enumerate(pool.by_language().items()):
        own = _find(part, protocol.of_language(name), k, block_megabytes,
                    after(progress, done))
        done += sum(part.queries)
        for way, asked, sought in (("i2t", images, captions), ("t2i", captions, images)):
            found[of_language(number, way)] = _in_whole(own[way], asked, sought, len(found[way].places))
    return found


def _in_whole(found: Scored, asked: Ids, sought: Ids, queries: int) -> Scored:
    """A language's candidates as rows and columns of the whole pool; -1 for queries that it has not."""
    places = np.full((queries, found.places.shape[1]), -1, np.int64)
    retrieved = np.zeros(places.shape)
    places[asked] = np.where(found.places < 0, -1, sought[found.places])
    retrieved[asked] = found.retrieved
    return Scored(places, retrieved, np.zeros(places.shape, np.float32))


def _find(pool: System, protocol: Protocol, k: int | Literal["all"], block_megabytes: float,
          progress: Progress) -> dict[str, Scored]:
    parts = protocol.parts(pool.caption_image, pool.shape[0])
    found: dict[str, Scored] = {}
    done, widths = 0, _sizes(pool, protocol, k)
    for name in get_args(Direction):
        wanted = widths[name]
        queries = pool.queries[0 if name == "i2t" else 1]
        places = np.full((queries, wanted), -1, np.int64)
        retrieved = np.zeros((queries, wanted))
        for images, captions in parts:
            asked, best, scores = _of_fold(pool, name, _by_id(pool, images, captions), wanted, block_megabytes,
                                           after(progress, done))
            places[asked], retrieved[asked] = best, scores
            done += len(asked)
        found[name] = Scored(places, retrieved, np.zeros(places.shape, np.float32))
    return found


def _by_id(pool: System, images: Ids, captions: Ids) -> tuple[Ids, Ids]:
    """The rows and columns of a fold in the order of data sets and ids."""
    (image_dataset, image_ids), (caption_dataset, caption_ids) = pool.items("image"), pool.items("caption")
    return (images[np.lexsort((image_ids[images], image_dataset[images]))],
            captions[np.lexsort((caption_ids[captions], caption_dataset[captions]))])


def _of_fold(pool: System, name: Direction, fold: tuple[Ids, Ids], k: int, block_megabytes: float,
             progress: Progress) -> tuple[Ids, Ids, np.ndarray]:
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


def wanted(found: Mapping[str, Scored], captions: int) -> Pairs:
    """List the pairs that any query wants."""
    keys = np.unique(np.concatenate([_keys(name, found[name].places, captions).reshape(-1) for name in found]))
    keys = keys[keys >= 0]
    return Pairs(keys // captions, keys % captions)


def with_scores(found: Mapping[str, Scored], pairs: Pairs, scores: np.ndarray, captions: int
                ) -> dict[str, Scored]:
    """Give each candidate the score of its pair."""
    keys = pairs.image * captions + pairs.caption
    scored: dict[str, Scored] = {}
    for name, each in found.items():
        mine = _keys(name, each.places, captions)
        here = np.searchsorted(keys, np.maximum(mine, keys[0]))
        scored[name] = Scored(each.places, each.retrieved, np.where(mine < 0, np.float32(0), scores[here]))
    return scored


def _keys(name: str, places: Ids, captions: int) -> Ids:
    """A number for each pair, -1 for none: int64 [Q, k]."""
    query = np.arange(len(places))[:, None]
    keys = query * captions + places if name.endswith("i2t") else places * captions + query
    return np.where(places < 0, -1, keys)

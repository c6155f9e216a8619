"""Score pairs shard by shard, here or on workers. A shard that is done is kept when a run ends
early.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.foundation.compute import tasks
from pipeline.foundation.evaluation.retrieval import Ids, Singles
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems import reranking
from pipeline.judge.systems.reranking.base import PairScorer, PairSource, identity
from pipeline.judge.systems.reranking.candidates import Pairs
from pipeline.judge.systems.scores.system import System

# The most pairs of a shard.
SHARD = 8192


@dataclass(frozen=True, eq=False)
class Shard:
    """Some pairs, as a worker can score them."""

    kind: str  # a key of `SCORERS`
    name: str  # what the scorer is built from
    source: PairSource  # the images and captions that it pairs
    made_from: str  # digest of the scorer's `made_from`, which must still be the same
    rows: Ids  # int64 [P], their positions among all pairs
    image_ids: Ids  # int64 [P]
    caption_ids: Ids  # int64 [P]


_opened: dict[tuple[str, str, PairSource, str], PairScorer] = {}  # the last one, by what made it


def open_scorer(kind: str, name: str, source: PairSource) -> PairScorer:
    """Open a scorer as it is now."""
    scorer = reranking.build(kind, name, source)
    _opened.clear()
    _opened[kind, name, source, identity(scorer)] = scorer
    return scorer


def score(task: Shard, wanted: tasks.Wanted) -> dict[str, Singles]:
    """Score one shard."""
    key = task.kind, task.name, task.source, task.made_from
    scorer = _opened.get(key)
    if scorer is None:
        scorer = open_scorer(task.kind, task.name, task.source)
    if key not in _opened:
        raise InputError(f"{task.name}: is another scorer than when the run began; run again")

    def check(pairs: int) -> None:
        if not wanted():
            raise InputError("the run that wanted these pairs is over")

    scores = scorer.score(task.image_ids, task.caption_ids, check)
    if scores.shape != task.image_ids.shape or scores.dtype != np.float32:
        raise InputError(
            f"{task.name}: expected float32 {list(task.image_ids.shape)}, received {scores.dtype} "
            f"{list(scores.shape)}"
        )
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        pair = wrong[0]
        raise InputError(
            f"{task.name}: gives {scores[pair]} for image {task.image_ids[pair]} and caption "
            f"{task.caption_ids[pair]}"
        )
    return {"scores": scores}


def divide(
    pool: System, pairs: Pairs, scorers: Mapping[tuple[int, int], tuple[str, str, PairSource, str]]
) -> list[Shard]:
    """Divide pairs into shards; each has images of one data set and captions of one, and their
    scorer.
    """
    of_image, image, of_caption, caption = _items(pool, pairs)
    parts = []
    for rows in _cut(pairs.image, of_image * len(pool.datasets) + of_caption):
        first = rows[0]
        scorer = scorers[int(of_image[first]), int(of_caption[first])]
        parts.append(Shard(*scorer, rows, image[rows], caption[rows]))
    return parts


def digest_of(pool: System, pairs: Pairs) -> str:
    """Digest the pairs by their ids, so that rows and columns do not matter."""
    whole = hashlib.sha256("\n".join(pool.datasets).encode())
    for values in _items(pool, pairs):
        whole.update(np.ascontiguousarray(values, np.int64).tobytes())
    return whole.hexdigest()


def _items(pool: System, pairs: Pairs) -> list[Ids]:
    """The data set and the id of each pair's image, then those of its caption: int64 [P]."""
    of_images = [values[pairs.image] for values in pool.items("image")]
    of_captions = [values[pairs.caption] for values in pool.items("caption")]
    return of_images + of_captions


def _cut(image: Ids, owner: Ids) -> Iterator[Ids]:
    """Divide pairs into shards with one value of `owner` each, all pairs of an image in one shard
    if they fit.
    """
    for each in np.unique(owner).tolist():
        rows = np.flatnonzero(owner == each)
        begins = np.flatnonzero(np.diff(image[rows], prepend=-1))
        while len(rows):
            # A shard ends before the first image that does not fit; an image larger than a shard is
            # divided.
            fitting = begins[(begins > 0) & (begins <= SHARD)]
            end = min(len(rows), SHARD)
            if len(rows) > SHARD and len(fitting):
                end = int(fitting[-1])
            yield rows[:end]
            rows = rows[end:]
            begins = begins[begins >= end] - end

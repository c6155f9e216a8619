"""Score pairs shard by shard, here or on workers. A shard that is done is kept when a run ends early.

    NAME.zarr.scoring/
      asked.json     digest of what is scored: the pairs, and what made the retriever and the scorer
      00000000.npy   float32, the scores of a shard's pairs; the name is the number of its first pair
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.compute import products
from pipeline.compute.workers import Executor, Wanted
from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.files.atomic import replacing, write_text
from pipeline.files.digest import digest
from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError
from pipeline.systems import reranking
from pipeline.systems.reranking.base import PairScorer, PairSource, Scores
from pipeline.systems.reranking.candidates import Pairs
from pipeline.systems.scores.system import System

SHARD = 8192
"""Pairs of a shard, but for the last ones of an image."""


@dataclass(frozen=True, eq=False)
class PairTask:
    """A shard as a worker can score it."""

    kind: str  # a key of `SCORERS`
    name: str  # what the scorer is built from
    source: PairSource  # what it is opened for
    made_from: str  # digest of the scorer's `made_from`, which must still be the same
    image_ids: Ids  # int64 [P]
    caption_ids: Ids  # int64 [P]
    file: Path  # where the scores go


_opened: dict[tuple[str, str, PairSource, str], PairScorer] = {}  # the last one, by what made it


def open_scorer(kind: str, name: str, source: PairSource) -> PairScorer:
    """Open a scorer as it is now."""
    products.apply(source.products)  # type: ignore[arg-type]
    scorer = reranking.build(kind, name, source)
    _opened.clear()
    _opened[kind, name, source, digest(scorer.made_from)] = scorer
    return scorer


def score(task: PairTask, wanted: Wanted) -> int:
    """Score one shard and write its scores."""
    key = task.kind, task.name, task.source, task.made_from
    scorer = _opened.get(key) or open_scorer(*key[:3])
    if key not in _opened:
        raise InputError(f"{task.name}: is another scorer than when the run began; run again")

    def told(pairs: int) -> None:
        if not wanted():
            raise InputError("the run that wanted these pairs is over")

    found = scorer.score(task.image_ids, task.caption_ids, told)
    if found.shape != task.image_ids.shape or found.dtype != np.float32:
        raise InputError(f"{task.name}: expected float32 {list(task.image_ids.shape)}, received {found.dtype} "
                         f"{list(found.shape)}")
    if len(wrong := np.flatnonzero(~np.isfinite(found))):
        raise InputError(f"{task.name}: gives {found[wrong[0]]} for image {task.image_ids[wrong[0]]} and caption "
                         f"{task.caption_ids[wrong[0]]}")
    with replacing(task.file, durable=False) as partial, partial.open("wb") as file:
        np.save(file, found)
    return len(found)


def begin(folder: Path, request: Mapping[str, Any], anew: bool) -> None:
    """Make the folder of shards, or go on with one that was begun for the same request."""
    asked = folder / "asked.json"
    try:
        before = from_json(asked.read_text(encoding="utf-8"))["request"]
    except (OSError, ValueError, KeyError, TypeError):
        before = None
    if before == digest(dict(request)):
        return
    if any(folder.glob("*.npy")) and not anew:
        raise InputError(f"{folder}: holds pairs that were scored by another scorer, or for other candidates; go on "
                         "with those, give another --name, or discard them with --if-changed redo")
    shutil.rmtree(folder, ignore_errors=True)
    write_text(asked, json.dumps({"request": digest(dict(request))}))


def digest_of(pool: System, pairs: Pairs) -> str:
    """Digest which pairs are scored, whatever their rows and columns."""
    whole = hashlib.sha256("\n".join(pool.datasets).encode())
    for items, places in ((pool.items("image"), pairs.image), (pool.items("caption"), pairs.caption)):
        for values in items:
            whole.update(np.ascontiguousarray(values[places], np.int64).tobytes())
    return whole.hexdigest()


def remove(folder: Path) -> None:
    """Remove shards that are no longer needed."""
    shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, pool: System, pairs: Pairs, scorers: Mapping[tuple[int, int], tuple[str, str, PairSource, str]],
        executor: Executor, on_start: Callable[[int], object], on_pairs: Callable[[int], object]) -> Scores:
    """Score the pairs whose shards are missing, and read all."""
    shards = dict(_cut(pool, pairs))
    scores = np.full(len(pairs), np.nan, np.float32)
    missing = []
    for first, rows in shards.items():
        if (known := _read(_file(folder, first), len(rows))) is None:
            missing.append(first)
        else:
            scores[rows] = known
    on_start(sum(len(shards[first]) for first in missing))
    tasks = (_task(folder, first, shards[first], pool, pairs, scorers) for first in missing)
    with closing(executor.each(score, tasks, folder)) as done:
        for count in done:
            on_pairs(count)
    for first in missing:
        found = _read(_file(folder, first), len(shards[first]))
        if found is None:
            raise InputError(f"{_file(folder, first)}: was removed while pairs were scored; run again")
        scores[shards[first]] = found
    return scores


def _cut(pool: System, pairs: Pairs) -> Iterator[tuple[int, Ids]]:
    """The pairs of each shard, with the number of the first: of one data set each, whole images where that fits."""
    (of_image, _), (of_caption, _) = pool.items("image"), pool.items("caption")
    owner = of_image[pairs.image] * len(pool.datasets) + of_caption[pairs.caption]
    for each in np.unique(owner).tolist():
        rows = np.flatnonzero(owner == each)
        image = pairs.image[rows]
        begins = np.flatnonzero(np.diff(image, prepend=-1))
        while len(rows):
            end = len(rows) if len(rows) <= SHARD else _last_begin(begins, SHARD)
            yield int(rows[0]), rows[:end]
            rows, begins = rows[end:], begins[begins >= end] - end


def _last_begin(begins: Ids, at_most: int) -> int:
    """Where the last image begins that ends a shard; in the middle of an image that is larger than one."""
    fitting = begins[(begins > 0) & (begins <= at_most)]
    return int(fitting[-1]) if len(fitting) else at_most


def _task(folder: Path, first: int, rows: Ids, pool: System, pairs: Pairs,
          scorers: Mapping[tuple[int, int], tuple[str, str, PairSource, str]]) -> PairTask:
    (of_image, image), (of_caption, caption) = (
        [values[places[rows]] for values in items]
        for items, places in ((pool.items("image"), pairs.image), (pool.items("caption"), pairs.caption)))
    kind, name, source, made_from = scorers[int(of_image[0]), int(of_caption[0])]
    return PairTask(kind, name, source, made_from, image, caption, _file(folder, first).absolute())


def _file(folder: Path, first: int) -> Path:
    return folder / f"{first:08d}.npy"


def _read(file: Path, pairs: int) -> Scores | None:
    """The scores of a shard; None if it is missing or damaged."""
    try:
        with file.open("rb") as opened:
            found: Scores = np.lib.format.read_array(opened, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError):
        return None
    return found if found.shape == (pairs,) and found.dtype == np.float32 and np.isfinite(found).all() else None

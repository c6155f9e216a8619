"""How a process does tasks: while the network runs on one batch, the next are decoded and the last shard is written."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from pipeline import extractors
from pipeline.errors import InputError
from pipeline.extraction.job import Description, Engine, OnImages, Task
from pipeline.files import images
from pipeline.manifest.table import NO_FILE
from pipeline.store import Shard, ledger, write_shard

DECODERS = 2  # threads
AHEAD = 2  # batches decoded while the network runs on one

_loading = threading.Lock()
_loaded: list[tuple[Engine, extractors.Extractor]] = []  # the last one


def load(engine: Engine) -> extractors.Extractor:
    """The engine with its weights, loaded once a process."""
    with _loading:
        if not _loaded or _loaded[0][0] != engine:
            _loaded[:] = [(engine, extractors.build(engine.name, dict(engine.options), engine.runtime))]
        return _loaded[0][1]


def describe(engine: Engine) -> Description:
    """What the loaded engine says of itself."""
    extractor = load(engine)
    return Description(**{field.name: getattr(extractor, field.name) for field in fields(Description)})


def run(tasks: Iterable[Task], on_images: OnImages = lambda count: None,
        wanted: Callable[[], bool] = lambda: True) -> list[ledger.Entry]:
    """Extract shards and write each when it is whole.

    Args:
        tasks: the shards.
        on_images: told how many images are written.
        wanted: asked before each batch whether anybody still waits for the shards.

    Returns:
        The shards' ledger entries.

    Raises:
        InputError: for an image that cannot be decoded, unless such are skipped, for one that is missing or not the
            manifest's, and where the shards are no longer wanted.
    """
    entries: list[ledger.Entry] = []
    with ThreadPoolExecutor(DECODERS) as decoders, ThreadPoolExecutor(1) as writer:
        writing: Future[ledger.Entry] | None = None
        for shard in _shards(_while(wanted, _ahead(decoders, tasks))):
            if writing is not None:  # one shard at most waits to be written
                entries.append(_written(writing, on_images))
            writing = writer.submit(write_shard, *shard)
        if writing is not None:
            entries.append(_written(writing, on_images))
    return entries


def _written(writing: Future[ledger.Entry], on_images: OnImages) -> ledger.Entry:
    entry = writing.result()
    on_images(entry.images)
    return entry


Decoded = tuple[Any, tuple[int, int]] | str  # what the engine made of the image, and its size; or why there is nothing
Batch = tuple[Task, range, list["Future[Decoded]"]]


def _ahead(decoders: ThreadPoolExecutor, tasks: Iterable[Task]) -> Iterator[Batch]:
    """The tasks' batches with their images on the way, a few batches ahead."""
    def submitted() -> Iterator[Batch]:
        for task in tasks:
            for start in range(0, len(task.rows), task.batch_size):
                rows = task.rows[start:start + task.batch_size]
                yield task, rows, [decoders.submit(decode, *task.files[row - task.rows.start], task.engine)
                                   for row in rows]
    batches = submitted()
    waiting = deque(islice(batches, AHEAD))
    while waiting:
        waiting.extend(islice(batches, 1))
        yield waiting.popleft()


def _while(wanted: Callable[[], bool], batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        if not wanted():
            raise InputError("the run that wanted these images is over")
        yield batch


def _shards(batches: Iterable[Batch]) -> Iterator[tuple[Path, Any, Shard, str]]:
    """Run the network batch by batch; yields what `write_shard` takes."""
    shard = None
    for task, rows, futures in batches:
        if shard is None:
            shard = Shard.empty(task.layout, task.shard)
        _extract(task, shard, rows, [future.result() for future in futures])
        if rows.stop == task.rows.stop:
            for row, reason in shard.failed.items():
                _fail(task, shard, row, reason)
            yield task.store, task.layout, shard, task.made_from
            shard = None


def _extract(task: Task, shard: Shard, rows: range, decoded: list[Decoded]) -> None:
    extractor = load(task.engine)
    good = [(row, *image) for row, image in zip(rows, decoded, strict=True) if not isinstance(image, str)]
    for row, reason in zip(rows, decoded, strict=True):
        if isinstance(reason, str):
            _fail(task, shard, row, reason)
    if not good:
        return
    try:
        items = extractor.extract([prepared for _, prepared, _ in good], [size for _, _, size in good])
    except (torch.OutOfMemoryError, MemoryError):
        raise InputError(f"no memory for {len(good)} images at once on {task.engine.runtime.device}; give a smaller "
                         "--batch-size and run again to resume") from None
    for (row, _, size), item in zip(good, items, strict=True):
        shard.fill(row, item.features, size, item.extras, task.files[row - task.rows.start][1])


def _fail(task: Task, shard: Shard, row: int, reason: str) -> None:
    if task.on_error == "fail":
        raise InputError(f"{task.files[row - task.rows.start][0]}: {reason}; mend or remove the image, or let it be "
                         "left out with --on-error skip")
    shard.fail(row, reason)


def decode(path: Path, size: int, engine: Engine) -> Decoded:
    """An image as the engine takes it, with its width and height, or the reason why it cannot be.

    Raises InputError where the file is missing or has another size in bytes than the manifest says.
    """
    try:
        there = path.stat().st_size
    except OSError:
        raise InputError(f"{path}: no such image, though the manifest names it; give the folder with --images, or make "
                         "the manifest anew") from None
    if size == NO_FILE:
        raise InputError(f"{path}: the manifest was made without images; make it anew with them")
    if there != size:
        raise InputError(f"{path}: has {there} bytes, the manifest says {size}; make the manifest anew")
    try:
        image = images.decode(path)
        return load(engine).prepare(image), image.size
    except images.ImageError as error:
        return str(error)

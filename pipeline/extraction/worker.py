"""How a process does tasks: while the network runs on one batch, the next are decoded and the last shard is written."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from pipeline import extractors
from pipeline.errors import InputError
from pipeline.extraction.job import Description, Engine, OnImages, Task
from pipeline.extractors import Items
from pipeline.files import images
from pipeline.manifest.table import NO_FILE
from pipeline.store import Shard, ledger, write_shard

DECODERS = 2  # threads; where the CPU only decodes, one for each of its cores
LANES = 2  # of a GPU: while one batch is copied there or its features back, the other is computed
AHEAD = 2  # batches decoded beyond those that the network has

_loading = threading.Lock()
_loaded: list[tuple[Engine, extractors.Extractor]] = []  # the last one


def load(engine: Engine) -> extractors.Extractor:
    """The engine with its weights, loaded once a process."""
    with _loading:
        if not _loaded or engine not in (_loaded[0][0], _settled(*_loaded[0])):
            _loaded[:] = [(engine, extractors.build(engine.name, dict(engine.options), engine.runtime))]
        return _loaded[0][1]


def _settled(asked: Engine, extractor: extractors.Extractor) -> Engine:
    """What was asked for, with the backend that it got."""
    return replace(asked, runtime=replace(asked.runtime, backend=extractor.backend))


def describe(engine: Engine) -> Description:
    """What the loaded engine says of itself."""
    extractor = load(engine)
    return Description(**{field.name: getattr(extractor, field.name) for field in fields(Description)})


def run(tasks: Iterable[Task], on_images: OnImages = lambda count: None) -> list[ledger.Entry]:
    """Extract shards and write each when it is whole; on_images is told how many images are written.

    Raises InputError for an image that cannot be decoded, unless such are skipped, and for one that is missing or
    not the manifest's.
    """
    entries: list[ledger.Entry] = []
    with ThreadPoolExecutor(1) as writer, closing(_extracted(tasks)) as extracted:
        writing: Future[ledger.Entry] | None = None
        for shard in _shards(extracted):
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
Extracted = tuple[Items, tuple[int, int]] | str
Image = tuple[Task, int]  # its row


def _extracted(tasks: Iterable[Task]) -> Generator[tuple[Image, Extracted], None, None]:
    """The tasks' images in their order, with their features; a batch may hold images of two shards."""
    ordered = ((task, row) for task in tasks for row in task.rows)
    first = next(ordered, None)
    if first is None:
        return
    images, engine, size = chain([first], ordered), first[0].engine, first[0].batch_size
    on_cpu = torch.device(engine.runtime.device).type == "cpu"
    running: deque[tuple[list[Image], Future[list[Extracted]]]] = deque()
    with ThreadPoolExecutor(DECODERS if on_cpu else len(os.sched_getaffinity(0))) as decoders, \
            ThreadPoolExecutor(1 if on_cpu else LANES) as lanes:
        try:
            while batch := list(islice(images, size)):
                decoded = [decoders.submit(decode, *task.files[row - task.rows.start], engine) for task, row in batch]
                running.append((batch, lanes.submit(_features, engine, decoded)))
                if len(running) > AHEAD:
                    yield from _results(*running.popleft())
            while running:
                yield from _results(*running.popleft())
        finally:  # where a run ends early, what has not begun never does
            lanes.shutdown(wait=False, cancel_futures=True)
            decoders.shutdown(wait=False, cancel_futures=True)


def _results(batch: list[Image], features: Future[list[Extracted]]) -> Iterator[tuple[Image, Extracted]]:
    return zip(batch, features.result(), strict=True)


def _features(engine: Engine, decoding: list[Future[Decoded]]) -> list[Extracted]:
    """A batch's features, or the reason why an image has none; on a GPU, in a stream of this batch's own."""
    decoded = [future.result() for future in decoding]
    good = [image for image in decoded if not isinstance(image, str)]
    if not good:
        return [reason for reason in decoded if isinstance(reason, str)]
    device = torch.get_device_module(engine.runtime.device)
    try:
        with device.stream(device.Stream()):
            items = iter(load(engine).extract([prepared for prepared, _ in good], [size for _, size in good]))
    except (torch.OutOfMemoryError, MemoryError):
        raise InputError(f"no memory for {len(good)} images at once on {engine.runtime.device}; give a smaller "
                         "--batch-size and run again to resume") from None
    return [image if isinstance(image, str) else (next(items), image[1]) for image in decoded]


def _shards(images: Iterable[tuple[Image, Extracted]]) -> Iterator[tuple[Path, Any, Shard, str]]:
    """Gather each shard's images; yields what `write_shard` takes."""
    shard = None
    for (task, row), extracted in images:
        if shard is None:
            shard = Shard.empty(task.layout, task.shard)
        if isinstance(extracted, str):
            _fail(task, shard, row, extracted)
        else:
            items, size = extracted
            shard.fill(row, items.features, size, items.extras, task.files[row - task.rows.start][1])
        if row == task.rows[-1]:
            for failed, reason in shard.failed.items():
                _fail(task, shard, failed, reason)
            yield task.store, task.layout, shard, task.made_from
            shard = None


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

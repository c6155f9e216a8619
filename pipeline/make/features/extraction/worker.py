"""Run tasks in a process: while the network computes one batch, the next are decoded and the last
shard is written.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import torch

from pipeline.foundation import artefacts
from pipeline.foundation.compute import half
from pipeline.foundation.files import blake, containers, images, remote, unfetched, weights
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest.columns import NO_FILE
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.make.features import extractors
from pipeline.make.features.extraction.extraction_job import EngineDescription, EngineSpec, Task
from pipeline.make.features.extraction.request import feature_name
from pipeline.make.features.extractors import Items, base
from pipeline.make.features.store import Shard, ledger, write_shard

DECODERS = 2  # threads, beside those of a network on the CPU
WRITERS = 4  # threads at most, of a GPU's worker
# Batches on a GPU: while one is copied there, or its features back, the other is computed.
LANES = 2

_own_device: list[str] = []  # of this process, where several have a device each
_loading = threading.Lock()
# The last engine, and by which specs it was asked for.
_loaded: list[tuple[list[EngineSpec], extractors.Extractor]] = []


def take_device_of(devices: Sequence[str], number: int) -> None:
    """Let this process compute on one of several devices instead of the one that its tasks name."""
    _own_device[:] = [devices[number]]


def _here(engine: EngineSpec) -> EngineSpec:
    if not _own_device:
        return engine
    return replace(engine, runtime=replace(engine.runtime, device=_own_device[0]))


def load_engine(engine: EngineSpec) -> extractors.Extractor:
    """Load an engine with its weights, once in a process."""
    engine = _here(engine)
    with _loading:
        if not _loaded or engine not in _loaded[0][0]:
            engine.runtime.checked()
            half.refuse_slow(engine.runtime.precision, engine.runtime.device)
            extractor = extractors.build(engine.name, engine.options, engine.runtime)
            got = replace(engine, runtime=replace(engine.runtime, backend=extractor.backend))
            _loaded[:] = [([engine, got], extractor)]
        return _loaded[0][1]


def describe_engine(engine: EngineSpec) -> EngineDescription:
    """Load an engine and read its attributes."""
    extractor = load_engine(engine)
    # The version of another package's engine is what the engine says: its stores may be of an
    # earlier version.
    if extractors.ENGINES.is_built_in(engine.name):
        version = artefacts.version(f"extractors/{engine.name}")
    else:
        version = int(getattr(extractor, "version", 1))
    settings = weights.by_digest(extractor.settings)[0]
    named = feature_name(
        extractor.reported_as,
        settings.get("weights"),
        engine.runtime.precision,
        extractor.weights,
    )
    return EngineDescription(
        name=extractor.reported_as,
        reported_as=named,
        depends_on_id=extractor.depends_on_id,
        version=version,
        items=extractor.items,
        dimension=extractor.dimension,
        extras=extractor.extras,
        trained=extractor.trained,
        weights=extractor.weights,
        settings=settings,
        backend=extractor.backend,
    )


def run(
    tasks: Iterable[Task], wanted: Callable[[], bool] = lambda: True
) -> Generator[ledger.LedgerEntry, None, None]:
    """Extract shards and write each one when it is complete: their entries, in order."""
    waiting = (replace(task, engine=_here(task.engine)) for task in tasks)
    first = next(waiting, None)
    if first is None:
        return
    load_engine(first.engine)
    writing: deque[Future[ledger.LedgerEntry]] = deque()
    decoding, computing, count = _threads(first)
    batches = _extracted(first, chain([first], waiting), decoding, computing)
    with ThreadPoolExecutor(count) as writers, closing(batches):
        for shard in _shards(batches, wanted):
            if len(writing) == count:  # no more shards than that wait to be written
                yield writing.popleft().result()
            writing.append(writers.submit(_write, *shard))
        yield from map(Future.result, writing)


def run_one(task: Task, wanted: Callable[[], bool]) -> list[ledger.LedgerEntry]:
    """Extract one shard. It stops at the next batch when its result is no longer wanted."""
    return list(run([task], wanted))


def _write(task: Task, shard: Shard) -> ledger.LedgerEntry:
    return write_shard(task.store, task.layout, shard, task.made_from)


# The engine's input, the image's width and height, its file's checksum; or the reason why there is
# none.
Decoded = tuple[Any, tuple[int, int], str] | str
Extracted = tuple[Items, tuple[int, int], str] | str
Batch = tuple[Task, list[int], bool]  # its rows, and whether they are the last of the task


def _extracted(
    first: Task, tasks: Iterable[Task], decoding: int, computing: int
) -> Generator[tuple[Batch, list[Extracted]], None, None]:
    """The tasks' batches in their order, with their features."""
    # A batch ends with its shard: a network may round differently in another batch, and the bytes
    # of a shard must not depend on which shards were extracted before it.
    engine = first.engine
    at_most = first.threads.ahead + computing
    running: deque[tuple[Batch, Future[list[Extracted]]]] = deque()
    own_stream = partial(_own_stream, engine.runtime.device)
    with (
        ThreadPoolExecutor(decoding) as decoders,
        ThreadPoolExecutor(computing, initializer=own_stream) as lanes,
    ):
        try:
            for task, rows, is_last in _batches(tasks):
                sources = [task.sources[row - task.rows.start] for row in rows]
                decoding_of = [decoders.submit(decode, *source, engine) for source in sources]
                decoded = map(Future.result, decoding_of)
                features = lanes.submit(features_of, engine, decoded, task.layout.dtype)
                running.append(((task, rows, is_last), features))
                if len(running) >= at_most:
                    batch, features = running.popleft()
                    yield batch, features.result()
            for batch, features in running:
                yield batch, features.result()
        finally:  # if a run ends early, work that has not begun is dropped
            lanes.shutdown(wait=False, cancel_futures=True)
            decoders.shutdown(wait=False, cancel_futures=True)


def _batches(tasks: Iterable[Task]) -> Iterator[Batch]:
    """The tasks' rows to extract; an empty batch for a task whose rows are all copied."""
    for task in tasks:
        rows = task.extracted
        for start in range(0, max(len(rows), 1), task.batch_size):
            stop = start + task.batch_size
            yield task, rows[start:stop], stop >= len(rows)


def _threads(task: Task) -> tuple[int, int, int]:
    """How many threads decode images, have a batch on the device, and write shards."""
    asked = task.threads
    if task.engine.runtime.on_cpu:
        return asked.decoders or DECODERS, 1, asked.writers or 1
    # With a GPU, torch's threads, a worker's share of the cores, are idle.
    cores = torch.get_num_threads()
    decoders = max(DECODERS, cores)
    writers = max(1, min(WRITERS, cores // 4))
    return asked.decoders or decoders, LANES, asked.writers or writers


def threads_of(task: Task) -> tuple[int, int]:
    """How many threads of this machine decode images, and how many the network has: 0 with a device
    of its own.
    """
    decoders, _, _ = _threads(task)
    if task.engine.runtime.on_cpu:
        return decoders, torch.get_num_threads()
    return decoders, 0


def _own_stream(device: str) -> None:
    """On a GPU, let this thread's copies and kernels run beside those of the others."""
    if torch.device(device).type != "cpu":
        gpu = torch.get_device_module(device)
        gpu.synchronize(device)  # the weights are there
        gpu.set_stream(gpu.Stream(device))


def features_of(engine: EngineSpec, batch: Iterable[Decoded], dtype: str) -> list[Extracted]:
    """Compute a batch's features, or the reason why an image has none."""
    decoded = list(batch)
    good = [image for image in decoded if not isinstance(image, str)]
    if not good:
        return [reason for reason in decoded if isinstance(reason, str)]
    prepared = [pixels for pixels, _, _ in good]
    sizes = [size for _, size, _ in good]
    too_many = (
        f"no memory for {counted(len(good), 'image')} at once on {engine.runtime.device}; give a "
        "smaller --batch-size and run again to resume"
    )
    with refusing((torch.OutOfMemoryError, MemoryError), too_many):
        computed = load_engine(engine).extract(prepared, sizes)
        items = iter(base.bring(computed, dtype))
    extracted: list[Extracted] = []
    for image in decoded:
        if isinstance(image, str):
            extracted.append(image)
        else:
            _, size, checksum = image
            extracted.append((next(items), size, checksum))
    return extracted


def _shards(
    batches: Iterable[tuple[Batch, list[Extracted]]], wanted: Callable[[], bool]
) -> Iterator[tuple[Task, Shard]]:
    """Gather each shard's images, as long as they are wanted."""
    shard = None
    for (task, rows, is_last), batch in batches:
        if not wanted():
            raise InputError("the run that wanted these images is over")
        if shard is None:
            shard = Shard.empty(task.layout, task.shard)
            if task.copied_from is not None and task.rows_there is not None:
                shard.take(task.copied_from, task.rows_there)
        for row, extracted in zip(rows, batch, strict=True):
            source, size_in_bytes = task.sources[row - task.rows.start]
            if isinstance(extracted, str):
                shard.fail(row, extracted)
            else:
                items, size, checksum = extracted
                shard.fill(row, items.features, size, items.extras, size_in_bytes, checksum)
            if row in shard.failed and task.on_error == "fail":
                raise InputError(
                    f"{_named(source)}: {shard.failed[row]}; repair or remove it, or skip it with "
                    "--on-error skip"
                )
        if is_last:
            yield task, shard
            shard = None


def _named(source: GalleryFile | str) -> str:
    if isinstance(source, str):
        return f"caption {source[:60]!a}"
    return f"{source.path}, {source.part}" if source.part else str(source.path)


def decode(source: GalleryFile | str, size: int, engine: EngineSpec) -> Decoded:
    """Preprocess a caption, photograph or clip: the input, width, height and checksum; or why it
    cannot be decoded.
    """
    if isinstance(source, GalleryFile):
        return _decode_file(source, size, engine)
    try:
        return load_engine(engine).prepare(source), (0, 0), blake.of_bytes(source.encode())
    except images.ImageError as error:
        return str(error)


def _decode_file(file: GalleryFile, size: int, engine: EngineSpec) -> Decoded:
    path = file.path
    content = b""
    try:
        if file.kind == "image":
            content = file.content()
        length = len(content) or path.stat().st_size
    except OSError as error:
        return _why_unread(file, error)
    if size == NO_FILE:
        raise InputError(f"{path}: the manifest was made without images; make it again with them")
    if length != size:
        stand_in = unfetched.pointer(content)
        if stand_in:
            return f"is {stand_in}"
        raise InputError(
            f"{path}: has {length} bytes, the manifest says {size}; make the manifest again"
        )
    extractor = load_engine(engine)
    try:
        if file.kind == "video":
            most = getattr(extractor, "frames", None)  # of a clip
            if most is None:
                raise InputError(
                    f"the engine {engine.name} reads photographs, and the manifest holds clips; extract "
                    "the feature frame"
                )
            frames = file.frames(int(most))
            prepared = extractor.prepare_frames(frames)  # type: ignore[attr-defined]
            return prepared, frames[0].size, blake.of_item(file)
        image = images.decode(path, content)
        return extractor.prepare(image), image.size, blake.of_bytes(content)
    except images.ImageError as error:
        return str(error)


def _why_unread(file: GalleryFile, error: OSError) -> str:
    """Why a file cannot be read; InputError if the whole folder is not there."""
    path = file.path
    folder = path.parent
    if not (folder.is_dir() or remote.address(path) or containers.inside(path)):
        raise InputError(
            f"{folder}: no such folder, though the manifest names {file.kind}s there; give the "
            f"folder of {file.kind}s with --images"
        ) from None
    stand_in = unfetched.stand_in(path)
    if stand_in:
        return f"is {stand_in}"
    return f"cannot be read, though the manifest names it ({error.strerror or error})"

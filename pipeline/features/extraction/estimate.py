"""Estimate an extraction: images, bytes and time, from the store as it is and a short probe."""

import time
from dataclasses import dataclass, replace

import numpy as np

from pipeline.compute.tasks import Executor, InProcess
from pipeline.features.extraction import worker
from pipeline.features.extraction.extraction_job import EngineDescription, ExtractionJob, Task
from pipeline.features.extraction.needs import free_bytes
from pipeline.features.extractors import base
from pipeline.features.store import Plan, StoreLayout, plan

PROBE = 24  # images, after a first batch that warms up


@dataclass(frozen=True)
class Estimate:
    """What an extraction would take."""

    engine: EngineDescription  # the engine's description
    total: int  # images of the manifest
    images: int  # images still to extract
    shards: int  # shards still to extract
    size: int  # bytes that these take without compression
    free: int  # free bytes where the store goes
    probed: int  # images that were timed
    seconds: float | None  # seconds that one worker needs; None if no probed image could be decoded
    changed: str  # how an existing store differs, "" if it does not


def estimate(job: ExtractionJob, executor: Executor | None = None) -> Estimate:
    """Estimate an extraction. Nothing is written.

    Args:
        job: What is extracted.
        executor: Where the probe runs; by default in this process.

    Returns:
        The estimate.

    Raises:
        InputError: As an extraction raises it at its start.
    """
    executor = executor or InProcess()
    job, engine = job.with_backend(executor.call(worker.describe_engine, job.engine))
    todo = plan(job.store, job.wanted(engine))
    if todo.changed and job.if_changed == "refuse":
        todo = replace(todo, pending=[])
    layout, count = todo.layout, todo.images
    probed, seconds = executor.call(probe, _sample(job, todo)) if todo.pending else (0, None)
    return Estimate(engine, len(job.manifest.images), count, len(todo.pending), count * bytes_of_image(layout),
                    free_bytes(job.store), probed, None if seconds is None else seconds * count, todo.changed)


def bytes_of_image(layout: StoreLayout) -> int:
    """Compute the size of an image in a store: its part of every array, and its entries in the shards' indices."""
    parts = sum(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
                for shape, dtype in layout.arrays().values())
    return parts + 16 * (1 + len(layout.extras))


def _sample(job: ExtractionJob, todo: Plan) -> Task:
    """A task that is never written: a first batch and PROBE images, evenly from the shards that are to be done."""
    rows = np.concatenate([todo.layout.places(shard) for shard in todo.pending])
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), job.batch_size + PROBE)).astype(int)]
    images = todo.images_of_rows(job.manifest.images["image_id"].to_numpy())[chosen]
    return Task(job.store, "", todo.layout, 0, range(len(chosen)), job.files(images), job.engine, job.batch_size,
                "skip")


def probe(task: Task) -> tuple[int, float | None]:
    """Decode and extract a task's images.

    It gives how many images were timed, and seconds an image; None if none could be decoded.
    """
    extractor = worker.load_engine(task.engine)
    warm, timed, seconds = False, 0, 0.0
    for start in range(0, len(task.files), task.batch_size):
        begin = time.perf_counter()
        batch = task.files[start:start + task.batch_size]
        decoded = [worker.decode(file, size, task.engine) for file, size in batch]
        good = [image for image in decoded if not isinstance(image, str)]
        if good:
            computed = extractor.extract([prepared for prepared, _, _ in good], [size for _, size, _ in good])
            base.bring(computed, task.layout.dtype)
        if warm or len(task.files) <= task.batch_size:
            timed, seconds = timed + len(batch), seconds + time.perf_counter() - begin
        warm = warm or bool(good)
    return timed, seconds / timed if timed and warm else None

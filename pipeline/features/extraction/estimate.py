"""Estimate an extraction: images, bytes and time, from the store as it is and a short probe."""

import time
from dataclasses import dataclass, replace

import numpy as np

from pipeline.compute.tasks import Executor, InProcess
from pipeline.features.extraction import worker
from pipeline.features.extraction.extraction_job import EngineDescription, ExtractionJob, Task
from pipeline.features.extraction.needs import free_bytes
from pipeline.features.store import Plan, plan

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
    # An image's part of every array, and its entries in the shards' indices.
    size = 16 * (1 + len(layout.extras)) + sum(
        int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize for shape, dtype in layout.arrays().values())
    return Estimate(engine, len(job.manifest.images), count, len(todo.pending), count * size,
                    free_bytes(job.store), probed, None if seconds is None else seconds * count, todo.changed)


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
    worker.load_engine(task.engine)
    warm, timed, seconds = False, 0, 0.0
    for start in range(0, len(task.files), task.batch_size):
        begin = time.perf_counter()
        decoded = [worker.decode(*file, task.engine) for file in task.files[start:start + task.batch_size]]
        found = worker.features_of(task.engine, decoded, task.layout.dtype)
        if warm or len(task.files) <= task.batch_size:
            timed, seconds = timed + len(found), seconds + time.perf_counter() - begin
        warm = warm or not all(isinstance(each, str) for each in found)
    return timed, seconds / timed if timed and warm else None

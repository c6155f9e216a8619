"""Estimate an extraction: images, bytes and time, from the store as it is and a short probe."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.errors import InputError
from pipeline.extraction import worker
from pipeline.extraction.extract import Executor, InProcess
from pipeline.extraction.extraction_job import EngineDescription, ExtractionJob, Task
from pipeline.store import StoreLayout, survey

PROBE = 24  # images, after a first batch that warms up


@dataclass(frozen=True)
class Estimate:
    """What an extraction would take.

    Attributes:
        engine: The engine's description.
        total: Images of the manifest.
        images: Images still to extract.
        shards: Shards still to extract.
        size: Bytes that these take without compression.
        free: Free bytes where the store goes.
        probed: Images that were timed.
        seconds: Seconds that one worker needs; None if no probed image could be decoded.
        changed: How an existing store differs, "" if it does not.
    """

    engine: EngineDescription
    total: int
    images: int
    shards: int
    size: int
    free: int
    probed: int
    seconds: float | None
    changed: str


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
    layout, images = job.layout(engine), job.manifest.images
    changed, pending = survey(job.store, layout, job.fingerprint(engine), images["bytes"].to_numpy(), job.retry_failed)
    if changed and job.if_changed == "redo":
        pending = pending or list(range(layout.shards))
    count = sum(len(layout.rows(shard)) for shard in pending)
    probed, seconds = executor.call(probe, _sample(job, layout, pending)) if pending else (0, None)
    return Estimate(engine, layout.images, count, len(pending), count * bytes_of_image(layout), _free(job.store),
                    probed, None if seconds is None else seconds * count, changed)


def bytes_of_image(layout: StoreLayout) -> int:
    """Compute the size of an image in a store: its part of every array, and its entries in the shards' indices.

    Args:
        layout: The store's layout.

    Returns:
        Bytes, without compression.
    """
    parts = sum(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
                for shape, dtype in layout.arrays().values())
    return parts + 16 * (1 + len(layout.extras))


def _sample(job: ExtractionJob, layout: StoreLayout, pending: list[int]) -> Task:
    """A task that is never written: a first batch and PROBE images, evenly from the shards that are to be done."""
    rows = np.concatenate([np.asarray(layout.rows(shard)) for shard in pending])
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), job.batch_size + PROBE)).astype(int)]
    images, folder = job.manifest.images, job.images_folder.absolute()
    files = [(folder / images["file"][row], int(images["bytes"][row])) for row in chosen]
    return Task(job.store, "", layout, 0, files, job.engine, job.batch_size, "skip")


def probe(task: Task) -> tuple[int, float | None]:
    """Decode and extract a task's images.

    Args:
        task: A task that is not written.

    Returns:
        How many images were timed, and seconds an image; None if none could be decoded.
    """
    extractor = worker.load_engine(task.engine)
    warm, timed, seconds = False, 0, 0.0
    for start in range(0, len(task.files), task.batch_size):
        begin = time.perf_counter()
        batch = task.files[start:start + task.batch_size]
        decoded = [worker.decode(path, size, task.engine) for path, size in batch]
        good = [image for image in decoded if not isinstance(image, str)]
        if good:
            extractor.extract([prepared for prepared, _, _ in good], [size for _, size, _ in good])
        if warm or len(task.files) <= task.batch_size:
            timed, seconds = timed + len(batch), seconds + time.perf_counter() - begin
        warm = warm or bool(good)
    return timed, seconds / timed if timed and warm else None


def _free(store: Path) -> int:
    folder = store.absolute()
    while not folder.exists():
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None

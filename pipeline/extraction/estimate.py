"""What an extraction would take: images, bytes and time, from the store as it is and a short probe."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.errors import InputError
from pipeline.extraction import worker
from pipeline.extraction.extract import Here, Place
from pipeline.extraction.job import Description, Job, Task
from pipeline.store import Layout, survey

PROBE = 24  # images, after a first batch that warms up


@dataclass(frozen=True)
class Estimate:
    """images, shards: still to extract. items: the most an image has. size: bytes that they take without compression.
    free: bytes where the store goes. seconds: by one worker, from `probed` images; None where none could be decoded.
    changed: how a store that is in the way differs, "" where none does.
    """

    engine: Description
    total: int
    images: int
    shards: int
    size: int
    free: int
    probed: int
    seconds: float | None
    changed: str


def estimate(job: Job, place: Place | None = None) -> Estimate:
    """Look and probe; nothing is written. Raises InputError as an extraction would at its start."""
    place = place or Here()
    job, engine = job.settled(place.call(worker.describe, job.engine))
    layout, images = job.layout(engine), job.manifest.images
    changed, pending = survey(job.store, layout, job.fingerprint(engine), images["bytes"].to_numpy(), job.retry_failed)
    if changed and job.if_changed == "redo":
        pending = pending or list(range(layout.shards))
    count = sum(len(layout.rows(shard)) for shard in pending)
    probed, seconds = place.call(probe, _sample(job, layout, pending)) if pending else (0, None)
    return Estimate(engine, layout.images, count, len(pending), count * bytes_of_image(layout), _free(job.store),
                    probed, None if seconds is None else seconds * count, changed)


def bytes_of_image(layout: Layout) -> int:
    """What an image takes in a store: its part of every array, and its entry in the indices of the shards."""
    parts = sum(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
                for shape, dtype in layout.arrays().values())
    return parts + 16 * (1 + len(layout.extras))


def _sample(job: Job, layout: Layout, pending: list[int]) -> Task:
    """A task that is never written: a first batch and PROBE images, evenly from the shards that are to be done."""
    rows = np.concatenate([np.asarray(layout.rows(shard)) for shard in pending])
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), job.batch_size + PROBE)).astype(int)]
    images, folder = job.manifest.images, job.images_folder.absolute()
    files = [(folder / images["file"][row], int(images["bytes"][row])) for row in chosen]
    return Task(job.store, "", layout, 0, files, job.engine, job.batch_size, "skip")


def probe(task: Task) -> tuple[int, float | None]:
    """Decode and extract a task's images: how many were timed, and seconds an image (None where none decodes)."""
    extractor = worker.load(task.engine)
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

"""Extract: prepare the store, hand out the tasks, write the failures. Or estimate by a short probe
what that takes.
"""

import os
import time
import warnings
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Artefact, code, record as records
from pipeline.foundation.compute import tasks
from pipeline.foundation.files import atomic
from pipeline.foundation.manifest.sources import Sources
from pipeline.foundation.parts.errors import InputError, InputWarning, counted
from pipeline.make.features.extraction import needs, request, worker
from pipeline.make.features.extraction.extraction_job import (
    EngineDescription,
    ExtractionJob,
    OnImages,
    Task,
)
from pipeline.make.features.store import (
    Plan,
    StoreError,
    exclusive,
    ledger,
    making,
    plan,
    write_failures,
)
from pipeline.make.features.store.layout import find

PROBE = 24  # images, after a first batch that warms up


@dataclass(frozen=True)
class ExtractionOutcome:
    """The outcome of an extraction."""

    extracted: int  # how many images or captions were extracted now, without those that failed
    failed: dict[int, str]  # place in the manifest -> reason, of all that failed in the store
    tried: int = 0  # how many were extracted or failed now
    kept: int = 0  # how many of those asked for were in the store already


def extract(
    job: ExtractionJob,
    executor: tasks.Executor | None = None,
    on_start: OnImages = lambda count: None,
    on_images: OnImages = lambda count: None,
) -> ExtractionOutcome:
    """The outcome of a job, which writes what is missing of a feature store. A finished store is
    left unchanged.

    executor: where; by default in this process. on_start, on_images: called with the number of
        images to extract, and with the number written since the last call.

    Raises:
        InputError: If an image cannot be used and such are not skipped.
    """
    described = (executor or tasks.InProcess()).call(worker.describe_engine, job.engine)
    with exclusive(job.store):
        atomic.put_back(job.store.resolve())
        job, engine = job.with_backend(described)
        sources = job.sources()
        wanted = job.wanted(engine, sources)
        todo = plan(job.store, wanted)
        _check_code(job, todo)
        with making(job.store, wanted, todo, job.if_changed) as (store, todo):
            on_start(todo.count)
            layout = todo.layout
            shards = todo.computed // layout.shard_rows
            counts = np.bincount(shards, minlength=layout.shards)
            work = job.tasks(engine, sources, todo, store)
            with closing(_run(executor, work, store)) as entries:
                for entry in entries:
                    on_images(int(counts[entry.shard]))
            rows = find(todo.ids, wanted.ids)
            failed = write_failures(store, layout, sources.names, rows)
        _record_place(job.store, request.places(job.engine.name, job.engine.options))
    if failed and job.on_error == "fail":
        row, reason = min(failed.items())
        raise InputError(
            f"{job.store}: {counted(len(failed), 'image')} failed in an earlier run, the first "
            f"{sources.names[row]} ({reason}); try again with --retry-failed, or accept that with "
            "--on-error skip"
        )
    is_tried = np.isin(rows, todo.computed)
    failed_now = int(is_tried[list(failed)].sum())
    is_kept = ~is_tried
    if wanted.chosen is not None:
        is_kept &= wanted.chosen
    is_kept[list(failed)] = False
    return ExtractionOutcome(todo.count - failed_now, failed, todo.count, int(is_kept.sum()))


def _record_place(store: Path, place: dict[str, str]) -> None:
    """Record where the files of the engine's options are now, which changes nothing else of the
    store.
    """
    facts = records.require(store).facts
    if facts.get("place", {}) != place and os.access(store, os.W_OK):
        records.update(store, facts={**facts, "place": place})


def _run(
    executor: tasks.Executor | None, tasks: Iterable[Task], store: Path
) -> Generator[ledger.LedgerEntry, None, None]:
    """Run tasks. In this process one shard is written while the next is computed."""
    if executor is None:
        yield from worker.run(tasks)
        return
    with closing(executor.each(worker.run_one, tasks, store)) as shards:
        for entries in shards:
            yield from entries


def _check_code(job: ExtractionJob, todo: Plan) -> None:
    """Compare the code that made a store, which agrees in all other respects, with the code of
    today.
    """
    existing = Artefact.existing(job.store)
    if existing is None or todo.changed:
        return
    versions = request.made_by(job.engine.name)
    differ = code.changed(existing.record.versions, versions)
    if not differ:
        return
    if job.same_features:
        records.update(job.store, versions=versions)
    elif job.if_changed == "redo":
        raise StoreError(
            f"{job.store}: was made by other code ({artefacts.named(differ)}); if its features change, "
            "raise the engine's `version`; if they do not, say so: pipeline extract --dataset "
            f"{job.manifest.dataset} --feature {job.store.stem} --same-features"
        )
    else:
        warnings.warn(
            f"{job.store}: was made by other code ({artefacts.named(differ)}); --same-features vouches that "
            "this code makes the same",
            InputWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class Estimate:
    """What an extraction would take."""

    engine: EngineDescription  # the engine's description
    total: int  # images, clips or captions of the manifest
    images: int  # those still to extract
    shards: int  # shards still to extract
    size: int  # bytes that these take without compression
    free: int  # free bytes where the store goes
    probed: int  # those that were timed
    seconds: float | None  # seconds that one worker needs; None if no probed image could be decoded
    changed: str  # how an existing store differs, "" if it does not


def estimate(
    job: ExtractionJob, executor: tasks.Executor | None = None, workers: int | None = 1
) -> Estimate:
    """The estimate of a job, by a probe on the executor (by default here); photographs with a
    checksum are not read.

    workers: how many share the cores of the machine on which the probe runs; None if that is not
        known.
    """
    executor = executor or tasks.InProcess()
    job, engine = job.with_backend(executor.call(worker.describe_engine, job.engine))
    sources = job.sources()
    wanted = job.wanted(engine, sources)
    if wanted.checksums is not None:
        wanted = replace(wanted, files=None)
    todo = plan(job.store, wanted)
    if todo.changed and job.if_changed == "refuse":
        todo = replace(todo, pending=[])
    layout = todo.layout
    count = todo.count
    probed = 0
    seconds = None
    if count:
        # A worker writes whole shards, so that further ones have nothing to do.
        if workers is not None:
            workers = min(workers, len(todo.pending))
        probed, each_takes = executor.call(probe, _sample(job, sources, todo), workers)
        if each_takes is not None:
            seconds = each_takes * count
    # A row's part of every array, and its entries in the shards' indices.
    size = 16 * (1 + len(layout.extras))
    for shape, dtype in layout.arrays().values():
        size += int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return Estimate(
        engine,
        len(sources.ids),
        count,
        len(todo.pending),
        count * size,
        needs.free_bytes(job.store),
        probed,
        seconds,
        todo.changed,
    )


def _sample(job: ExtractionJob, sources: Sources, todo: Plan) -> Task:
    """A task that is never written: a first batch and PROBE images, evenly from the shards to be
    written.
    """
    rows = todo.computed
    count = min(len(rows), job.batch_size + PROBE)
    places = np.linspace(0, len(rows) - 1, count).astype(int)
    chosen = rows[places]
    sampled = np.flatnonzero(np.isin(sources.ids, todo.ids[chosen]))
    return Task(
        job.store,
        "",
        todo.layout,
        0,
        range(len(chosen)),
        job.read(sources, sampled),
        job.engine,
        job.batch_size,
        "skip",
        job.threads,
    )


def probe(task: Task, workers: int | None) -> tuple[int, float | None]:
    """Decode and extract a task's images or captions: how many were timed, and the seconds that
    each takes one of so many workers on this machine, or None; see `estimate`.
    """
    worker.load_engine(task.engine)
    warm = False
    timed = 0
    decoding = 0.0
    computing = 0.0
    for start in range(0, len(task.sources), task.batch_size):
        begin = time.perf_counter()
        batch = task.sources[start : start + task.batch_size]
        decoded = [worker.decode(*source, task.engine) for source in batch]
        end_of_decoding = time.perf_counter()
        features = worker.features_of(task.engine, decoded, task.layout.dtype)
        if warm or len(task.sources) <= task.batch_size:
            timed += len(features)
            decoding += end_of_decoding - begin
            computing += time.perf_counter() - end_of_decoding
        warm = warm or not all(isinstance(image, str) for image in features)
    if not timed or not warm:
        return timed, None
    decoders, threads = worker.threads_of(task)
    cores = float(max(1, threads))
    if workers is not None:
        cores = len(os.sched_getaffinity(0)) / workers
    return timed, overlapped(decoding, computing, decoders, threads, cores) / timed


def overlapped(
    decoding: float, computing: float, decoders: int, threads: int, cores: float
) -> float:
    """Seconds of a worker that decodes while its network computes, from those of each alone.

    decoding: by one thread, of so many decoders. computing: by the network's own threads, 0 where
        it has a device of its own. cores: a worker's share of the machine's.
    """
    work_of_cores = decoding + computing * threads
    return max(decoding / decoders, computing, work_of_cores / cores)

"""Prepare the store, hand out the tasks, write the failures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pipeline.errors import InputError, InputWarning
from pipeline.extraction import worker
from pipeline.extraction.job import Description, Job, OnImages, Task
from pipeline.extraction.request import made_by
from pipeline.files import code
from pipeline.store import StoreError, exclusive, prepare, survey, write_failures

Result = TypeVar("Result")


class Place(Protocol):
    """Where the work is done."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """function(*arguments), there."""
        ...

    def run(self, tasks: Iterable[Task], on_images: OnImages) -> None:
        """Do the tasks; on_images is told how many images are written, each time some are."""
        ...


class Here:
    """This process."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return function(*arguments)

    def run(self, tasks: Iterable[Task], on_images: OnImages) -> None:
        worker.run(tasks, on_images)


@dataclass(frozen=True)
class Outcome:
    """What an extraction came to: images newly extracted, those failed in the whole store, with the reason."""

    extracted: int
    failed: dict[int, str]


def extract(job: Job, place: Place | None = None, on_start: OnImages = lambda count: None,
            on_images: OnImages = lambda count: None) -> Outcome:
    """Write what is missing of a feature store; a finished one is left as it is.

    place: where (default: this process). on_start is told how many images are to be done, on_images each time some
    are. Raises InputError for bad images, StoreError for a store that is another's.
    """
    place = place or Here()
    with exclusive(job.store):
        job, engine = job.settled(place.call(worker.describe, job.engine))
        layout, images = job.layout(engine), job.manifest.images
        _settle_code(job, engine)
        pending = prepare(job.store, layout, job.fingerprint(engine), images["image_id"].to_numpy(),
                          images["bytes"].to_numpy(), job.if_changed, job.retry_failed)
        if len(pending) == layout.shards:  # nothing in the store is of other code
            code.write(job.store, made_by(job.engine.name))
        total = sum(len(layout.rows(shard)) for shard in pending)
        on_start(total)
        place.run(job.tasks(engine, pending), on_images)
        failed = write_failures(job.store, layout, images["file"].tolist())
    if failed and job.on_error == "fail":
        row, reason = next(iter(sorted(failed.items())))
        raise InputError(f"{job.store}: {len(failed)} images failed in an earlier run, the first "
                         f"{images['file'][row]} ({reason}); try again with --retry-failed, or accept that with "
                         "--on-error skip")
    return Outcome(total, failed)


def _settle_code(job: Job, engine: Description) -> None:
    """What becomes of a store that fits in all but the code that made it.

    Raises StoreError where it would be replaced if it did not fit: days of extraction are not thrown away for a change
    that may not touch a value, and the store is not passed off as the new code's either.
    """
    now, images = made_by(job.engine.name), job.manifest.images
    differ = code.changed(job.store, now) if job.store.exists() else []
    if not differ or survey(job.store, job.layout(engine), job.fingerprint(engine), images["bytes"].to_numpy())[0]:
        return
    if job.same_features:
        code.write(job.store, now)
    elif job.if_changed == "redo":
        raise StoreError(f"{job.store}: was made by other code ({code.named(differ)}); if its features change, raise "
                         "the engine's `version`; if they do not, say so: pipeline extract --dataset "
                         f"{job.manifest.dataset} --feature {job.store.stem} --same-features")
    elif (job.store / code.FILE).exists():
        warnings.warn(f"{job.store}: was made by other code ({code.named(differ)}); --same-features vouches that this "
                      "code makes the same", InputWarning, stacklevel=2)

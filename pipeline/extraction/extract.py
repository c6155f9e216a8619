"""Prepare the store, hand out the tasks, write the failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pipeline.errors import InputError
from pipeline.extraction import worker
from pipeline.extraction.job import Job, OnImages, Task
from pipeline.store import exclusive, prepare, write_failures

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
        pending = prepare(job.store, layout, job.fingerprint(engine), images["image_id"].to_numpy(),
                          images["bytes"].to_numpy(), job.if_changed, job.retry_failed)
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

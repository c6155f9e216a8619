"""Extract: prepare the store, hand out the tasks, write the failures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pipeline.errors import InputError, InputWarning
from pipeline.extraction import worker
from pipeline.extraction.extraction_job import EngineDescription, ExtractionJob, OnImages, Task
from pipeline.extraction.request import made_by
from pipeline.files import code
from pipeline.store import StoreError, exclusive, prepare, survey, write_failures

Result = TypeVar("Result")


class Executor(Protocol):
    """Runs functions and tasks in some process."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function there.

        Args:
            function: Any function that can be pickled.
            *arguments: Its arguments.

        Returns:
            Its result.
        """
        ...

    def run(self, tasks: Iterable[Task], on_images: OnImages) -> None:
        """Run tasks there.

        Args:
            tasks: The tasks.
            on_images: Called with the number of images written since the last call.
        """
        ...


class InProcess:
    """Runs in this process."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function.

        Args:
            function: Any function.
            *arguments: Its arguments.

        Returns:
            Its result.
        """
        return function(*arguments)

    def run(self, tasks: Iterable[Task], on_images: OnImages) -> None:
        """Run tasks one after another.

        Args:
            tasks: The tasks.
            on_images: Called with the number of images written since the last call.
        """
        worker.run(tasks, on_images)


@dataclass(frozen=True)
class ExtractionOutcome:
    """The outcome of an extraction.

    Attributes:
        extracted: How many images were extracted now.
        failed: Row -> reason, of all failed images of the store.
    """

    extracted: int
    failed: dict[int, str]


def extract(job: ExtractionJob, executor: Executor | None = None, on_start: OnImages = lambda count: None,
            on_images: OnImages = lambda count: None) -> ExtractionOutcome:
    """Write what is missing of a feature store. A finished store is left unchanged.

    Args:
        job: What is extracted.
        executor: Where; by default in this process.
        on_start: Called once with the number of images to extract.
        on_images: Called with the number of images written since the last call.

    Returns:
        The outcome.

    Raises:
        InputError: If an image cannot be used and such are not skipped.
        StoreError: If the store holds other features.
    """
    executor = executor or InProcess()
    with exclusive(job.store):
        job, engine = job.with_backend(executor.call(worker.describe_engine, job.engine))
        layout, images = job.layout(engine), job.manifest.images
        _check_code(job, engine)
        pending = prepare(job.store, layout, job.fingerprint(engine), images["image_id"].to_numpy(),
                          images["bytes"].to_numpy(), job.if_changed, job.retry_failed)
        if len(pending) == layout.shards:  # nothing in the store is of other code
            code.write(job.store, made_by(job.engine.name))
        total = sum(len(layout.rows(shard)) for shard in pending)
        on_start(total)
        executor.run(job.tasks(engine, pending), on_images)
        failed = write_failures(job.store, layout, images["file"].tolist())
    if failed and job.on_error == "fail":
        row, reason = next(iter(sorted(failed.items())))
        raise InputError(f"{job.store}: {len(failed)} images failed in an earlier run, the first "
                         f"{images['file'][row]} ({reason}); try again with --retry-failed, or accept that with "
                         "--on-error skip")
    return ExtractionOutcome(total, failed)


def _check_code(job: ExtractionJob, engine: EngineDescription) -> None:
    """Compare the code that made a store, which agrees in all other respects, with the code of today.

    Raises:
        StoreError: If the store would have to be replaced. Days of extraction are not discarded for a change of code
            that may not affect a value, and the store is not recorded as made by the new code either.
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

"""Extract a feature for every image of a manifest: a task is a shard, and a shard has one owner.

In this process, in local worker processes, or on a running dask cluster: the tasks are the same, so are the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image

from pipeline import extractors, images
from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.store import Layout, Shard, exclusive, ledger, prepare, write_failures, write_shard

OnImages = Callable[[int], None]


@dataclass(frozen=True)
class Engine:
    """An engine as a worker can build it: its name, its options as sorted pairs, where it runs."""

    name: str
    options: tuple[tuple[str, Any], ...]
    runtime: extractors.Runtime

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any], runtime: extractors.Runtime) -> Engine:
        return cls(name, tuple(sorted(options.items())), runtime)


@lru_cache(maxsize=1)
def load(engine: Engine) -> extractors.Extractor:
    """The engine with its weights, loaded once a process."""
    return extractors.build(engine.name, dict(engine.options), engine.runtime)


@dataclass(frozen=True)
class Task:
    """One shard to extract, all that a worker needs: files are absolute paths, in the order of the rows."""

    store: Path
    layout: Layout
    shard: int
    files: list[Path]
    engine: Engine
    batch_size: int
    on_error: Literal["fail", "skip"]


def run(task: Task, on_images: OnImages = lambda count: None) -> ledger.Entry:
    """Extract one shard and write it. Raises InputError for an image that cannot be decoded, unless skipped."""
    extractor = load(task.engine)
    shard = Shard.empty(task.layout, task.shard)
    for rows, decoded in _batches(task, extractor):
        good = [(row, *image) for row, image in zip(rows, decoded, strict=True) if not isinstance(image, str)]
        for row, reason in zip(rows, decoded, strict=True):
            if isinstance(reason, str):
                _fail(task, shard, row, reason)
        if good:
            items = extractor.extract([tensor for _, tensor, _ in good], [size for _, _, size in good])
            for (row, _, size), item in zip(good, items, strict=True):
                shard.fill(row, item.features, size, item.extras)
        on_images(len(rows))
    for row, reason in shard.failed.items():
        if task.on_error == "fail":
            _fail(task, shard, row, reason)
    return write_shard(task.store, task.layout, shard)


def _fail(task: Task, shard: Shard, row: int, reason: str) -> None:
    if reason == images.MISSING:
        raise InputError(f"{task.files[row - shard.rows.start]}: no such image, though the manifest names it; give the "
                         "folder with --images, or make the manifest anew")
    if task.on_error == "fail":
        raise InputError(f"{task.files[row - shard.rows.start]}: {reason}; mend or remove the image, or let it be "
                         "left out with --on-error skip")
    shard.fail(row, reason)


Decoded = tuple[torch.Tensor, tuple[int, int]] | str


def _batches(task: Task, extractor: extractors.Extractor) -> Iterator[tuple[range, list[Decoded]]]:
    """Rows and their prepared images, or the reason there is none; the next batch is decoded meanwhile."""
    rows = task.layout.rows(task.shard)
    starts = range(rows.start, rows.stop, task.batch_size)
    cuts = [range(start, min(start + task.batch_size, rows.stop)) for start in starts]
    with ThreadPoolExecutor(max_workers=2) as pool:
        def decode(cut: range) -> list[Any]:
            return [pool.submit(_decode, task.files[row - rows.start], extractor) for row in cut]
        waiting = decode(cuts[0])
        for cut, after in zip(cuts, [*cuts[1:], None], strict=True):
            current, waiting = waiting, decode(after) if after else []
            yield cut, [future.result() for future in current]


def _decode(path: Path, extractor: extractors.Extractor) -> Decoded:
    try:
        image: Image.Image = images.decode(path)
        return extractor.prepare(image), image.size
    except images.ImageError as error:
        return str(error)


@dataclass(frozen=True)
class Job:
    """Which images, which engine, into which store, and how."""

    manifest: Manifest
    images_folder: Path
    store: Path
    engine: Engine
    batch_size: int
    shard_images: int
    compressor: str = "none"
    on_error: Literal["fail", "skip"] = "fail"
    if_changed: Literal["refuse", "redo"] = "refuse"

    def fingerprint(self) -> dict[str, Any]:
        """All that the store's values depend on."""
        extractor = load(self.engine)
        return {"dataset": self.manifest.dataset, "images": self.manifest.images_digest, "engine": self.engine.name,
                "recipe": extractor.recipe, "settings": dict(extractor.settings), "weights": extractor.weights,
                "trained": extractor.trained, "precision": self.engine.runtime.precision}

    def layout(self) -> Layout:
        extractor = load(self.engine)
        return Layout(len(self.manifest.images), extractor.items, extractor.dimension,
                      min(self.shard_images, len(self.manifest.images)), self.compressor, extractor.extras)

    def task(self, shard: int) -> Task:
        files = self.manifest.images["file"]
        folder = self.images_folder.absolute()
        layout = self.layout()
        return Task(self.store.absolute(), layout, shard, [folder / files[row] for row in layout.rows(shard)],
                    self.engine, self.batch_size, self.on_error)


@dataclass(frozen=True)
class Outcome:
    """What an extraction came to: images newly extracted, those failed in the whole store, with the reason."""

    extracted: int
    failed: dict[int, str]


def extract(job: Job, schedule: Callable[[list[Task], OnImages], None] | None = None,
            on_start: OnImages = lambda count: None, on_images: OnImages = lambda count: None) -> Outcome:
    """Write what is missing of a feature store; a finished one is left as it is.

    schedule: runs the tasks (default: one after another, here). on_start is told how many images are to be done,
    on_images each time some are. Raises InputError for bad images, StoreError for a store that is another's.
    """
    with exclusive(job.store):
        pending = prepare(job.store, job.layout(), job.fingerprint(), job.manifest.images["image_id"].to_numpy(),
                          job.if_changed)
        tasks = [job.task(shard) for shard in pending]
        total = sum(len(task.files) for task in tasks)
        on_start(total)
        if tasks:
            (schedule or in_turn)(tasks, on_images)
        failed = write_failures(job.store, job.layout(), job.manifest.images["file"].tolist())
    if failed and job.on_error == "fail":
        row, reason = next(iter(sorted(failed.items())))
        raise InputError(f"{job.store}: {len(failed)} images failed in an earlier run, the first "
                         f"{job.manifest.images['file'][row]} ({reason}); accept that with --on-error skip")
    return Outcome(total, failed)


def in_turn(tasks: list[Task], on_images: OnImages) -> None:
    """Run the tasks one after another in this process."""
    for task in tasks:
        run(task, on_images)

"""What is to be extracted, and the tasks it is cut into: all that a worker needs, and nothing that only it can know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pipeline.extractors import Runtime, backend
from pipeline.files.digest import digest
from pipeline.manifest import Manifest
from pipeline.store import Extra, Layout, StoreError, describe

OnImages = Callable[[int], None]
OnError = Literal["fail", "skip"]


@dataclass(frozen=True)
class Engine:
    """An engine as a worker can build it: its name, its options as sorted pairs, where it runs."""

    name: str
    options: tuple[tuple[str, Any], ...]
    runtime: Runtime

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any], runtime: Runtime) -> Engine:
        return cls(name, tuple(sorted(options.items())), runtime)


@dataclass(frozen=True)
class Description:
    """What an engine says of itself once its weights are loaded (see `extractors.base.Extractor`)."""

    reported_as: str
    version: int
    items: int
    dimension: int
    extras: Mapping[str, Extra]
    trained: bool
    weights: str
    settings: Mapping[str, Any]
    backend: str


@dataclass(frozen=True)
class Task:
    """One shard to extract. files: absolute paths and sizes in bytes, in the order of the rows. made_from: digest of
    the store's fingerprint, lest a task that outlives its run writes into the store of another."""

    store: Path
    made_from: str
    layout: Layout
    shard: int
    files: list[tuple[Path, int]]
    engine: Engine
    batch_size: int
    on_error: OnError

    @property
    def rows(self) -> range:
        return self.layout.rows(self.shard)


@dataclass(frozen=True)
class Job:
    """Which images, which engine, into which store, and how.

    same_features: the user vouches that code which changed since makes the same features.
    """

    manifest: Manifest
    images_folder: Path
    store: Path
    engine: Engine
    batch_size: int
    shard_images: int
    compressor: str = "none"
    dtype: str = "float16"
    on_error: OnError = "fail"
    if_changed: Literal["refuse", "redo"] = "refuse"
    retry_failed: bool = False
    same_features: bool = False

    def fingerprint(self, engine: Description) -> dict[str, Any]:
        """All that the store's values depend on, but for the size of each file, which stands beside its features."""
        made = {"dataset": self.manifest.dataset, "images": self.manifest.images_digest, "engine": self.engine.name,
                "version": engine.version, "recipe": engine.reported_as, "settings": dict(engine.settings),
                "weights": engine.weights, "trained": engine.trained, "precision": self.engine.runtime.precision}
        # torch is not named: stores that were made before there was another keep their fingerprint
        return made if engine.backend == backend.TORCH else {**made, "backend": engine.backend}

    def settled(self, engine: Description) -> tuple[Job, Description]:
        """The job and its engine with one backend in place of `auto`.

        A store that is there keeps the backend that it has, if it differs in nothing else: so what is installed later
        makes no store void. Else it is the one that the engine chose where it was loaded.
        """
        runtime = self.engine.runtime
        if runtime.backend == backend.AUTO:
            kept = replace(engine, backend=_made_from(self.store).get("backend", backend.TORCH))
            engine = kept if self.fingerprint(kept) == _made_from(self.store) else engine
        pinned = replace(self.engine, runtime=replace(runtime, backend=engine.backend))
        return replace(self, engine=pinned), engine

    def layout(self, engine: Description) -> Layout:
        images = len(self.manifest.images)
        return Layout(images, engine.items, engine.dimension, min(self.shard_images, images), self.compressor,
                      engine.extras, self.dtype)

    def tasks(self, engine: Description, shards: Iterable[int]) -> Iterator[Task]:
        """The shards' tasks, made one by one: the names of all images are never held twice."""
        layout, made_from = self.layout(engine), digest(self.fingerprint(engine))
        images, folder, store = self.manifest.images, self.images_folder.absolute(), self.store.absolute()
        for shard in shards:
            rows = layout.rows(shard)
            here = images.iloc[rows.start:rows.stop]
            files = [(folder / file, int(size)) for file, size in zip(here["file"], here["bytes"], strict=True)]
            yield Task(store, made_from, layout, shard, files, self.engine, self.batch_size, self.on_error)


def _made_from(store: Path) -> dict[str, Any]:
    """What made the store that is there; empty where none is."""
    try:
        return describe(store)[1]
    except StoreError:
        return {}

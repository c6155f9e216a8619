"""What is extracted, and the tasks it is split into. Both are known before a worker loads the
network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pipeline.foundation.artefacts.request import difference
from pipeline.foundation.files import remote
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.sources import Captions, Gallery, Sources
from pipeline.foundation.settings.parts import reads_captions
from pipeline.make.features.extraction import request
from pipeline.make.features.extractors import Runtime, backend
from pipeline.make.features.store import (
    Extra,
    Plan,
    StoreError,
    StoreLayout,
    Wanted,
    read_header,
)
from pipeline.make.features.store.layout import ABSENT, made_by

OnImages = Callable[[int], None]
OnError = Literal["fail", "skip"]


@dataclass(frozen=True)
class EngineSpec:
    """An engine as a worker can build it."""

    name: str  # a key of `extractors.ENGINES`
    options: Mapping[str, Any]  # its settings
    runtime: Runtime  # where and how its network runs


@dataclass(frozen=True)
class EngineDescription:
    """The attributes of a loaded engine, which `extractors.base.Extractor` documents, and its
    version.
    """

    # the name of the features by the engine's options alone; `reported_as` also has weights and
    # precision
    name: str
    reported_as: str
    depends_on_id: bool
    version: int
    items: int
    dimension: int
    extras: Mapping[str, Extra]
    trained: bool
    weights: str
    settings: Mapping[str, Any]
    backend: str


@dataclass(frozen=True)
class Threads:
    """The threads of a worker. Their number changes no feature."""

    decoders: int | None = (
        None  # threads that decode and resize images; None for what suits the machine
    )
    writers: int | None = (
        None  # threads that write finished shards, each of which is held in memory; None as above
    )
    ahead: int = 2  # batches that are decoded ahead of those in the network


@dataclass(frozen=True)
class Task:
    """One shard to extract."""

    store: Path
    # Digest of the store's fingerprint. It prevents a task that outlives its run from writing into
    # another store at the same path.
    made_from: str
    layout: StoreLayout
    shard: int
    rows: range
    # Photographs or clips by absolute paths, or captions, and their sizes in bytes, in the order of
    # the rows.
    sources: list[tuple[GalleryFile | str, int]]
    engine: EngineSpec
    batch_size: int
    on_error: OnError  # Whether an image that cannot be decoded ends the run
    threads: Threads = Threads()  # The threads of the worker that runs it
    # Rows that are copied from a store instead: int64 [rows], ABSENT for those to extract.
    copied_from: Path | None = None
    rows_there: np.ndarray | None = None

    @property
    def extracted(self) -> list[int]:
        """The rows to extract."""
        if self.rows_there is None:
            return list(self.rows)
        return (self.rows.start + np.flatnonzero(self.rows_there == ABSENT)).tolist()


@dataclass(frozen=True)
class ExtractionJob:
    """An extraction: which images, clips or captions, by which engine, into which store."""

    manifest: Manifest
    images_folder: Path  # Where their files lie
    store: Path
    engine: EngineSpec
    batch_size: int
    shard_images: int
    compressor: str = "none"
    dtype: str = "float16"
    on_error: OnError = "fail"  # Whether an image that cannot be decoded ends the run
    # Whether a store with other features is refused or replaced.
    if_changed: Literal["refuse", "redo"] = "refuse"
    retry_failed: bool = False  # Whether images that failed before are tried again
    # Whether the user vouches that code which changed since makes the same features.
    same_features: bool = False
    # Ids of the images that are extracted now, or whose captions are; None for all.
    only: frozenset[int] | None = None
    threads: Threads = Threads()  # The threads of each worker

    def sources(self) -> Sources:
        """The manifest's captions, or its images or clips: what the engine reads."""
        return (
            Captions(self.manifest) if reads_captions(self.engine.name) else Gallery(self.manifest)
        )

    def wanted(self, engine: EngineDescription, sources: Sources) -> Wanted:
        """The content of the store: all of the sources that the engine reads, with those to be
        extracted now.
        """
        total = len(sources.ids)
        chosen = np.ones(total, bool)
        if self.only is not None:
            chosen = np.isin(sources.image_ids, list(self.only))
        folder = remote.absolute(self.images_folder)
        layout = StoreLayout(
            total,
            engine.items,
            engine.dimension,
            min(self.shard_images, total),
            self.compressor,
            engine.extras,
            self.dtype,
            kind=sources.kind,
        )
        files = (lambda rows: sources.read(rows, folder)) if isinstance(sources, Gallery) else None
        return Wanted(
            sources.ids,
            sources.sizes,
            self.fingerprint(engine, sources),
            layout,
            files,
            sources.checksums,
            self.manifest.written,
            chosen,
            grows=True,
            by_content=not engine.depends_on_id,
            retry_failed=self.retry_failed,
            versions=request.made_by(self.engine.name),
        )

    @property
    def noun(self) -> str:
        """What messages call that which the engine reads: image, clip or caption."""
        return "caption" if reads_captions(self.engine.name) else self.manifest.noun

    def fingerprint(self, engine: EngineDescription, sources: Sources) -> dict[str, Any]:
        """The JSON values on which the store's values depend, by engine and sources, except for the
        sizes of files.
        """
        return {
            "dataset": self.manifest.dataset,
            "ids": sources.digest,
            "engine": self.engine.name,
            "version": engine.version,
            "name": engine.name,
            "recipe": engine.reported_as,
            "settings": dict(engine.settings),
            "weights": engine.weights,
            "trained": engine.trained,
            "precision": self.engine.runtime.precision,
            "depends_on_id": engine.depends_on_id,
            "backend": engine.backend,
        }

    def with_backend(self, engine: EngineDescription) -> tuple[ExtractionJob, EngineDescription]:
        """The job and the engine's description with a named backend instead of `auto`."""
        # An existing store keeps its backend, and the feature its name, if it differs in nothing
        # else but images, so that installing OpenVINO later does not invalidate stores. Otherwise
        # the backend is the one that the engine was loaded with.
        runtime = self.engine.runtime
        try:
            made_from = read_header(self.store)[1]
        except StoreError:  # there is none
            made_from = {}
        existing = replace(engine, reported_as=made_from.get("recipe", engine.reported_as))
        if runtime.backend == backend.AUTO:
            existing = replace(existing, backend=made_from.get("backend", engine.backend))
        alike = self.fingerprint(existing, self.sources())
        if difference(made_by(made_from), made_by(alike)) is None:
            engine = existing
        pinned = replace(self.engine, runtime=replace(runtime, backend=engine.backend))
        return replace(self, engine=pinned), engine

    def read(self, sources: Sources, rows: np.ndarray) -> list[tuple[GalleryFile | str, int]]:
        """The files, by absolute paths, or captions at rows (int64 [B]) of the sources, and their
        sizes in bytes.
        """
        some = sources.read(rows.tolist(), remote.absolute(self.images_folder))
        return list(zip(some, sources.sizes[rows].tolist(), strict=True))

    def tasks(
        self, engine: EngineDescription, sources: Sources, todo: Plan, store: Path
    ) -> Iterator[Task]:
        """The tasks of a store's shards, todo, of the sources that the engine reads; one by one, to
        save memory.
        """
        store = store.absolute()
        made_from = digest(self.fingerprint(engine, sources))
        source_rows = todo.places_of_rows(sources.ids)
        for shard in todo.pending:
            rows = todo.layout.rows(shard)
            task = Task(
                store,
                made_from,
                todo.layout,
                shard,
                rows,
                self.read(sources, source_rows[rows.start : rows.stop]),
                self.engine,
                self.batch_size,
                self.on_error,
                self.threads,
            )
            rows_there = todo.rows_there[rows.start : rows.stop]
            if (rows_there != ABSENT).any():
                source = self.store.absolute()
                task = replace(task, copied_from=source, rows_there=rows_there)
            yield task

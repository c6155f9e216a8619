"""What `pipeline store import` does: reads features of another code base into a store."""

from __future__ import annotations

import os

from pipeline.extensions import importers
from pipeline.extensions.importers.command import ImportOptions
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, counted, similar
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from stages.progress import Progress, say


def import_store(paths: Paths, settings: Settings, options: ImportOptions) -> None:
    """Import features of another code base into a store. Running again does nothing, or resumes."""
    if (options.feature is None) == (options.out is None):
        raise InputError(
            "give --feature, or the store with --out; --feature only chooses the store's usual place"
        )
    if options.manifest_file and options.dataset:
        raise InputError("--manifest says which data set it is of; leave out --dataset")
    for source in options.sources:
        if not os.path.lexists(source):
            raise InputError(f"{source}: no such file or folder{similar(source)}")
    dataset = options.dataset or settings.run.dataset
    manifest = Manifest.load(options.manifest_file or paths.manifest(dataset))
    store = options.out or paths.features(manifest.dataset, options.feature or "")
    how = settings.extract
    job = importers.ImportJob(
        manifest,
        options.form,
        options.sources,
        store,
        how.shard_images,
        options.reported_as,
        how.compressor,
        options.dtype or how.dtype,
        options.on_error or how.on_error,
        options.if_changed,
        options.frames,
        settings.manifest.left_out,
    )
    with (
        Progress(f"look through {options.form}", "image") as looking,
        Progress("import", "image") as bar,
    ):
        done = importers.import_features(job, looking.update, bar.reset, bar.update)
    imported = f"{counted(done.images, 'image')} imported" if done.images else "nothing to do"
    notes = []
    if done.failed:
        images = counted(len(manifest.images), "image")
        notes.append(
            f"{len(done.failed):,} of {images} have no features, see "
            f"{store}/failures.csv; training and scores leave them out"
        )
    notes += done.notes
    said = f"{store}: {imported}, reported as {done.reported_as}"
    say(said, *(f"  {note}" for note in notes), err=False)

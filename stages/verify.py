"""Check a feature store, and make its damaged shards again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.parts.errors import InputError, counted
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:

    from pipeline.features import extraction
    from pipeline.features.extraction import request, worker
    from pipeline.features.extractors import Runtime
    from pipeline.features.store import exclusive, ledger, read_header, restore, verify
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings

MOST_WORKERS = 8


@click.command
@click.argument("store", type=options.FilePath())
@click.option("--repair", is_flag=True, help="Restore zarr.json, image_ids and the ledger, and make the damaged shards "
              "again, and no others.")
@click.option("--forget", is_flag=True, help="Drop the damaged shards, so that the command that made the store makes "
              "them again: for stores that were imported.")
@click.option("--workers", type=click.IntRange(min=1), show_default="a core each, at most 8",
              help="Shards that are read at the same time; each is held in memory.")
@click.option("--images", type=options.FilePath(), show_default="as in the manifest",
              help="Where the image files lie, for --repair.")
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, store: Path, repair: bool, forget: bool,
            workers: int | None, images: Path | None) -> None:
    """Check a feature store's ledger, checksums, shapes, counts and values; say what is wrong and where.

    Example: pipeline verify features/sample/region.zarr --repair
    """
    if repair and forget:
        raise InputError("give --repair or --forget")
    if repair:
        _restore(paths, store, images)
    shards = read_header(store)[0].shards
    damaged = []
    with Progress("verify", "shard", shards) as bar:
        for shard, found in verify.verify(store, workers or min(MOST_WORKERS, os.cpu_count() or 1)):
            bar.update()
            for fault in found:
                say(f"shard {shard}: {fault}", err=False)
            damaged += [shard] if found else []
    if not damaged:
        click.echo(f"{store}: {counted(shards, 'shard')}, all as written")
    elif repair:
        _repair(paths, settings, store, damaged, images)
    elif forget:
        _forget(store, damaged)
        click.echo(f"{store}: {len(damaged)} of {counted(shards, 'shard')} forgotten; run the command that made "
                   "the store again")
    else:
        raise InputError(f"{store}: damaged or not there: {len(damaged)} of {counted(shards, 'shard')}; --repair makes "
                         "them again")


def _restore(paths: Paths, store: Path, images: Path | None) -> None:
    """Restore what describes the store, if it can be written."""
    if not store.is_dir() or not os.access(store, os.W_OK):
        return
    with exclusive(store):
        for line in restore.restore(store, lambda dataset: Manifest.load(paths.manifest(dataset)), images):
            click.echo(f"{store}: {line}")


def _repair(paths: Paths, settings: Settings, store: Path, damaged: list[int], images: Path | None) -> None:
    """Forget the damaged shards and extract them as the store was extracted; nothing is forgotten that cannot be."""
    try:
        job = _job(paths, settings, store, images)
        worker.describe_engine(job.engine)
    except InputError as error:
        raise InputError(f"{store}: {counted(len(damaged), 'damaged shard')} cannot be made again from here ({error}); "
                         "--forget drops them, so that the command that made the store makes them again") from None
    _forget(store, damaged)
    with Progress("repair", "image") as bar:
        outcome = extraction.extract(job, None, bar.reset, bar.update)
    click.echo(f"{store}: {counted(len(damaged), 'damaged shard')} made again, {counted(outcome.extracted, 'image')}")


def _forget(store: Path, damaged: list[int]) -> None:
    with exclusive(store):
        for shard in damaged:
            ledger.erase(store, shard)


def _job(paths: Paths, settings: Settings, store: Path, images: Path | None) -> extraction.ExtractionJob:
    """The job that made the store, as its fingerprint tells. Raises InputError where that was no extraction."""
    sizes, made_from = read_header(store)
    try:
        name, dataset = made_from["engine"], made_from["dataset"]
        options, precision = made_from["settings"], made_from["precision"]
    except KeyError:
        raise InputError("it was not extracted but imported") from None
    manifest = Manifest.load(paths.manifest(dataset))
    # OpenVINO computes on the CPU, wherever the settings would have torch compute.
    runtime = Runtime("cpu", precision, made_from["backend"]) if "backend" in made_from \
        else Runtime(request.devices(settings.extract.device)[0], precision, products=settings.compute.products)
    engine = extraction.EngineSpec(name, options, runtime)
    return extraction.ExtractionJob(manifest, images or manifest.images_folder, store, engine,
                                    settings.extract.batch_size, sizes.shard_images, sizes.compressor, sizes.dtype,
                                    "skip")

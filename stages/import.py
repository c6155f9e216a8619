"""Bring features that another code base made into a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.features import importers
from pipeline.parts.errors import InputError, counted
from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline.features.importers import ImportJob, import_features
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings


@click.command
@click.argument("form", metavar="FORMAT", type=click.Choice(list(importers.FORMATS)))
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=options.FilePath())
@click.option("--dataset", metavar="NAME", show_default="run.dataset", help="The data set.")
@click.option("--manifest", "manifest_file", type=options.FilePath(dir_okay=False), show_default="data/DATASET.parquet",
              help="The manifest's file, if it is not in its usual place.")
@click.option("--feature", type=click.Choice(list(FEATURES)), help="Which feature it is to serve as.")
@click.option("--out", type=options.FilePath(), show_default="features/DATASET/FEATURE.zarr",
              help="The store.")
@click.option("--as", "reported_as", metavar="NAME", show_default="FORMAT-ITEMSxVALUES",
              help="The name under which the features are reported. Tables accept a paper's name, such as "
              "butd-36-proposals, and mark any other.")
@click.option("--dtype", type=click.Choice(["float16", "float32"]), show_default="extract.dtype",
              help="How they are stored.")
@click.option("--on-error", type=click.Choice(["fail", "skip"]), show_default="extract.on_error",
              help="Whether a missing or damaged image ends the run.")
@click.option("--frames", type=click.IntRange(min=1), default=20, show_default=True,
              help="The most frames of a clip, taken evenly; of photographs all items are kept.")
@options.if_changed
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, form: str, sources: tuple[Path, ...], dataset: str | None,
            manifest_file: Path | None, feature: str | None, out: Path | None, reported_as: str | None,
            **changes: Any) -> None:
    """Bring features that another code base made into a store. Running again does nothing, or resumes.

    \b
    scan      a folder with {split}_ims.npy, {split}_ids.txt, {split}_caps.txt
    butd-tsv  one or several TSV files of bottom-up-attention or LXMERT
    folder    folders with one .npy, .npz or .pth an image or clip, named after it
    hgr       folders with HGR's {trn,val,tst}_ft.hdf5 or .npy

    Example: pipeline import butd-tsv train.tsv val.tsv --dataset coco --feature region --as butd-36-proposals
    """
    if (feature is None) == (out is None):
        raise InputError("give --feature, or the store with --out; --feature only chooses the store's usual place")
    if dataset and manifest_file:
        raise InputError("--manifest says which data set it is of; leave out --dataset")
    manifest = Manifest.load(manifest_file or paths.manifest(dataset or settings.run.dataset))
    store = out or paths.features(manifest.dataset, feature or "")
    extract = settings.extract.model_copy(update={key: changes[key] for key in ("dtype", "on_error") if changes[key]})
    job = ImportJob(manifest, form, sources, store, extract.shard_images, reported_as, extract.compressor,
                    extract.dtype, extract.on_error, changes["if_changed"], changes["frames"])
    with Progress(f"look through {form}", "image") as looking, Progress("import", "image") as bar:
        done = import_features(job, looking.update, bar.reset, bar.update)
    told = [f"{store}: " + (f"{counted(done.images, 'image')} imported" if done.images else "nothing to do")
            + f", reported as {done.reported_as}"]
    if done.failed:
        told.append(f"{len(done.failed):,} failed, see {store}/failures.csv")
    click.echo("\n  ".join([*told, *done.notes]))

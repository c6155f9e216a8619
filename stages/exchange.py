"""Features of other code bases: brought into a store, and written as those code bases read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline import manifest as manifests
from pipeline.features import importers
from pipeline.parts.errors import InputError, counted
from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.features.importers.export import FORMATS, export
    from pipeline.features.store import FeatureStore
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings


@click.command
@click.argument("form", metavar="FORMAT", type=click.Choice(list(importers.FORMATS)))
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=options.FilePath())
@options.dataset
@click.option("--manifest", "manifest_file", type=options.FilePath(dir_okay=False), show_default="data/DATASET.parquet",
              help="The manifest's file, if it is not in its usual place.")
@click.option("--feature", type=click.Choice(list(FEATURES)), help="Which feature it is to serve as.")
@options.out("features/DATASET/FEATURE.zarr")
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
def import_command(paths: Paths, settings: Settings, form: str, sources: tuple[Path, ...], dataset: str,
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
    if manifest_file and options.was_given("dataset"):
        raise InputError("--manifest says which data set it is of; leave out --dataset")
    manifest = Manifest.load(manifest_file or paths.manifest(dataset))
    store = out or paths.features(manifest.dataset, feature or "")
    extract = settings.extract.model_copy(update={key: changes[key] for key in ("dtype", "on_error") if changes[key]})
    job = importers.ImportJob(manifest, form, sources, store, extract.shard_images, reported_as, extract.compressor,
                              extract.dtype, extract.on_error, changes["if_changed"], changes["frames"])
    with Progress(f"look through {form}", "image") as looking, Progress("import", "image") as bar:
        done = importers.import_features(job, looking.update, bar.reset, bar.update)
    told = (f"{store}: " + (f"{counted(done.images, 'image')} imported" if done.images else "nothing to do")
            + f", reported as {done.reported_as}")
    failed = [f"{len(done.failed):,} failed, see {store}/failures.csv"] if done.failed else []
    say(told, *(f"  {note}" for note in (*failed, *done.notes)), err=False)


@click.command
@click.argument("what", nargs=-1, required=True, metavar="[FORMAT] STORE", type=options.FilePath())
@click.option("--split", type=click.Choice(manifests.SPLITS), help="Which images; scan needs one, the others take all "
              "without it.")
@click.option("--out", type=options.FilePath(file_okay=False), required=True, help="The folder.")
@options.manifest
@options.with_settings_or_shipped
def export_command(paths: Paths, settings: Settings, what: tuple[Path, ...], split: str | None, out: Path,
                   manifest_file: Path | None) -> None:
    """Write a split of a feature store as older code bases read it. Running again does nothing.

    scan: {split}_ims.npy, {split}_ids.txt, {split}_caps.txt. SCAN calls val `dev`, and COCO's 5K test split `testall`.
    butd-tsv: {split}.tsv with bottom-up-attention's columns, or LXMERT's where the store has objects and attributes.
    folder: an .npz an image, named after its file. FORMAT may be left out for scan.

    Example: pipeline export features/coco/region.zarr --split val --out coco_precomp
    """
    form, store = ("scan", what[0]) if len(what) == 1 else (what[0].as_posix(), what[1])
    if form not in FORMATS or len(what) > 2:
        raise InputError(f"expected [FORMAT] STORE, a format being one of {', '.join(FORMATS)}, got "
                         f"{' '.join(map(str, what))}")
    features = FeatureStore(store)
    manifest = Manifest.load(manifest_file or paths.manifest(features.fingerprint["dataset"]))
    with Progress("export", "image") as bar:
        done = export(form, features, manifest, split, out, bar.reset, bar.update)
    say(f"{done.place}: {done.told}", *(f"  {note}" for note in done.notes), err=False)

"""Commands on a feature store: check, rewrite and copy it; import it from other code bases, export it for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.features import importers
from pipeline.manifest import SPLITS, Manifest
from pipeline.parts import lazy
from pipeline.parts.errors import InputError, counted, refusing
from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:
    import numpy as np

    from pipeline.features import extraction
    from pipeline.features.extractors import Runtime
    from pipeline.features.importers.export import FORMATS, export
    from pipeline.features.store import FeatureStore, ledger, read_header, remote_store, restore, verify
    from pipeline.files import atomic, remote
    from pipeline.files.compared import MATCHES
    from pipeline.settings import Settings

MOST_WORKERS = 8


@click.command
@click.argument("store", type=options.FilePath())
@click.option("--repair", is_flag=True, help="Restore zarr.json, image_ids and the ledger, and extract the damaged "
              "shards again.")
@click.option("--forget", is_flag=True, help="Drop the damaged shards, so that the command that made the store makes "
              "them again: for stores that were imported.")
@click.option("--workers", type=click.IntRange(min=1), show_default="a core each, at most 8",
              callback=options.of_this_machine, help="Shards that are read at the same time; each is held in memory.")
@options.image_files(", for --repair")
@options.with_settings_or_shipped
def verify_command(paths: Paths, settings: Settings, store: Path, repair: bool, forget: bool, workers: int | None,
                   images: Path | None) -> None:
    """Check a feature store's ledger, checksums, shapes, counts and values; say what is wrong and where.

    Example: pipeline verify features/sample/region.zarr --repair
    """
    if repair and forget:
        raise InputError("give --repair or --forget")
    if repair and store.is_dir() and os.access(store, os.W_OK):
        with atomic.exclusive(store):  # the files that describe the store
            for line in restore.restore(store, lambda dataset: Manifest.load(paths.manifest(dataset)), images):
                say(f"{store}: {line}", err=False)
    layout, _ = read_header(store)
    shards = layout.shards
    damaged = []
    wrong = [step for step in verify.description(store, layout) if step.verdict != MATCHES]
    for step in wrong:
        say(f"{step.path}: {step.what} {step.verdict}", err=False)
    with Progress("verify", "shard", shards) as bar:
        for shard, found in verify.verify(store, workers or min(MOST_WORKERS, os.cpu_count() or 1)):
            bar.update()
            for fault in found:
                say(f"shard {shard}: {fault}", err=False)
            damaged += [shard] if found else []
    if wrong and not damaged:
        raise InputError(f"{store}: {wrong[0].path.name}: {wrong[0].what} {wrong[0].verdict}; --repair restores it")
    if not damaged:
        say(f"{store}: {counted(shards, 'shard')}, all as written", err=False)
    elif repair:
        _repair(paths, settings, store, damaged, images)
    elif forget:
        _forget(store, damaged)
        say(f"{store}: {len(damaged)} of {counted(shards, 'shard')} forgotten; run the command that made "
            "the store again", err=False)
    else:
        raise InputError(f"{store}: damaged or not there: {len(damaged)} of {counted(shards, 'shard')}; --repair makes "
                         "them again")


def _repair(paths: Paths, settings: Settings, store: Path, damaged: list[int], images: Path | None) -> None:
    """Drop the damaged shards and extract them again as the store was extracted; first check that this is possible."""
    with refusing(InputError, lambda error: f"{store}: {counted(len(damaged), 'damaged shard')} cannot be made again "
                  f"from here ({error}); --forget drops them, so that the command that made the store makes them "
                  "again"):
        job = _job(paths, settings, store, images)
        extraction.worker.describe_engine(job.engine)
    _forget(store, damaged)
    with Progress("repair", "image") as bar:
        outcome = extraction.extract(job, None, bar.reset, bar.update)
    say(f"{store}: {counted(len(damaged), 'damaged shard')} made again, {counted(outcome.extracted, 'image')}",
        err=False)


def _forget(store: Path, damaged: list[int]) -> None:
    with atomic.exclusive(store):
        for shard in damaged:
            ledger.erase(store, shard)


def _job(paths: Paths, settings: Settings, store: Path, images: Path | None) -> extraction.ExtractionJob:
    """The job that made the store, by its fingerprint. Raises InputError if it was not extracted."""
    sizes, made_from = read_header(store)
    with refusing(KeyError, "it was not extracted but imported"):
        name, dataset = made_from["engine"], made_from["dataset"]
        options, precision = made_from["settings"], made_from["precision"]
    manifest = Manifest.load(paths.manifest(dataset))
    # OpenVINO computes on the CPU, whatever device the settings name for torch.
    runtime = Runtime("cpu", precision, made_from["backend"]) if "backend" in made_from \
        else Runtime(extraction.devices(settings.extract.device)[0], precision, products=settings.compute.products)
    engine = extraction.EngineSpec(name, options, runtime)
    return extraction.ExtractionJob(manifest, images or manifest.images_folder, store, engine,
                                    settings.extract.batch_size, sizes.shard_images, sizes.compressor, sizes.dtype,
                                    "skip")


@click.command
@click.argument("store", type=options.FilePath())
@options.manifest
@options.with_settings_or_shipped
def compact_command(paths: Paths, settings: Settings, store: Path, manifest_file: Path | None) -> None:
    """Remove from a feature store the rows of images that are gone or were replaced, and put the others in order.

    The result is the store that one extraction of the manifest makes. The old store stays until the new one is whole.

    Example: pipeline compact features/coco/region.zarr
    """
    _rewrite(paths, store, manifest_file)


@click.command
@click.argument("store", type=options.FilePath())
@click.option("--dtype", type=click.Choice(["float16", "float32"]), show_default="the store's own",
              help="How features are stored.")
@click.option("--compressor", type=click.Choice(["none", "zstd"]), show_default="the store's own")
@click.option("--shard-images", type=click.IntRange(min=1), show_default="the store's own", help="Images in a shard.")
@options.manifest
@options.with_settings_or_shipped
def rewrite_command(paths: Paths, settings: Settings, store: Path, manifest_file: Path | None, dtype: str | None,
                    compressor: str | None, shard_images: int | None) -> None:
    """Rewrite a feature store with another dtype, compressor or shard size, without network and photographs.

    Rows that belong to no image any more are left out, as by `pipeline compact`. The old store stays until the new one
    is whole; running again goes on, or does nothing.

    Example: pipeline rewrite features/coco/region.zarr --compressor zstd --shard-images 512
    """
    _rewrite(paths, store, manifest_file, dtype, compressor, shard_images)


def _rewrite(paths: Paths, store: Path, manifest_file: Path | None, dtype: str | None = None,
             compressor: str | None = None, shard_images: int | None = None) -> None:
    """Rewrite a store, and print its new size and layout."""
    from pipeline.features.store import rewrite  # and with it torch

    before = FeatureStore(store)
    manifest = Manifest.load(manifest_file or paths.manifest(before.fingerprint["dataset"]))
    stays = before.content(np.arange(len(before.rows))).startswith(verify.BY_IMAGES)
    with Progress("rewrite", "image", len(manifest.images)) as bar:
        layout = rewrite.rewrite(store, manifest, dtype, compressor, shard_images, bar.update)
    if layout == before.layout:
        say(f"{store}: nothing to do", err=False)
        return
    left_out = before.layout.used().size - layout.images
    if layout.dtype != before.layout.dtype:
        said = f"features are rounded to {layout.dtype}: train again what was trained on them"
    elif stays:
        said = "heads and scores that were made from it stay valid"
    else:
        said = ("it was made before images had digests of their own, so `pipeline trace` and `pipeline train` will "
                "take its features for others: train and score again")
    say(f"{store}: {counted(layout.images, 'image')} in {counted(layout.shards, 'shard')} of {layout.dtype}, "
        f"compressor {layout.compressor}" + (f"; {left_out:,} unused rows left out" if left_out else "")
        + f"; {said}", err=False)


@click.command
@click.argument("source", type=options.FilePath(in_store=True))
@click.argument("target", type=options.FilePath(in_store=True))
def copy_command(source: Path, target: Path) -> None:
    """Copy a feature store (NAME.zarr) or a manifest (NAME.parquet) into an object store, or from there.

    Each shard is checked by its checksum. A copy that was interrupted goes on.

    Example: pipeline copy s3://bucket/coco/region.zarr features/coco/region.zarr
    """
    lazy.load(globals())
    if (remote.address(source) is None) == (remote.address(target) is None):
        raise InputError("exactly one of SOURCE and TARGET must be in an object store, such as s3://bucket/region.zarr")
    named = remote.address(target) or target
    for place in filter(remote.address, (source, target)):
        remote.require_whole(str(place), with_key=True)
    if source.suffix == ".parquet":
        Manifest.load(source).save(target)
        say(f"{named}: manifest copied", err=False)
        return
    local = source if remote.address(target) else target
    with atomic.exclusive(local), Progress("copy", "shard") as bar:
        if remote.address(target):
            done = remote_store.upload(source, target, bar.reset, bar.update)
        else:
            done = remote_store.download(source, target, bar.reset, bar.update)
    say(f"{named}: " + (f"{done} shards copied" if done else "nothing to do"), err=False)


@click.command
@click.argument("form", metavar="FORMAT", type=click.Choice(list(importers.FORMATS)))
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=options.FilePath())
@options.dataset
@click.option("--manifest", "manifest_file", type=options.FilePath(dir_okay=False), show_default="data/DATASET.parquet",
              help="The manifest's file, if it is not in its usual place.")
@click.option("--feature", type=click.Choice(list(FEATURES)), help="The feature in whose place it is used.")
@options.out("features/DATASET/FEATURE.zarr", kind="feature store")
@click.option("--as", "reported_as", metavar="NAME", show_default="FORMAT-ITEMSxVALUES",
              help="The name under which the features are reported. Tables accept a paper's name, such as "
              "butd-36-proposals, and mark any other.")
@click.option("--dtype", type=click.Choice(["float16", "float32"]), show_default="extract.dtype",
              help="How they are stored.")
@click.option("--on-error", type=click.Choice(["fail", "skip"]), show_default="extract.on_error",
              help="Whether a missing or damaged image ends the run.")
@click.option("--frames", type=click.IntRange(min=1), default=20, show_default=True,
              help="The most frames of a clip, evenly spaced; of photographs all items are kept.")
@options.if_changed
@options.with_settings_or_shipped
def import_command(paths: Paths, settings: Settings, form: str, sources: tuple[Path, ...], dataset: str,
                   manifest_file: Path | None, feature: str | None, out: Path | None, reported_as: str | None,
                   **changes: Any) -> None:
    """Import features of another code base into a store. Running again does nothing, or resumes.

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
                              extract.dtype, extract.on_error, changes["if_changed"], changes["frames"],
                              settings.manifest.left_out)
    with Progress(f"look through {form}", "image") as looking, Progress("import", "image") as bar:
        done = importers.import_features(job, looking.update, bar.reset, bar.update)
    told = (f"{store}: " + (f"{counted(done.images, 'image')} imported" if done.images else "nothing to do")
            + f", reported as {done.reported_as}")
    failed = [f"{len(done.failed):,} of {counted(len(manifest.images), 'image')} have no features, see "
              f"{store}/failures.csv; training and scores leave them out"] if done.failed else []
    say(told, *(f"  {note}" for note in (*failed, *done.notes)), err=False)


@click.command
@click.argument("what", nargs=-1, required=True, metavar="[FORMAT] STORE")
@click.option("--split", type=click.Choice(SPLITS), help="Which images; scan needs one, the others take all "
              "without it.")
@click.option("--out", type=options.OutputPath(dir_okay=True, file_okay=False), required=True, help="The folder.")
@options.manifest
@options.with_settings_or_shipped
def export_command(paths: Paths, settings: Settings, what: tuple[str, ...], split: str | None, out: Path,
                   manifest_file: Path | None) -> None:
    """Write a split of a feature store as older code bases read it. Running again does nothing.

    scan: {split}_ims.npy, {split}_ids.txt, {split}_caps.txt. SCAN calls val `dev`, and COCO's 5K test split `testall`.
    butd-tsv: {split}.tsv with bottom-up-attention's columns, or LXMERT's where the store has objects and attributes.
    folder: an .npz an image, named after its file. FORMAT may be left out for scan.

    Example: pipeline export features/coco/region.zarr --split val --out coco_precomp
    """
    form, store = ("scan", what[0]) if len(what) == 1 else what[:2]
    if form not in FORMATS or len(what) > 2:
        raise InputError(f"expected [FORMAT] STORE, a format being one of {', '.join(FORMATS)}, got "
                         f"{' '.join(what)}")
    features = FeatureStore(paths.root / store)
    manifest = Manifest.load(manifest_file or paths.manifest(features.fingerprint["dataset"]))
    with Progress("export", "image") as bar:
        done = export(form, features, manifest, split, out, bar.reset, bar.update, root=paths.root)
    say(f"{done.place}: {done.told}", *(f"  {note}" for note in done.notes), err=False)

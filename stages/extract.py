"""Extract region, grid, patch or frame features into a store."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.parts.errors import InputError, counted
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:

    from pipeline.compute import cluster
    from pipeline.features import extraction
    from pipeline.features.extraction import needs
    from pipeline.features.extractors import Runtime
    from pipeline.features.store import remote_store
    from pipeline.files import remote
    from pipeline.manifest import Manifest
    from pipeline.settings import Extract, Settings


@click.command
@options.feature
@options.dataset
@click.option("--engine", metavar="NAME", show_default="features.PRESET.FEATURE.engine",
              help="Another engine, with its default settings.")
@options.out("features/DATASET/FEATURE.zarr", "The store; s3://bucket/NAME.zarr is written shard by shard.",
             "feature store", in_store=True)
@options.image_files()
@click.option("--device", metavar="DEVICE", show_default="extract.device", callback=options.known_device,
              help="A torch device: cpu, cuda:0; or several, with a worker each: cuda:0,cuda:1 or cuda:*.")
@click.option("--backend", type=click.Choice(["auto", "torch", "openvino"]), show_default="extract.backend",
              help="The library that runs the network: openvino is several times as fast on a CPU.")
@click.option("--precision", type=click.Choice(["fp32", "bf16", "fp16"]), show_default="extract.precision",
              help="bf16 changes a CNN's features by 7 to 10 % of their norm; see docs/measured/extraction.md.")
@click.option("--batch-size", type=click.IntRange(min=1), show_default="extract.batch_size")
@click.option("--workers", type=click.IntRange(min=1), show_default="extract.workers",
              callback=options.of_this_machine, help="Processes on this machine.")
@options.scheduler
@click.option("--on-error", type=click.Choice(["fail", "skip"]), show_default="extract.on_error",
              help="Whether an image that cannot be decoded ends the run.")
@click.option("--split", type=click.Choice(["train", "val", "test"]), help="Only this split's images; the others can "
              "follow later.")
@click.option("--only", type=options.FilePath(dir_okay=False),
              help="Only the images whose ids this file lists, one a line.")
@click.option("--retry-failed", is_flag=True, help="Try the images again that failed in an earlier run.")
@click.option("--same-features", is_flag=True, help="Confirm that code which changed since the store was made makes "
              "the same features; the store is kept.")
@click.option("--dry-run", is_flag=True, help="Print what it would take: images, bytes, and time from a "
              "short probe. A photograph that was replaced since `pipeline manifest` is found by the run alone.")
@options.if_changed
@options.with_settings
def command(paths: Paths, settings: Settings, feature: str, dataset: str, out: Path | None, images: Path | None,
            scheduler: str | None, split: str | None, only: Path | None, dry_run: bool, **changes: Any) -> None:
    """Extract region, grid, patch or frame features into a store. Running again does nothing, resumes, or extracts the
    images that are new in the manifest.

    Example: pipeline extract --feature region --workers 2
    """
    options.executor(1, scheduler)  # refuses an argument that is no address
    extract = settings.extract.model_copy(update={key: value for key, value in changes.items()
                                                  if key in type(settings.extract).model_fields and value is not None})
    place_of_store = out or paths.features(dataset, feature)
    uploaded_to = place_of_store if remote.address(place_of_store) else None
    if uploaded_to:
        remote.require_reachable(uploaded_to)
    store = remote_store.working_copy(place_of_store, paths.root) if uploaded_to else place_of_store
    named = remote.address(place_of_store) or store
    request = _request(paths, settings, dataset, store, feature, extract, changes["engine"])
    if split is not None or only is not None:
        request = replace(request, only=extraction.chosen_images(Manifest.load(request.manifest), split, only))
    if uploaded_to is None and request.is_done():
        say(f"{store}: nothing to do", err=False)
        return
    if not (changes["engine"] or uploaded_to) and (name := request.imported()):
        say(f"{store}: nothing to do, it was imported and is reported as {name}; to extract {feature} in its "
            "place, remove it or name an --engine", err=False)
        return
    donor = None if out or store.exists() else request.donor()
    if scheduler is None:  # a cluster's machines have packages and files of their own
        _say_needs(settings, dataset, feature, request, extract, donor)
    manifest = Manifest.load(request.manifest)
    if not Progress.quiet:
        say(f"extract {feature}: loading the network")
    options.choose_products(settings)
    several = extraction.devices(request.runtime.device) if scheduler is None else [request.runtime.device]
    if len(several) > 1 and changes["workers"]:
        raise InputError("several devices have a worker each; leave --workers out")
    request = replace(request, runtime=replace(request.runtime, device=several[0]))
    job = replace(_job(manifest, images or manifest.images_folder, request, extract, changes),
                  uploaded_to=uploaded_to, donor=donor)
    if job.engine.runtime.precision == "bf16":
        say("warning: bf16 changes a CNN's features (EfficientNet-Lite0: by 7 to 10 % of their norm, the "
            "cosine of a cell with its fp32 falls to 0.94); see docs/measured/extraction.md")
    workers = extract.workers if len(several) == 1 else len(several)
    where = options.executor(workers, scheduler) if len(several) == 1 else partial(
        cluster.local, workers, on_start=partial(extraction.worker.take_device_of, several))
    with where() as place:
        if dry_run:
            say(*_forecast(named, extraction.estimate(job, place), 1 if scheduler else workers), err=False)
            return
        asked_for = request.as_json()
        with Progress(f"extract {feature}", manifest.noun) as bar:
            outcome = extraction.extract(job, place, bar.reset, bar.update)
    if uploaded_to is None and asked_for is not None and not outcome.failed and os.access(store, os.W_OK):
        request.finished(asked_for, job.images_folder)
    did = [f"{counted(outcome.taken, manifest.noun)} taken from {donor}"] if outcome.taken else []
    did += [f"{counted(outcome.extracted, manifest.noun)} extracted"] if outcome.extracted else []
    say(f"{named}: {', '.join(did) or ('nothing extracted' if outcome.tried else 'nothing to do')}"
        + (f", {len(outcome.failed)} failed, see {named}/failures.csv" if outcome.failed else ""), err=False)


def _job(manifest: Manifest, images: Path, request: extraction.ExtractionRequest, extract: Extract,
         changes: dict[str, Any]) -> extraction.ExtractionJob:
    """Compose the job of the extraction."""
    decoders, writers = (None if count == "auto" else count for count in (extract.decoders, extract.writers))
    return extraction.ExtractionJob(
        manifest, images, request.store, extraction.EngineSpec(request.engine, request.options, request.runtime),
        extract.batch_size, extract.shard_images, extract.compressor, extract.dtype, extract.on_error,
        changes["if_changed"], changes["retry_failed"], changes["same_features"], request.only,
        threads=extraction.Threads(decoders, writers, extract.ahead))


def _request(paths: Paths, settings: Settings, dataset: str, store: Path, feature: str,
             extract: Extract, engine: str | None) -> extraction.ExtractionRequest:
    """Compose the request: for the settings' engine, or for another one with its defaults."""
    chosen = settings.engine_of(dataset, feature)
    name = engine or chosen.engine
    return extraction.ExtractionRequest(
        paths.manifest(dataset), store, name, chosen.options if name == chosen.engine else {},
        Runtime(extract.device, extract.precision, extract.backend, settings.compute.products),
        extract.model_dump(include=extraction.CONTENT))


def _say_needs(settings: Settings, dataset: str, feature: str, request: extraction.ExtractionRequest,
               extract: Extract, donor: Path | None) -> None:
    """Print what this feature needs. If something is missing, refuse in one message for all features of the run."""
    lacking = [needs.Lack(feature, what) for what in needs.lacks(request.engine, request.options)]
    notes = []
    if request.manifest.is_file() and not (donor or request.store.exists()):
        on_cpu, images = extract.device == "cpu", len(Manifest.load(request.manifest).images)
        fast = on_cpu and extract.precision == "fp32" and extract.backend != "torch" and bool(find_spec("openvino"))
        notes = needs.costs(request.engine, request.options, images, on_cpu=on_cpu, openvino=fast,
                            workers=extract.workers, width=int(extract.dtype[-2:]) // 8, store=request.store)
    if lacking:
        others = [other for other in settings.run.features if other != feature]
        needs.refuse(lacking + needs.missing(settings, dataset, others), dataset, notes)
    for note in notes:
        say(f"note: {feature} of {dataset} takes {note}")


def _forecast(store: Path | str, estimate: extraction.Estimate, workers: int) -> list[str]:
    """An estimate as lines of text."""
    engine = estimate.engine
    lines = [f"{store}: {engine.reported_as}, at most {counted(engine.items, 'item')} of {engine.dimension} an image"
             + ("" if engine.trained else ", an untrained network"),
             f"  to extract  {estimate.images:,} of {counted(estimate.total, 'image')}, "
             f"in {counted(estimate.shards, 'shard')}",
             f"  on disk     {_bytes(estimate.size)} more, {_bytes(estimate.free)} free"
             + ("" if estimate.size < estimate.free else ": NOT ENOUGH")]
    if estimate.changed:
        lines.insert(1, f"  in the way  a store made otherwise ({estimate.changed}); an extraction refuses it, "
                     "or with --if-changed redo replaces what changed")
    if estimate.images < estimate.total:
        lines.append("  photographs by the manifest's checksums; the run also finds those that were replaced since")
    if estimate.seconds is not None:
        whole = timedelta(seconds=round(estimate.seconds / workers))
        lines.append(f"  time        {whole} by {counted(workers, 'worker')} like the one that took "
                     f"{estimate.seconds / estimate.images:.3f} s an image over "
                     f"{counted(estimate.probed, 'image')} just now")
    elif estimate.images:
        lines.append("  time        unknown: none of the images that were tried could be decoded")
    return lines


def _bytes(count: int) -> str:
    return f"{count / 1e9:,.2f} GB" if count >= 1e8 else f"{count / 1e6:,.2f} MB"

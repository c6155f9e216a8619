"""Extract features of images, clips or captions into a store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pipeline.foundation.compute import cluster
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Extract, Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.make.features import extraction
from pipeline.make.features.extraction import needs
from pipeline.make.features.extractors import Runtime
from stages.arguments import Workers
from stages.commands.extract import ExtractOptions
from stages.progress import Progress, say


def extract(paths: Paths, settings: Settings, options: ExtractOptions) -> None:
    """Extract features into a store; do nothing, resume, or extract the images that are new in the
    manifest.
    """
    dataset = options.dataset or settings.run.dataset
    changes = {
        "device": options.device,
        "backend": options.backend,
        "precision": options.precision,
        "batch_size": options.batch_size,
        "workers": options.processes,
        "on_error": options.on_error,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    how = settings.extract.model_copy(update=given)
    store = options.out or paths.features(dataset, options.feature)
    target = _target(paths, settings, dataset, store, options.feature, how, options.engine)
    if options.split is not None or options.only is not None:
        table = Manifest.load(target.manifest)
        only = extraction.chosen_images(table, options.split, options.only)
        target = replace(target, only=only)
    if target.is_made(options.images):
        say(f"{store}: nothing to do", err=False)
        return
    imported_as = None
    if not options.engine:
        imported_as = target.imported()
    if imported_as is not None:
        say(
            f"{store}: nothing to do, it was imported and is reported as {imported_as}; to extract {options.feature} in its "
            "place, remove it or name an --engine",
            err=False,
        )
        return
    if options.scheduler is None:  # a cluster's machines have packages and files of their own
        _say_needs(settings, dataset, options.feature, target, how)
    manifest = Manifest.load(target.manifest)
    if not Progress.quiet:
        say(f"extract {options.feature}: loading the network")
    several = [target.runtime.device]
    if options.scheduler is None:
        several = extraction.devices(target.runtime.device)
    if len(several) > 1 and options.processes:
        raise InputError("several devices have a worker each; leave --workers out")
    target = replace(target, runtime=replace(target.runtime, device=several[0]))
    decoders = _counted_unless_auto(how.decoders)
    writers = _counted_unless_auto(how.writers)
    engine = extraction.EngineSpec(target.engine, target.options, target.runtime)
    images_folder = options.images or manifest.images_folder
    job = extraction.ExtractionJob(
        manifest,
        images_folder,
        target.store,
        engine,
        how.batch_size,
        how.shard_images,
        how.compressor,
        how.dtype,
        how.on_error,
        options.if_changed,
        options.retry_failed,
        options.same_features,
        target.only,
        threads=extraction.Threads(decoders, writers, how.ahead),
    )
    if job.engine.runtime.precision == "bf16":
        say(
            "warning: bf16 changes a CNN's features (EfficientNet-Lite0: by 7 to 10 % of their norm, the "
            "cosine of a cell with its fp32 falls to 0.94); see docs/measured.md"
        )
    if len(several) == 1:
        count = how.workers
        on_workers = Workers(count, options.scheduler).open()
    else:
        count = len(several)
        on_start = partial(extraction.worker.take_device_of, several)
        on_workers = cluster.local(count, on_start=on_start)
    with on_workers as place:
        if options.dry_run:
            here: int | None = count
            if options.scheduler:
                assert isinstance(place, cluster.DaskExecutor)
                here = None  # nobody knows which of them share a machine
                count = place.threads
            estimate = extraction.estimate(job, place, here)
            say(*_forecast(store, job.noun, estimate, count, here is not None), err=False)
            return
        began = time.time_ns()
        with Progress(f"extract {options.feature}", job.noun) as bar:
            outcome = extraction.extract(job, place, bar.reset, bar.update)
    if not outcome.failed and os.access(store, os.W_OK):
        target.finish(job.images_folder, began)
    if outcome.extracted:
        kept = f"{outcome.kept:,} kept, " if outcome.kept else ""
        said = f"{store}: {kept}{counted(outcome.extracted, job.noun)} extracted"
    elif outcome.tried:
        said = f"{store}: nothing extracted"
    else:
        said = f"{store}: nothing to do"
    if outcome.failed:
        said += f", {len(outcome.failed)} failed, see {store}/failures.csv"
    say(said, err=False)


def _counted_unless_auto(count: int | Literal["auto"]) -> int | None:
    """A number of threads of the settings; None where the extraction is to choose it."""
    if count == "auto":
        return None
    return count


def _target(
    paths: Paths,
    settings: Settings,
    dataset: str,
    store: Path,
    feature: str,
    extract: Extract,
    engine: str | None,
) -> extraction.Target:
    """Compose the target: for the settings' engine, or for another one with its defaults."""
    chosen = settings.engine_of(dataset, feature)
    name = engine or chosen.engine
    engine_options: Mapping[str, Any] = {}
    if name == chosen.engine:
        engine_options = chosen.options
    return extraction.Target(
        paths.manifest(dataset),
        dataset,
        store,
        name,
        engine_options,
        Runtime(extract.device, extract.precision, extract.backend),
        extract.model_dump(include=extraction.CONTENT),
    )


def _say_needs(
    settings: Settings,
    dataset: str,
    feature: str,
    target: extraction.Target,
    extract: Extract,
) -> None:
    """Print what this feature needs. If something is missing, refuse in one message for all
    features of the run.
    """
    lacking = [(feature, what) for what in needs.lacks(target.engine, target.options)]
    notes = []
    if target.manifest.is_file() and not target.store.exists():
        images = Manifest.load(target.manifest).images
        notes = needs.costs(
            target.engine,
            target.options,
            len(images),
            on_cpu=extract.device == "cpu",
            openvino=_runs_on_openvino(extract),
            workers=extract.workers,
            width=int(extract.dtype[-2:]) // 8,
            store=target.store,
        )
    if lacking:
        other_features = [other for other in settings.run.features if other != feature]
        lacking += needs.missing(settings, dataset, other_features)
        needs.refuse(lacking, dataset, settings.preset_of(dataset), notes)
    for note in notes:
        say(f"note: {feature} of {dataset} takes {note}")


def _runs_on_openvino(extract: Extract) -> bool:
    """Whether networks run on OpenVINO, which is several times as fast on a CPU."""
    if extract.device != "cpu" or extract.precision != "fp32" or extract.backend == "torch":
        return False
    return bool(find_spec("openvino"))


def _forecast(
    store: Path, noun: str, estimate: extraction.Estimate, workers: int, is_here: bool
) -> list[str]:
    """An estimate as lines of text; noun: what is extracted; is_here: whether the workers have this
    machine's cores.
    """
    engine = estimate.engine
    one = f"a {noun}"
    if noun == "image":
        one = f"an {noun}"
    of_items = counted(engine.items, "item")
    made = f"{store}: {engine.reported_as}, at most {of_items} of {engine.dimension} {one}"
    if not engine.trained:
        made += ", an untrained network"
    lines = [made]
    if estimate.changed:
        lines.append(
            f"  in the way  a store made otherwise ({estimate.changed}); an extraction refuses it, "
            "or with --if-changed redo replaces what changed"
        )
    total = counted(estimate.total, noun)
    shards = counted(estimate.shards, "shard")
    lines.append(f"  to extract  {estimate.images:,} of {total}, in {shards}")
    size = needs.size_of(estimate.size)
    free = needs.size_of(estimate.free)
    on_disk = f"  on disk     {size} more, {free} free"
    if estimate.size >= estimate.free:
        on_disk += ": NOT ENOUGH"
    lines.append(on_disk)
    if estimate.images < estimate.total:
        if noun == "caption":
            lines.append("  counted by checksum")
        else:
            lines.append(f"  counted by checksum; {noun}s replaced since are found during the run")
    if estimate.seconds is not None:
        workers = min(workers, estimate.shards)
        whole = timedelta(seconds=round(estimate.seconds / workers))
        seconds = estimate.seconds / estimate.images
        probed = counted(estimate.probed, noun)
        on_cores = ""
        if is_here:
            on_cores = f" on {counted(len(os.sched_getaffinity(0)), 'core')}"
        lines.append(
            f"  time        {whole} with {counted(workers, 'worker')}{on_cores}, an estimate; measured now on "
            f"{probed}: {seconds / workers:.3f} s each, without loading the network"
        )
    elif estimate.images:
        lines.append(f"  time        unknown: none of the {noun}s that were tried could be decoded")
    return lines

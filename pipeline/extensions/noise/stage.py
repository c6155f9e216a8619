"""What `pipeline noise` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.extensions.noise import tables
from pipeline.extensions.noise.command import NoiseOptions
from pipeline.foundation.evaluation.metrics import Metrics
from pipeline.foundation.evaluation.metrics.base import joined, nested
from pipeline.foundation.evaluation.statistics import noise as statistics
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.foreign import model_of
from pipeline.judge.systems.scores.system import System
from stages import named_systems, scored_systems, terminal
from stages.arguments import Source, refuse_repeats
from stages.commands.compare import CompareOptions
from stages.compare import rank_alike
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.extensions.noise import variations


def noise(paths: Paths, settings: Settings, options: NoiseOptions) -> None:
    """Measure how far repeated runs of one system differ."""
    if options.make:
        options = _made(paths, settings, options, options.make)
    dataset = options.dataset or settings.run.dataset
    runs = _named(paths, settings, options.runs, dataset)
    named_systems.refuse_stale(paths, settings, runs, dataset)
    asked = CompareOptions(
        systems=options.runs,
        dataset=options.dataset,
        columns=options.columns,
        truth=options.truth,
        rules=options.rules,
        ties=options.ties,
    )
    alike = rank_alike(paths, settings, [runs], asked)
    say(*(f"note: {note}" for note in alike.notes))
    names = [pool.name for pool in alike.groups[0]]
    pools = []
    for view, ranked in zip(alike.views, alike.ranked, strict=True):
        pools.append(_measured(names, ranked[0]) | view.label)
    if options.output == "json":
        terminal.echo(json.dumps(pools, indent=1))
    else:
        terminal.echo(tables.WRITERS[options.output](pools))


def _made(paths: Paths, settings: Settings, options: NoiseOptions, name: str) -> NoiseOptions:
    """Compute the runs of an encoder or head, and name their files as the runs that are
    measured.
    """
    model = model_of(name, paths.root)
    if model is None:
        head = _head(paths, settings, options, name)
        from pipeline.extensions.noise import variations  # and with it torch

        compute, varied = _of_head(paths, settings, options, head)
    else:
        from pipeline.extensions.noise import variations
        from pipeline.make import dual_encoders

        dual_encoders.check(model)
        compute = variations.of_encoder(model, options.columns)
        varied = list(variations.VARIATIONS)
    folder = options.out or paths.root / "results" / "noise"
    with Progress("noise", "run", len(varied)) as bar:
        files = variations.make(compute, varied, folder, bar.reach)
    say(f"{folder}: {counted(len(files), 'run')}", err=True)
    measured = replace(options.columns, images=None, captions=None, manifest=None, split=None)
    runs = tuple(str(file.absolute()) for file in files)
    return replace(options, make=None, out=None, runs=runs, columns=measured)


def _head(paths: Paths, settings: Settings, options: NoiseOptions, name: str) -> Path:
    """The folder of the trained head that --make names."""
    dataset = options.dataset or settings.run.dataset
    source = Source(name, paths.root)
    if source.path is None:
        scored_systems.refuse_without_vectors(paths, settings, dataset, name, "compute")
        folder: Path | None = paths.head(dataset, name)
    else:
        folder = source.head
    if folder is None or not folder.is_dir():
        raise InputError(
            f"{name}: is no encoder and no trained head; --make takes KIND:PLACE, such as clip:FOLDER, "
            "or a head's name, such as vse2ad-region-bigru-s0"
        )
    columns = options.columns
    if columns.images or columns.captions or columns.manifest or columns.split:
        raise InputError(
            f"{name}: a head reads the stored features of its data set; leave out --images, --captions, "
            "--manifest and --split, and name another data set by --dataset"
        )
    return folder


def _of_head(
    paths: Paths, settings: Settings, options: NoiseOptions, folder: Path
) -> tuple[variations.Compute, list[variations.Variation]]:
    """How a head's runs are computed, and which it has."""
    from pipeline.extensions.noise import variations
    from pipeline.make import training

    dataset = options.dataset or settings.run.dataset
    device = settings.training_of(dataset).device
    use = training.HeadUse(paths, folder, dataset, None, device)
    opened = training.OpenHead.open(use)
    opened.head.require_embeddings()
    varied = list(variations.VARIATIONS)
    if not variations.has_kernels(opened.head):
        varied = [variation for variation in varied if not variation.in_steps]
        say(
            f"note: {folder.name}: no runs with another attention kernel; its text encoder has no attention"
        )
    split = opened.split(settings.score.split)
    opened.source.check(split.store_rows)
    return variations.of_head(opened, split), varied


def _named(
    paths: Paths, settings: Settings, texts: Sequence[str], dataset: str
) -> list[named_systems.Place]:
    """The scores of each run, checked to be two or more, and of one system as far as records
    tell.
    """
    runs = []
    for text in named_systems.expanded(paths.root, texts):
        _, places = named_systems.named(paths, settings, text, dataset)
        runs += places
    refuse_repeats(root / text for text, root in runs)
    if len(runs) < 2:
        raise InputError(
            f"{texts[0]}: is one run, and noise is the difference of two or more; name another run of the same system"
        )
    stores = [root / text for text, root in runs if layout.is_store(root / text)]
    if len(stores) > 1:
        from pipeline.run.provenance import checks  # only where there are several

        checks.refuse_other_systems([System.open_either(store) for store in stores])
    return runs


def _measured(names: Sequence[str], runs: Sequence[Metrics]) -> dict[str, Any]:
    """The noise of one pool as plain JSON values."""
    numbers = {}
    for name, spread in statistics.spreads(runs).items():
        numbers[name] = {
            "mean": spread.mean,
            "gap": spread.gap,
            "spread": spread.deviation,
            "interval": spread.interval,
            "of_two": spread.of_two,
            "by_image": spread.by_image,
        }
    moved: dict[str, Any] = {}
    for way, of_way in statistics.moved(runs).items():
        moved[way] = {"moved": asdict(of_way)}
    return {
        "runs": [*names],
        "split": None,
        "language": None,
        "images": runs[0].images,
        "captions": runs[0].captions,
        "protocol": runs[0].protocol,
        "ties": runs[0].ties,
        "freedom": len(runs) - 1,
        "i2t": None,
        "t2i": None,
        **joined(nested(numbers), moved),
    }

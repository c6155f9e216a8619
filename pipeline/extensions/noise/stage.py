"""What `pipeline noise` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

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
from stages import named_systems, terminal
from stages.arguments import refuse_repeats
from stages.commands.compare import CompareOptions
from stages.compare import rank_alike
from stages.progress import Progress, say


def noise(paths: Paths, settings: Settings, options: NoiseOptions) -> None:
    """Measure how far repeated runs of one system differ."""
    if options.make:
        options = _made(paths, options, options.make)
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


def _made(paths: Paths, options: NoiseOptions, name: str) -> NoiseOptions:
    """Compute the runs of an encoder, and name their files as the runs that are measured."""
    model = model_of(name, paths.root)
    if model is None:
        raise InputError(f"{name}: is no encoder; --make takes KIND:PLACE, such as clip:FOLDER")
    from pipeline.extensions.noise import variations  # and with it torch
    from pipeline.make import dual_encoders

    dual_encoders.check(model)
    folder = options.out or paths.root / "results" / "noise"
    with Progress("noise", "run", len(variations.VARIATIONS)) as bar:
        files = variations.make(model, options.columns, folder, bar.reach)
    say(f"{folder}: {counted(len(files), 'run')}", err=True)
    measured = replace(options.columns, images=None, captions=None, manifest=None, split=None)
    runs = tuple(str(file.absolute()) for file in files)
    return replace(options, make=None, out=None, runs=runs, columns=measured)


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

"""Follow a number back to the photographs that it rests on."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path

from pipeline.foundation.files import regular
from pipeline.foundation.files.compared import MATCHES, Step
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.layout import holds_scores, is_store
from pipeline.run.provenance.of_features import BUILT_BY
from pipeline.run.provenance.results import Result
from pipeline.run.provenance.trace import Traced, image_of, query, trace
from stages import terminal
from stages.commands.trace import TraceOptions
from stages.progress import Progress, say

# How many digits of a digest are shown, and what is a digest.
DIGEST = 12
HEXADECIMAL = re.compile("[0-9a-f]{32,}")
# How many images of each head are embedded again, unless a number is given; with torch alone.
EMBEDDED = 32


def trace_result(paths: Paths, settings: Settings, options: TraceOptions) -> None:
    """Follow RESULT (results/metrics.json with a SYSTEM in it, or a store) back to its
    photographs.
    """
    if options.image is not None and options.caption is not None:
        raise InputError("--image and --caption name one thing; give one")
    scored = _read(paths, options.result, options.name)
    image = options.image
    if options.caption is not None:
        manifest = Manifest.load(paths.manifest(scored.made_from.dataset))
        image = image_of(manifest, options.caption)
    embed = options.embed
    if embed is None:
        embed = EMBEDDED
        if extras.lacks("training"):
            embed = 0
    steps = []
    with Progress("trace", "step") as bar:
        for step in trace(scored, paths, settings, embed, image):
            steps.append(step)
            bar.update()
    if options.as_json:
        plain = []
        for step in steps:
            plain.append({**vars(step), "path": str(step.path), "verdict": step.verdict})
        terminal.echo(json.dumps(plain, indent=1))
    else:
        say(*_text(steps), err=False, colour=terminal.judged)
    if image is not None and not options.as_json and holds_scores(scored.path):
        say(query(scored, image, options.caption), err=False)
    lacking = extras.lacks("features", *BUILT_BY)
    if lacking and any(member.given is None for member in scored.made_from.members):
        say(
            f"Not compared without {', '.join(lacking)}: vectors embedded again, and the weights of feature "
            f"networks; run: {extras.line('features,training')}"
        )
    wrong = [step for step in steps if step.verdict != MATCHES]
    if wrong:
        first = wrong[0]
        raise InputError(
            f"{len(wrong)} of {len(steps)} steps do not match, the first: {first.path}: "
            f"{first.what} {first.verdict}"
        )
    if not options.as_json:
        say(f"{len(steps)} steps, all match", err=False, colour=terminal.judged)


def _read(paths: Paths, path: Path, name: str | None) -> Traced:
    if is_store(path):
        if name is not None:
            raise InputError(f"{path}: is one system's store; leave out {name}")
        return Traced.of_store(path)
    with (
        refusing(
            (FileNotFoundError, IsADirectoryError),
            f"{path}: no result there; make results/metrics.json with `pipeline evaluate`",
        ),
        refusing(
            (ValueError, KeyError, TypeError, AttributeError),
            f"{path}: neither what `pipeline evaluate` writes nor a similarity store",
        ),
    ):
        metrics = from_json(regular.text(path))
        if {"accuracies", "questions"} <= metrics.keys():
            raise InputError(
                f"{path}: is written by `pipeline lab hard-negatives`, which keeps no scores to compare; "
                "run it again, and trace a store of the same system"
            )
        if name is None or name not in metrics:
            raise InputError(f"{path}: name one of its systems: {', '.join(metrics)}")
        return Traced.of_result(Result.read(metrics[name], metrics), path, paths)


def _text(steps: list[Step]) -> list[str]:
    lines = []
    width = max(len(step.what) for step in steps)
    for path, group in groupby(steps, key=lambda step: step.path):
        lines.append(str(path))
        for step in group:
            recorded = _short(step.recorded or "")
            what = step.what.ljust(width)
            line = f"    {what}  {recorded:<{DIGEST}}  {step.verdict}"
            if step.verdict == "differs":
                line += f": {_short(step.found or '')}"
            lines.append(line)
    return lines


def _short(value: str) -> str:
    """A value as it is, or the first digits of a digest."""
    if HEXADECIMAL.fullmatch(value):
        return value[:DIGEST]
    return value

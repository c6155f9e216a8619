"""Follow a number back to the photographs that it rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import groupby
from pathlib import Path
from typing import Any

from pipeline.foundation.files import regular
from pipeline.foundation.files.compared import MATCHES, Step
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.layout import holds_scores, is_store
from pipeline.run.provenance import summary
from pipeline.run.provenance.of_features import BUILT_BY
from pipeline.run.provenance.results import Result
from pipeline.run.provenance.trace import Traced, first_cause, image_of, query, trace
from stages import named_systems, terminal
from stages.commands.trace import TraceOptions
from stages.progress import Progress, say

# How many digits of a digest are shown, and what is a digest.
DIGEST = 12
HEXADECIMAL = re.compile("[0-9a-f]{32,}")
# How many images of each head are embedded again, unless a number is given; with torch alone.
EMBEDDED = 32


def trace_result(paths: Paths, settings: Settings, options: TraceOptions) -> None:
    """Follow RESULT (a system's name, results/metrics.json with a SYSTEM in it, or a store) back to
    its photographs.
    """
    if options.image is not None and options.caption is not None:
        raise InputError("--image and --caption name one thing; give one")
    scored = _opened(paths, settings, options)
    image = options.image
    if options.caption is not None:
        manifest = Manifest.load(paths.manifest(scored.made_from.dataset))
        image = image_of(manifest, options.caption, str(scored.made_from.split))
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
    wrong = [step for step in steps if step.verdict != MATCHES]
    if options.as_json:
        _print_json(steps)
    else:
        _print_text(scored, paths, steps, image, options)
    if wrong:
        cause = first_cause(wrong)
        said = "step does not match:"
        if len(wrong) > 1:
            said = f"of {len(steps)} steps do not match; look first at"
        raise InputError(f"{len(wrong)} {said} {cause.path}: {cause.what} {cause.verdict}")


def _print_json(steps: list[Step]) -> None:
    plain = []
    for step in steps:
        plain.append({**vars(step), "path": str(step.path), "verdict": step.verdict})
    terminal.echo(json.dumps(plain, indent=1))


def _print_text(
    scored: Traced, paths: Paths, steps: list[Step], image: int | None, options: TraceOptions
) -> None:
    """Print what the number rests on, then the steps that do not match, or all of them."""
    say(*summary.lines(scored, paths, image), err=False)
    wrong = [step for step in steps if step.verdict != MATCHES]
    shown = wrong
    if options.as_verbose:
        shown = steps
    if shown:
        say(*_text(shown), err=False, colour=terminal.judged)
    if image is not None and holds_scores(scored.path):
        say(query(scored, image, options.caption), err=False)
    lacking = extras.lacks("features", *BUILT_BY)
    if lacking and any(member.given is None for member in scored.made_from.members):
        say(
            f"Not compared without {', '.join(lacking)}: vectors embedded again, and the weights of feature "
            f"networks; run: {extras.line('features,training')}"
        )
    if not wrong:
        said = f"{len(steps)} steps, all match"
        if not options.as_verbose:
            said += "; -v prints each digest"
        say(said, err=False, colour=terminal.judged)


def _opened(paths: Paths, settings: Settings, options: TraceOptions) -> Traced:
    """What is traced: a store, an entry of a file of results, or what a system's name means."""
    path = options.result
    name = options.name
    is_name = name is None and path.parent == paths.root and not path.exists()
    if is_name:
        return _named(paths, settings, path.name)
    if is_store(path):
        if name is not None:
            raise InputError(f"{path}: is one system's store; leave out {name}")
        return Traced.of_store(path)
    if path.is_dir():
        raise InputError(f"{path}: is no store; name a system, its store or a file of results")
    entries = _entries(path)
    named = []
    if name is not None:
        named = _of_name(entries, name)
    if len(named) != 1:
        raise InputError(f"{path}: name one of its systems: {', '.join(named or entries)}")
    return _of_entry(entries, named[0], path, paths)


def _named(paths: Paths, settings: Settings, name: str) -> Traced:
    """A system by its name alone: its entry in results/metrics.json or results/recorded.json, else
    its store.
    """
    for file in (paths.metrics, paths.recorded):
        if not file.exists():
            continue
        entries = _entries(file)
        named = _of_name(entries, name)
        if len(named) > 1:
            raise InputError(f"{name}: means several of {file}; name one: {', '.join(named)}")
        if named:
            return _of_entry(entries, named[0], file, paths)
    if ":" not in name:
        vectors = paths.encoded(settings.run.dataset, name)
        if is_store(vectors):
            return Traced.of_store(vectors)
    _, places = named_systems.named(paths, settings, name)
    stores = [root / text for text, root in places]
    if len(stores) > 1:
        seeds = [store.stem for store in stores]
        raise InputError(f"{name}: has several seeds; name one: {', '.join(seeds)}")
    if not is_store(stores[0]):
        raise InputError(
            f"{name}: records nothing to trace; name a system, a store, or a file of results with a "
            "system in it"
        )
    return Traced.of_store(stores[0])


def _entries(path: Path) -> dict[str, Any]:
    """The entries of a file of results."""
    with (
        refusing(
            FileNotFoundError,
            f"{path}: no result there; make results/metrics.json with `pipeline evaluate`",
        ),
        _refusing_others(path),
    ):
        entries: dict[str, Any] = from_json(regular.text(path))
        if {"accuracies", "questions"} <= entries.keys():
            raise InputError(
                f"{path}: is written by `pipeline lab hard-negatives`, which keeps no scores to compare; "
                "run it again, and trace a store of the same system"
            )
    return entries


def _of_entry(entries: Mapping[str, Any], name: str, path: Path, paths: Paths) -> Traced:
    with _refusing_others(path):
        return Traced.of_result(Result.read(entries[name], entries), path, paths)


def _refusing_others(path: Path) -> AbstractContextManager[None]:
    """Refuse a file that is no file of results."""
    return refusing(
        (ValueError, KeyError, TypeError, AttributeError),
        f"{path}: neither what `pipeline evaluate` writes nor a similarity store",
    )


def _of_name(entries: Iterable[str], name: str) -> list[str]:
    """The entries that a name means: the one called so, else its seeds, and what it was measured
    on.
    """
    names = list(entries)
    if name in names:
        return [name]
    seed_or_pool = re.compile(rf"{re.escape(name)}(-s\d+)?( on .+)?")
    return [entry for entry in names if seed_or_pool.fullmatch(entry)]


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

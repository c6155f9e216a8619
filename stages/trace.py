"""Follow a number back to the photographs that it rests on."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError, refusing
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.files.compared import MATCHES, Step
    from pipeline.manifest import Manifest
    from pipeline.provenance.result import Result
    from pipeline.provenance.trace import image_of, query, trace
    from pipeline.settings import Settings
    from pipeline.systems.scores.layout import holds_scores, is_store
    from pipeline.systems.scores.system import System


# How many digits of a digest are shown.
DIGEST = 12


@click.command
@click.argument("result", type=options.FilePath())
@click.argument("name", metavar="[SYSTEM]", required=False, shell_complete=options.names("scored"))
@click.option("--image", type=int, metavar="ID", help="Read the shards and the photograph of this image alone.")
@click.option("--caption", type=int, metavar="ID", help="The same for the image of this caption.")
@click.option("--embed", type=click.IntRange(min=0), default=32, show_default=True, metavar="IMAGES",
              help="How many images of each head are embedded again with their captions, chosen at random each time; 0 "
              "for none.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, result: Path, name: str | None, image: int | None,
            caption: int | None, embed: int, as_json: bool) -> None:
    """Follow RESULT (results/metrics.json with a SYSTEM in it, or a store) back to its photographs.

    A store holds similarities, or embeddings by `pipeline embed`.

    Every recorded digest is compared with the files as they are now, and values that can be computed again are computed
    again. With --image or --caption, only that query's photograph and the shards with its features are read; without,
    all of them. The exit code is 2 unless all match.

    Example: pipeline trace results/metrics.json vse2ad-RGP-bigru-s0 --caption 2410
    """
    if image is not None and caption is not None:
        raise InputError("--image and --caption name one thing; give one")
    found = _read(paths, result, name)
    if caption is not None:
        image = image_of(Manifest.load(paths.manifest(found.made_from["dataset"])), caption)
    steps = []
    with Progress("trace", "step") as bar:
        for step in trace(found, paths, settings, embed, image):
            steps.append(step)
            bar.update()
    plain = [{**vars(step), "path": str(step.path), "verdict": step.verdict} for step in steps]
    if as_json:
        click.echo(json.dumps(plain, indent=1))
    else:
        say(*_text(steps), err=False)
    if image is not None and not as_json and holds_scores(found.path):
        say(query(found, image, caption), err=False)
    wrong = [step for step in steps if step.verdict != MATCHES]
    if wrong:
        raise InputError(f"{len(wrong)} of {len(steps)} steps do not match, the first: {wrong[0].path}: "
                         f"{wrong[0].what} {wrong[0].verdict}")


def _read(paths: Paths, path: Path, name: str | None) -> Result:
    """A system of metrics.json, or a store of similarities or embeddings."""
    if is_store(path):
        if name is not None:
            raise InputError(f"{path}: is one system's store; leave out {name}")
        return Result(path, System.open_either(path).made_from)
    with (refusing((FileNotFoundError, IsADirectoryError),
                   f"{path}: no result there; make results/metrics.json with `pipeline evaluate`"),
          refusing((ValueError, KeyError, TypeError, AttributeError),
                   f"{path}: neither what `pipeline evaluate` writes nor a similarity store")):
        metrics = from_json(path.read_text(encoding="utf-8"))
        if {"accuracies", "questions"} <= metrics.keys():
            raise InputError(f"{path}: is written by `pipeline hard-negatives`, which keeps no scores to compare; run "
                             "it again, and trace a store of the same system")
        if name is None or name not in metrics:
            raise InputError(f"{path}: name one of its systems: {', '.join(metrics)}")
        made_from = metrics[name]["made_from"]
        store = paths.similarity(made_from["dataset"], name, made_from["split"])
        return Result(store, made_from, path, metrics[name])


def _text(steps: list[Step]) -> list[str]:
    lines = []
    width = max(len(step.what) for step in steps)
    for path, group in groupby(steps, key=lambda step: step.path):
        lines.append(str(path))
        for step in group:
            recorded, found = _short(step.recorded or ""), _short(step.found or "")
            lines.append(f"    {step.what:<{width}}  {recorded:<{DIGEST}}  {step.verdict}"
                         + (f": {found}" if step.verdict == "differs" else ""))
    return lines


def _short(digest: str) -> str:
    """A digest's first digits; words stay whole."""
    return digest if " " in digest else digest[:DIGEST]


"""Find images and captions that data sets or splits share."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:
    from pipeline.files import atomic
    from pipeline.manifest import SPLITS, Manifest
    from pipeline.settings import Settings
    from pipeline.studies import audit
    from pipeline.studies.audit import Collection, Findings, Fingerprints


@click.command
@click.argument("one", metavar="A", shell_complete=options.names("dataset"))
@click.argument("other", metavar="[B]", required=False, shell_complete=options.names("dataset"))
@click.option("--alike", type=click.IntRange(0, 128), default=16, show_default=True, metavar="BITS",
              help="Images look alike if they differ in at most so many of 256 bits.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.html", show_default="results/audit-A-B.html",
              help="The report; a .json file of the same name is written beside it.")
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, one: str, other: str | None, alike: int, out: Path | None) -> None:
    """Find images and captions that data sets A and B share, or the splits of A alone.

    A data set is named as its manifest; NAME:SPLIT is one split of it. One photograph is found by Flickr's or COCO's
    number in the file's name, and by the file's contents. Pairs that look alike are shown side by side, for you to
    judge; so are images of one number that look different. Equal captions are counted.

    Exit code 1: A and B share photographs, or two splits of A do. 0: they do not. 2: something could not be read or
    written.

    Example: pipeline audit flickr8k:test multi30k:train
    """
    first = _collection(paths, one)
    second = _collection(paths, other) if other else first
    if other and _overlap(one, other):
        raise InputError(f"{one} and {other} hold the same images by definition; name two splits, or "
                         f"{one.partition(':')[0]} alone for its own splits")
    prints = {id(each): _fingerprints(each) for each in (first, second)}
    found = audit.compare(first, second, (prints[id(first)], prints[id(second)]), alike)
    name = "-".join(each.replace(":", "-") for each in (one, other) if each)
    path = out or paths.root / "results" / f"audit-{name}.html"
    if path.suffix == ".json":
        raise InputError(f"{path}: expected a name that ends in .html; the .json file is written beside it")
    _write(path, found)
    for line in found.lines():
        click.echo(line)
    click.echo(f"{path}: pairs side by side")
    sys.exit(1 if found.leaks else 0)


def _write(path: Path, found: Findings) -> None:
    """Write the page and the JSON. Raises InputError where they cannot be written: exit code 1 says something else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(path, found.page())
        atomic.write_text(path.with_suffix(".json"), json.dumps(found.as_json(), indent=1, ensure_ascii=False))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; choose another --out") from None


def _overlap(one: str, other: str) -> bool:
    """Whether two names are of one data set, and one of them is all of it, or both are the same split."""
    first, second = one.partition(":"), other.partition(":")
    return first[0] == second[0] and (not first[2] or not second[2] or first[2] == second[2])


def _collection(paths: Paths, name: str) -> Collection:
    dataset, colon, split = name.partition(":")
    if colon and split not in SPLITS:
        raise InputError(f"{name}: expected a split of {', '.join(SPLITS)} after the colon, got {split!r}")
    return audit.Collection.of(Manifest.load(paths.manifest(dataset)), split or None)


def _fingerprints(collection: Collection) -> Fingerprints:
    with Progress(f"read {collection.name}", "image", len(collection.files)) as bar:
        return audit.take(collection, os.cpu_count() or 1, bar.reach)

"""Follow a figure back to the features that it rests on."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InputError
from stages import options
from stages.layout import Layout

if TYPE_CHECKING:
    from tqdm import tqdm

    from pipeline.extractors.rebuild import network_of
    from pipeline.manifest import Manifest
    from pipeline.provenance.trace import Result, Step, image_of, query, trace
    from pipeline.scores.similarity_store import SimilarityStore
    from pipeline.settings import Settings


@click.command
@click.argument("result", type=click.Path(path_type=Path))
@click.argument("name", metavar="[SYSTEM]", required=False)
@click.option("--image", type=int, metavar="ID", help="Down to the shards that hold this image's features.")
@click.option("--caption", type=int, metavar="ID", help="The same for the image of this caption.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.with_settings
def command(layout: Layout, settings: Settings, result: Path, name: str | None, image: int | None,
            caption: int | None, as_json: bool) -> None:
    """Follow RESULT (results/metrics.json with a SYSTEM in it, or a similarity store) back to its features.

    Numbers are measured again; checkpoints, weights, shards and the manifest are compared with the digests that were
    recorded. The exit code is 2 unless all match.

    Example: pipeline trace results/metrics.json vse2ad-RGP-bigru-s0 --caption 2410
    """
    if image is not None and caption is not None:
        raise InputError("--image and --caption name one thing; give one")
    found = _read(layout, result, name)
    if caption is not None:
        image = image_of(Manifest.load(layout.manifest(found.made_from["dataset"])), caption)
    steps = []
    with tqdm(unit="step", desc="trace", leave=False) as bar:
        for step in trace(found, layout, lambda store: network_of(store).weights, image,
                          settings.evaluate.block_megabytes):
            steps.append(step)
            bar.update()
    click.echo(json.dumps([_plain(step) for step in steps], indent=1) if as_json else _text(steps))
    if image is None and not as_json:
        click.echo("name a query with --image or --caption to go on to the shards that hold it")
    elif image is not None and not as_json and found.path.exists():
        click.echo(query(found, image, caption))
    wrong = [step for step in steps if step.verdict != "matches"]
    if wrong:
        raise InputError(f"{len(wrong)} of {len(steps)} steps do not match, the first: {wrong[0].path}: "
                         f"{wrong[0].what} {wrong[0].verdict}")


def _read(layout: Layout, path: Path, name: str | None) -> Result:
    """A system of metrics.json, or a similarity store."""
    if (path / "similarity").is_dir():
        if name is not None:
            raise InputError(f"{path}: is one system's store; leave out {name}")
        return Result(path, SimilarityStore.open(path).made_from, {})
    try:
        metrics = json.loads(path.read_text(encoding="utf-8"))
        if name is None or name not in metrics:
            raise InputError(f"{path}: name one of its systems: {', '.join(metrics)}")
        made_from = metrics[name]["made_from"]
        numbers = {protocol: each for protocol, each in metrics[name].items() if protocol != "made_from"}
        return Result(layout.similarity(made_from["dataset"], name), made_from, numbers)
    except (FileNotFoundError, IsADirectoryError):
        raise InputError(f"{path}: no result there; make results/metrics.json with `pipeline evaluate`") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: neither what `pipeline evaluate` writes nor a similarity store") from None


def _text(steps: list[Step]) -> str:
    lines = []
    width = max(len(step.what) for step in steps)
    for path, group in groupby(steps, key=lambda step: step.path):
        lines.append(str(path))
        for step in group:
            recorded, found = _short(step.recorded), _short(step.found or "")
            lines.append(f"    {step.what:<{width}}  {recorded:<12}  {step.verdict}"
                         + (f": {found}" if step.verdict == "differs" else ""))
    return "\n".join(lines)


def _short(digest: str) -> str:
    """A digest's first twelve figures; words whole."""
    return digest if " " in digest else digest[:12]


def _plain(step: Step) -> dict[str, Any]:
    return {"path": str(step.path), "what": step.what, "recorded": step.recorded, "found": step.found,
            "verdict": step.verdict}

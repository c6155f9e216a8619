"""Commands for the start of a project: its settings, the built-in samples, the machine."""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.parts import lazy
from pipeline.parts.errors import InputError, look_up
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline import manifest
    from pipeline.features.project import new, own_data
    from pipeline.files import gallery_file, parsing
    from pipeline.files.left_out import LeftOut
    from pipeline.manifest import sample
    from pipeline.settings import SHIPPED, Settings, load
    from pipeline.settings.paths import Paths


@click.command
@click.argument("folder", metavar="[DIR]", type=options.FilePath(), default=Path())
@click.option("--images", type=options.FilePath(), help="Your own photographs: their folder.")
@click.option("--videos", type=options.FilePath(), help="Or your own clips: the folder of the video files.")
@click.option("--captions", type=options.FilePath(),
              help="Their captions: a table with columns image,caption[,split] or video,caption[,split][,start,end], "
              "or any other format that `pipeline manifest` reads.")
@click.option("--format", "form", metavar="NAME", show_default="as the file looks", help="The format of the captions.")
@click.option("--name", metavar="NAME", callback=options.called, show_default="after DIR", help="The data set's name.")
def init_command(folder: Path, images: Path | None, videos: Path | None, captions: Path | None, form: str | None,
                 name: str | None) -> None:
    """Write params.yaml, dvc.yaml and what `dvc repro` needs into DIR (default: here). Nothing is overwritten.

    With --images (or --videos) and --captions the settings are for your own photographs (or clips): features that can
    be extracted here, and a head and a training schedule chosen by the number of images. The files stay where they are.

    Example: pipeline init trial

    Example: pipeline init holidays --images photos --captions captions.csv
    """
    lazy.load(globals())
    if images is not None and videos is not None:
        raise InputError("give --images or --videos")
    files = videos if images is None else images
    if files is None and captions is None:
        if form or name:
            raise InputError("--format and --name need --images, or --videos, and --captions")
        written = new.write(folder)
    elif files is None or captions is None:
        raise InputError("--images or --videos needs --captions, and --captions one of them")
    else:
        if name is None:  # after the folder
            letters = unicodedata.normalize("NFKD", folder.absolute().name)
            bare = "".join(each for each in letters if not unicodedata.combining(each))
            name = re.sub(r"[^A-Za-z0-9]+", "_", bare).strip("_") or "own"
        written = _own(folder, files, captions, form, name, "video" if videos else "image")
    say(f"{folder}: {', '.join(written)}", err=False)
    there = f"./{folder}" if str(folder).startswith("-") else str(folder)
    click.echo(f"Next: {'' if folder == Path() else f'cd {shlex.quote(there)} && '}dvc repro")
    if find_spec("dvc") is None:
        say("DVC is not installed: pip install 'vse-pipeline[sample]' brings it")


def _own(folder: Path, images: Path, captions: Path, form: str | None, name: str, kind: gallery_file.Kind) -> list[str]:
    """Write a project for a user's own photographs or clips, and say what was chosen."""
    noun = "clips" if kind == "video" else "images"
    if name in manifest.datasets(folder):
        raise InputError(f"there is a data set {name!r} already; choose another --name")
    if folder.resolve().is_relative_to(images.resolve()):
        raise InputError(f"{folder}: lies in the folder of {noun} {images}, so what is written there would be taken "
                         f"for {noun}; choose a folder beside it")
    left_out = LeftOut()
    data = own_data.choose(name, images, captions, form, kind, left_out,
                           lambda line: say(line, err=line.startswith("note: ")))
    say(*(f"note: {line}; `pipeline manifest` lists it" for line in left_out.lines()))
    written = new.write(folder, *own_data.files(data, images, captions, form))
    counts = ", ".join(f"{split} {count}" for split, count in data.images.items())
    say(f"{name}: {len(data.table.images)} {noun} ({counts}), {len(data.table.table)} captions"
        + ("; the captions name no splits, so these were drawn" if data.drawn else ""), err=False)
    for feature, why in data.left_out.items():
        say(f"{feature}: left out, {why}", err=False)
    chosen = data.training
    last = chosen["epochs"] - chosen["decay_epoch"]
    say(f"{', '.join(data.features)}: d = {chosen['dimension']}, {chosen['epochs']} epochs of batches of "
        f"{chosen['batch_size']}, the last {last} at a tenth of the learning rate", err=False)
    return written


def _keys(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Shell completion for KEY: the keys of the section before the last dot."""
    lazy.load(globals())
    given, root = context.params.get("params"), context.params.get("root") or Path()
    try:
        part: Any = load(given or options.settings_file(root) or new.path("params.yaml")).model_dump(
            mode="json", by_alias=True)
    except InputError:  # which the command says
        return []
    *above, begun = typed.split(".")
    for name in above:
        part = part.get(name) if isinstance(part, dict) else None
    return [".".join([*above, key]) for key in part if key.startswith(begun)] if isinstance(part, dict) else []


@click.command
@click.argument("key", required=False, shell_complete=_keys)
@click.option("--names", is_flag=True, help="Print only the names of KEY's parts.")
@options.with_settings_or_shipped
def settings_command(paths: Paths, settings: Settings, key: str | None, names: bool) -> None:
    """Print the effective settings: params.yaml over the shipped ones, recipes and schedules merged with their bases.

    KEY is a part of them, such as training or recipes.vse2ad-gpo.

    Example: pipeline settings recipes.vse2ad-gpo
    """
    part: Any = settings.model_dump(mode="json", by_alias=True)
    if key is None:
        click.echo(f"# What each means: {SHIPPED}")
    for name in key.split(".") if key else ():
        part = look_up("setting", name, part if isinstance(part, dict) else {})
    listed = "".join(f"{name}\n" for name in part) if names and isinstance(part, dict) else parsing.to_yaml(part)
    click.echo(listed.removesuffix("...\n"), nl=False)


@click.command
@click.option("--video", is_flag=True, help="The data set sample_video: moving shots of two seconds in H.264, with "
              "captions about the movement too.")
@options.with_settings_or_shipped
def sample_command(paths: Paths, settings: Settings, video: bool) -> None:
    """Render the built-in sample corpus: scenes with five captions each, the same bytes each time.

    Example: pipeline sample -S sample.images=60
    """
    name, unit, render = ("sample_video", "clip", sample.render_shots) if video else ("sample", "image", sample.render)
    count, size, seed = (settings.sample_video if video else settings.sample).model_dump().values()
    folder = paths.root / "data" / name
    with Progress(name, unit, count) as bar:
        render(folder, count, size, seed, progress=bar.reach, processes=len(os.sched_getaffinity(0)))
    say(f"{count} {unit}s and their captions in {folder}", err=False)


@click.command
def machine_command() -> None:
    """Show how this machine multiplies float32 matrices, and whether bfloat16 is faster. It is measured once.

    All commands use these measurements, so that all compute the same bits.

    Example: pipeline machine
    """
    import torch

    from pipeline.compute import half, machine, measured, products

    found, slower = products.probe(), half.slowdown("bf16")
    chosen = {"onednn": "by oneDNN", "default": "by torch's own choice"}[found.kind]
    said = (f"; oneDNN is {found.faster:.2f} times as fast with a relative error of {found.error:.1e}, and taken from "
            f"{products.FASTER} times as fast and an error below {products.LARGEST_ERROR:.0e}" if found.faster else "")
    say(f"{machine.processor()}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}, "
        f"torch {torch.__version__}", err=False)
    say(f"  float32 products: {chosen}{said}", err=False)
    say(f"  bfloat16: a product takes {slower:.2g} times as long as in float32"
        + (", so --precision bf16 is refused" if slower > 1 else ""), err=False)
    say(f"  kept in {measured.kept_in()}; delete it to have all of it measured again", err=False)

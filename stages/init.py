"""Write the settings and stages of a new project."""

from __future__ import annotations

import re
import shlex
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.parts import lazy
from pipeline.parts.errors import InputError
from stages.options import FilePath, called

if TYPE_CHECKING:
    from pipeline import manifest
    from pipeline.features.project import new, own_data
    from pipeline.files.gallery_file import Kind


@click.command
@click.argument("folder", metavar="[DIR]", type=FilePath(), default=Path())
@click.option("--images", type=FilePath(), help="Your own photographs: their folder.")
@click.option("--videos", type=FilePath(), help="Or your own clips: the folder of the video files.")
@click.option("--captions", type=FilePath(),
              help="Their captions: a .csv with columns image,caption[,split] or video,caption[,split][,start,end], or "
              "what else `pipeline manifest` reads.")
@click.option("--format", "form", metavar="NAME", show_default="as the file looks", help="The format of the captions.")
@click.option("--name", metavar="NAME", callback=called, show_default="after DIR", help="The data set's name.")
def command(folder: Path, images: Path | None, videos: Path | None, captions: Path | None, form: str | None,
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
            raise InputError("--format and --name go with --images and --captions")
        written = new.write(folder)
    elif files is None or captions is None:
        raise InputError("--images or --videos goes with --captions")
    else:
        written = _own(folder, files, captions, form, name or _after(folder), "video" if videos else "image")
    click.echo(f"{folder}: {', '.join(written)}")
    there = f"./{folder}" if str(folder).startswith("-") else str(folder)
    click.echo(f"Next: {'' if folder == Path() else f'cd {shlex.quote(there)} && '}dvc repro")
    if find_spec("dvc") is None:
        click.echo("DVC is not installed: pip install 'vse-pipeline[sample]' brings it", err=True)


def _after(folder: Path) -> str:
    """A data set's name after a folder's."""
    letters = unicodedata.normalize("NFKD", folder.absolute().name)
    bare = "".join(each for each in letters if not unicodedata.combining(each))
    return re.sub(r"[^A-Za-z0-9]+", "_", bare).strip("_") or "own"


def _own(folder: Path, images: Path, captions: Path, form: str | None, name: str, kind: Kind) -> list[str]:
    """Write a project for a user's own photographs or clips, and say what was chosen."""
    noun = "clips" if kind == "video" else "images"
    if name in manifest.datasets(folder):
        raise InputError(f"there is a data set {name!r} already; choose another --name")
    if folder.resolve().is_relative_to(images.resolve()):
        raise InputError(f"{folder}: lies in the folder of {noun} {images}, so what is written there would be taken "
                         f"for {noun}; choose a folder beside it")
    data = own_data.choose(name, images, captions, form, kind)
    written = new.write(folder, *own_data.files(data, images, captions, form))
    counts = ", ".join(f"{split} {count}" for split, count in data.images.items())
    click.echo(f"{name}: {len(data.table.images)} {noun} ({counts}), {len(data.table.table)} captions"
               + ("; the captions name no splits, so these were drawn" if data.drawn else ""))
    for feature, why in data.left_out.items():
        click.echo(f"{feature}: left out, {why}")
    chosen = data.training
    last = chosen["epochs"] - chosen["decay_epoch"]
    click.echo(f"{', '.join(data.features)}: d = {chosen['dimension']}, {chosen['epochs']} epochs of batches of "
               f"{chosen['batch_size']}, the last {last} at a tenth of the learning rate")
    return written

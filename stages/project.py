"""Commands for the start of a project: its settings, the built-in samples, the machine."""

from __future__ import annotations

import inspect
import math
import os
import re
import shlex
import unicodedata
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from pipeline.foundation import manifest
from pipeline.foundation.files import parsing
from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import sample
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, counted, look_up
from pipeline.foundation.settings import SHIPPED, Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.make.features.project import new
from stages.commands.project import InitOptions, SampleOptions, SettingsOptions
from stages.progress import Progress, say

NO_GIT = (
    "There is no git here, and `dvc exp` needs it; for that later: git init && dvc config core.no_scm "
    "false"
)


def init(options: InitOptions) -> None:
    """Write params.yaml, dvc.yaml and what `dvc repro` needs into DIR (default: here). Nothing is
    overwritten.
    """
    if options.images is not None and options.videos is not None:
        raise InputError("give --images or --videos")
    files = options.images
    if files is None:
        files = options.videos
    if files is None and options.captions is None:
        if options.form or options.name:
            raise InputError("--format and --name need --images, or --videos, and --captions")
        written = new.write(options.folder)
    elif files is None or options.captions is None:
        raise InputError("--images or --videos needs --captions, and --captions one of them")
    else:
        name = options.name
        if name is None:
            name = _name_after(options.folder)
        kind: Kind = "image"
        if options.videos:
            kind = "video"
        written = _own(options.folder, files, options.captions, options.form, name, kind)
    say(f"{options.folder}: {', '.join(written)}", err=False)
    if new.is_without_git(options.folder):
        say(NO_GIT, err=False)
    said = "Next"
    if files is None:
        from pipeline.make.features.project import own_data

        said = "Next, for the built-in sample"
        _say_how_long(own_data.cpu_seconds_of_sample())
    click.echo(f"{said}: {' && '.join(_steps(options.folder))}")


def _name_after(folder: Path) -> str:
    """The name of a data set after its project's folder."""
    letters = unicodedata.normalize("NFKD", folder.absolute().name)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9]+", "_", bare).strip("_") or "own"


def _steps(folder: Path) -> list[str]:
    """What to type next, to run the stages of a new project."""
    steps = []
    if find_spec("dvc") is None:
        steps.append(extras.line("sample"))  # it brings DVC
    if folder != Path():
        target = str(folder)
        if target.startswith("-"):
            target = f"./{target}"
        steps.append(f"cd {shlex.quote(target)}")
    return [*steps, "dvc repro"]


def _own(
    folder: Path, images: Path, captions: Path, form: str | None, name: str, kind: Kind
) -> list[str]:
    """Write a project for a user's own photographs or clips, and say what was chosen."""
    from pipeline.make.features.project import own_data  # needs Pillow, which settings do not

    noun = "images"
    if kind == "video":
        noun = "clips"
    if name in manifest.datasets(folder):
        raise InputError(f"there is a data set {name!r} already; choose another --name")
    if folder.resolve().is_relative_to(images.resolve()):
        raise InputError(
            f"{folder}: is inside the folder of {noun} {images}, so what is written there would be taken "
            f"for {noun}; choose a folder beside it"
        )
    left_out = LeftOut()
    data = own_data.choose(
        name,
        images,
        captions,
        form,
        kind,
        left_out,
        lambda line: say(line, err=line.startswith("note: ")),
    )
    say(*(f"note: {line}" for line in left_out.lines()))
    written = new.write(folder, *own_data.files(data, images, captions, form))
    counts = ", ".join(f"{split} {count}" for split, count in data.images.items())
    of_captions = counted(data.table.captions, "caption")
    said = f"{name}: {len(data.table.images)} {noun} ({counts}), {of_captions}"
    if data.drawn:
        said += "; the captions name no splits, so these were drawn"
    say(said, err=False)
    for feature, why in data.left_out.items():
        say(f"{feature}: left out, {why}", err=False)
    chosen = data.training
    last = chosen["epochs"] - chosen["decay_epoch"]
    say(
        f"{', '.join(data.features)}: d = {chosen['dimension']}, {counted(chosen['epochs'], 'epoch')} of batches of "
        f"{chosen['batch_size']}, the last {last} at a tenth of the learning rate",
        err=False,
    )
    _say_how_long(own_data.cpu_seconds(data))
    return written


def _say_how_long(cpu_seconds: float) -> None:
    """Print an estimate: as long as so many seconds take on all cores, to as long again, which
    slower CPUs take.
    """
    cores = len(os.sched_getaffinity(0))
    seconds = cpu_seconds / cores
    units = math.ceil(seconds / 60)
    unit = "minutes"
    if units > 90:
        units = math.ceil(seconds / 3600)
        unit = "hours"
    say(
        f"dvc repro: {units} to {2 * units} {unit} on {counted(cores, 'core')}, an estimate by the numbers of images "
        "and captions; `pipeline extract --dry-run` measures a feature's time here",
        err=False,
    )


def show_settings(paths: Paths, settings: Settings, options: SettingsOptions) -> None:
    """Print the part KEY of the effective settings, or all of them; without either, which sections
    they have.
    """
    if options.key and options.every:
        raise InputError(f"--all prints all settings; leave it out, or {options.key}")
    if not (options.key or options.names or options.every):
        click.echo(_sections(), nl=False)
        return
    part: Any = settings.model_dump(mode="json", by_alias=True)
    keys: list[str] = []
    if options.key:
        keys = options.key.split(".")
    # A data set has its own settings of training beside its preset's.
    if len(keys) > 1 and keys[0] == "training" and paths.manifest(keys[1]).is_file():
        of_dataset = settings.training_of(keys[1]).model_dump(mode="json", by_alias=True)
        part["training"].setdefault(keys[1], of_dataset)
    if options.every:
        click.echo(f"# What each means: {SHIPPED}")
    for key in keys:
        if not isinstance(part, dict):
            part = {}
        part = look_up("setting", key, part)
    if options.names and isinstance(part, dict):
        listed = "".join(f"{name}\n" for name in part)
    else:
        listed = parsing.to_yaml(part)
    click.echo(listed.removesuffix("...\n"), nl=False)


def _sections() -> str:
    """What each section of the settings holds, and how to print one."""
    sections = []
    for name, field in Settings.model_fields.items():
        about = field.description or inspect.getdoc(field.annotation) or ""
        sections.append((name, about.partition(".")[0]))
    page = click.HelpFormatter()
    page.write_dl(sections)
    page.write_paragraph()
    page.write_text(
        "`pipeline settings training` prints a section, `pipeline settings training.light` a part of it, "
        "`--names` the names of its parts, `--all` everything."
    )
    return f"{page.getvalue()}What each setting means: {SHIPPED}\n"


def render_sample(paths: Paths, settings: Settings, options: SampleOptions) -> None:
    """Render the built-in sample corpus: scenes with five captions each, the same bytes each
    time.
    """
    name = "sample"
    unit = "image"
    render: Callable[..., object] = sample.render
    chosen = settings.sample.model_dump()
    if options.video:
        name = "sample_video"
        unit = "clip"
        render = sample.render_shots
        chosen = settings.sample_video.model_dump()
    count, size, seed = chosen.values()
    folder = paths.root / "data" / name
    processes = len(os.sched_getaffinity(0))
    with Progress(name, unit, count) as bar:
        render(folder, count, size, seed, progress=bar.reach, processes=processes)
    say(f"{count} {unit}s and their captions in {folder}", err=False)


def show_machine() -> None:
    """Show this machine, and whether bfloat16 is faster than float32, which is measured once."""
    import torch

    from pipeline.foundation.compute import half, machine, measured

    slower = half.slowdown("bf16")
    say(
        f"{machine.processor()}, {counted(torch.get_num_threads(), 'thread')}, "
        f"{torch.backends.cpu.get_cpu_capability()}, "
        f"torch {torch.__version__}",
        err=False,
    )
    said = f"  bfloat16: a product takes {slower:.2g} times as long as in float32"
    if slower > 1:
        said += ", so --precision bf16 is refused"
    say(said, err=False)
    say(f"  kept in {measured.kept_in()}; delete it to have all of it measured again", err=False)

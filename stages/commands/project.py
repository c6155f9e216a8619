"""The command line of `stages.project`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from pipeline.foundation.parts.errors import InputError
from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class InitOptions(declared.Options):
    """Write params.yaml, dvc.yaml and what `dvc repro` needs into DIR (default: here). Nothing is
    overwritten.

    With --images (or --videos) and --captions the settings are for your own photographs (or clips):
    features that can be extracted here, and a head and a training schedule chosen by the number of
    images. The files stay where they are.

    Example: pipeline init trial

    Example: pipeline init holidays --images photos --captions captions.csv
    """

    folder: Annotated[
        Path, click.argument("folder", metavar="[DIR]", type=options.FilePath(), required=False)
    ] = Path()
    images: Annotated[
        Path | None,
        click.option(
            "--images", type=options.FilePath(), help="Your own photographs: their folder."
        ),
    ] = None
    videos: Annotated[
        Path | None,
        click.option(
            "--videos",
            type=options.FilePath(),
            help="Or your own clips: the folder of the video files.",
        ),
    ] = None
    captions: Annotated[
        Path | None,
        click.option(
            "--captions",
            type=options.FilePath(),
            metavar="FILE",
            help="Their captions: a table with columns image,caption[,split] or video,caption[,split][,start,end], "
            "or any other format that `pipeline manifest` reads.",
        ),
    ] = None
    form: Annotated[str | None, options.annotation_format("as it looks")] = None
    name: Annotated[
        str | None,
        click.option(
            "--name",
            metavar="NAME",
            callback=options.called,
            show_default="after DIR",
            help="The data set's name.",
        ),
    ] = None


init_command = declared.command(InitOptions, "project.init")


def _keys(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Shell completion for KEY: the keys of the section before the last dot."""
    from pipeline.foundation.settings import load, written

    given, root = context.params.get("params"), context.params.get("root") or Path()
    try:
        part: Any = load(
            given or declared.settings_file(root) or written.template("params.yaml")
        ).model_dump(mode="json", by_alias=True)
    except InputError:  # which the command says
        return []
    *above, begun = typed.split(".")
    for name in above:
        part = part.get(name) if isinstance(part, dict) else None
    return (
        [".".join([*above, key]) for key in part if key.startswith(begun)]
        if isinstance(part, dict)
        else []
    )


@dataclass(frozen=True, kw_only=True)
class SettingsOptions(declared.Options):
    """Print the part KEY of the effective settings: params.yaml over the shipped ones, recipes
    merged with their bases.

    KEY is a section, such as training, or a part of one, such as recipes.vse2ad-gpo. Without it:
    what each section holds.

    Example: pipeline settings training.light

    Example: pipeline settings recipes.vse2ad-gpo
    """

    key: Annotated[str | None, click.argument("key", required=False, shell_complete=_keys)] = None
    names: Annotated[
        bool, declared.flag("--names", help="Print only the names of KEY's parts.")
    ] = False
    every: Annotated[bool, declared.flag("--all", help="Print all settings.")] = False


settings_command = declared.command(
    SettingsOptions, "project.show_settings", declared.with_settings_or_shipped
)


@dataclass(frozen=True, kw_only=True)
class SampleOptions(declared.Options):
    """Render the built-in sample corpus: scenes with five captions each, the same bytes each time.

    Example: pipeline lab sample -S sample.images=60
    """

    video: Annotated[
        bool,
        declared.flag(
            "--video",
            help="The data set sample_video: moving shots of two seconds in H.264, with "
            "captions about the movement too.",
        ),
    ] = False


sample_command = declared.command(
    SampleOptions, "project.render_sample", declared.with_settings_or_shipped
)


@click.command(cls=declared.CheckedCommand)
def machine_command() -> None:
    """Show how this machine multiplies float32 matrices, and whether bfloat16 is faster. It is
    measured once.

    All commands use these measurements, so that all compute the same bits.

    Example: pipeline lab machine
    """
    declared.stage("project.show_machine")()

"""Write the settings and stages of a new project."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.project import new


@click.command
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path), default=Path())
def command(folder: Path) -> None:
    """Write params.yaml, dvc.yaml and what `dvc repro` needs into DIR (default: here). Nothing is overwritten.

    Example: pipeline init mine
    """
    lazy.load(globals())
    written = new.write(folder)
    click.echo(f"{folder}: " + ", ".join(file.relative_to(folder).as_posix() for file in written))
    click.echo(f"Next: {'' if folder == Path() else f'cd {folder} && '}dvc repro")
    if find_spec("dvc") is None:
        click.echo("DVC is not installed: pip install 'vse-pipeline[sample]' brings it", err=True)

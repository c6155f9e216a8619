"""Render the built-in sample corpus."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from pipeline.paths import Paths
from stages.options import with_settings_or_shipped
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline import sample
    from pipeline.settings import Settings


@click.command
@with_settings_or_shipped
def command(paths: Paths, settings: Settings) -> None:
    """Render the built-in sample corpus: scenes with five captions each, the same bytes each time.

    Example: pipeline sample -S sample.images=60
    """
    options = settings.sample
    folder = paths.root / "data" / "sample"
    with Progress("sample", "image", options.images) as bar:
        sample.render(folder, options.images, options.size, options.seed,
                      progress=bar.reach, processes=len(os.sched_getaffinity(0)))
    click.echo(f"{options.images} images and their captions in {folder}")

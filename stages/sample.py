"""Render the built-in samples."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from pipeline.settings.paths import Paths
from stages.options import with_settings_or_shipped
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline import sample
    from pipeline.settings import Settings


@click.command
@click.option("--video", is_flag=True, help="The data set sample_video: moving shots of two seconds in H.264, with "
              "captions about the movement too.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, video: bool) -> None:
    """Render the built-in sample corpus: scenes with five captions each, the same bytes each time.

    Example: pipeline sample -S sample.images=60
    """
    if video:
        _shots(paths, settings)
        return
    options = settings.sample
    folder = paths.root / "data" / "sample"
    with Progress("sample", "image", options.images) as bar:
        sample.render(folder, options.images, options.size, options.seed,
                      progress=bar.reach, processes=len(os.sched_getaffinity(0)))
    click.echo(f"{options.images} images and their captions in {folder}")


def _shots(paths: Paths, settings: Settings) -> None:
    options = settings.sample_video
    folder = paths.root / "data" / "sample_video"
    with Progress("sample_video", "clip", options.clips) as bar:
        sample.render_shots(folder, options.clips, options.size, options.seed,
                            progress=bar.reach, processes=len(os.sched_getaffinity(0)))
    click.echo(f"{options.clips} clips and their captions in {folder}")

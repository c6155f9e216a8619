"""Leave out of a feature store what is no image's any more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.settings.paths import Paths
from stages import options

if TYPE_CHECKING:

    from pipeline.settings import Settings
    from stages import rewriting


@click.command
@click.argument("store", type=options.FilePath())
@click.option("--manifest", "manifest_file", type=options.FilePath(dir_okay=False), show_default="data/DATASET.parquet",
              help="The manifest that the store was made for.")
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, store: Path, manifest_file: Path | None) -> None:
    """Leave out of a feature store the rows of images that went or were replaced, and put the others in order.

    The result is the store that one extraction of the manifest makes. The store stays as it is until then.

    Example: pipeline compact features/coco/region.zarr
    """
    rewriting.anew(paths, store, manifest_file)

"""Write a feature store anew from its own features, without a network."""

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
@click.option("--dtype", type=click.Choice(["float16", "float32"]), show_default="the store's own",
              help="How features are stored.")
@click.option("--compressor", type=click.Choice(["none", "zstd"]), show_default="the store's own")
@click.option("--shard-images", type=click.IntRange(min=1), show_default="the store's own", help="Images in a shard.")
@click.option("--manifest", "manifest_file", type=options.FilePath(dir_okay=False), show_default="data/DATASET.parquet",
              help="The manifest that the store was made for.")
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, store: Path, manifest_file: Path | None, dtype: str | None,
            compressor: str | None, shard_images: int | None) -> None:
    """Write a feature store anew with another dtype, compressor or shard size, without network and photographs.

    Rows that are no image's any more are left out, as by `pipeline compact`. The store stays as it is until the new one
    is whole; running again goes on, or does nothing.

    Example: pipeline rewrite features/coco/region.zarr --compressor zstd --shard-images 512
    """
    rewriting.anew(paths, store, manifest_file, dtype, compressor, shard_images)

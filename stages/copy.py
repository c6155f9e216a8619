"""Copy a feature store or a manifest into an object store, or from there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.parts import lazy
from pipeline.parts.errors import InputError
from stages.options import FilePath
from stages.progress import Progress

if TYPE_CHECKING:
    from pipeline.features.store import exclusive, remote_store
    from pipeline.files import remote
    from pipeline.manifest import Manifest


@click.command
@click.argument("source", type=FilePath())
@click.argument("target", type=FilePath())
def command(source: Path, target: Path) -> None:
    """Copy a feature store (NAME.zarr) or a manifest (NAME.parquet) into an object store, or from there.

    Each shard is checked by its checksum. A copy that was interrupted goes on.

    Example: pipeline copy s3://bucket/coco/region.zarr features/coco/region.zarr
    """
    lazy.load(globals())
    if (remote.address(source) is None) == (remote.address(target) is None):
        raise InputError("one of SOURCE and TARGET is in an object store, such as s3://bucket/region.zarr")
    named = remote.address(target) or target
    if source.suffix == ".parquet":
        Manifest.load(source).save(target)
        click.echo(f"{named}: manifest copied")
        return
    local = source if remote.address(target) else target
    with exclusive(local), Progress("copy", "shard") as bar:
        if remote.address(target):
            done = remote_store.upload(source, target, bar.reset, bar.update)
        else:
            done = remote_store.download(source, target, bar.reset, bar.update)
    click.echo(f"{named}: " + (f"{done} shards copied" if done else "nothing to do"))

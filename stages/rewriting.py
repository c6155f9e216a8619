"""What the commands that write a store anew share."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.manifest import Manifest
from pipeline.paths import Paths
from pipeline.store import FeatureStore, rewrite
from stages.progress import Progress


def anew(paths: Paths, store: Path, manifest_file: Path | None, dtype: str | None = None,
         compressor: str | None = None, shard_images: int | None = None) -> None:
    """Rewrite a store and say what it has become."""
    there = FeatureStore(store)
    manifest = Manifest.load(manifest_file or paths.manifest(there.fingerprint["dataset"]))
    with Progress("rewrite", "image", len(manifest.images)) as bar:
        layout = rewrite.rewrite(store, manifest, dtype, compressor, shard_images, bar.update)
    if layout == there.layout:
        click.echo(f"{store}: nothing to do")
        return
    left_out = there.layout.used().size - layout.images
    click.echo(f"{store}: {layout.images:,} images in {layout.shards:,} shards of {layout.dtype}, compressor "
               f"{layout.compressor}" + (f"; {left_out:,} unused rows left out" if left_out else ""))

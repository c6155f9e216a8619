"""What the commands that write a store anew share."""

from pathlib import Path

import click
import numpy as np

from pipeline.features.store import FeatureStore, rewrite, verify
from pipeline.manifest import Manifest
from pipeline.parts.errors import counted
from pipeline.settings.paths import Paths
from stages.progress import Progress


def anew(paths: Paths, store: Path, manifest_file: Path | None, dtype: str | None = None,
         compressor: str | None = None, shard_images: int | None = None) -> None:
    """Rewrite a store and say what it has become."""
    there = FeatureStore(store)
    manifest = Manifest.load(manifest_file or paths.manifest(there.fingerprint["dataset"]))
    stays = there.content(np.arange(len(there.rows))).startswith(verify.BY_IMAGES)
    with Progress("rewrite", "image", len(manifest.images)) as bar:
        layout = rewrite.rewrite(store, manifest, dtype, compressor, shard_images, bar.update)
    if layout == there.layout:
        click.echo(f"{store}: nothing to do")
        return
    left_out = there.layout.used().size - layout.images
    if layout.dtype != there.layout.dtype:
        said = f"features are rounded to {layout.dtype}: train anew what was trained on them"
    elif stays:
        said = "heads and scores that were made from it stay valid"
    else:
        said = ("it was made before images had digests of their own, so `pipeline trace` and `pipeline train` will "
                "take its features for others: train and score again")
    click.echo(f"{store}: {counted(layout.images, 'image')} in {counted(layout.shards, 'shard')} of {layout.dtype}, "
               f"compressor {layout.compressor}" + (f"; {left_out:,} unused rows left out" if left_out else "")
               + f"; {said}")

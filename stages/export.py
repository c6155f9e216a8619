"""Write a split of a feature store for older code bases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline import manifest as manifests
from pipeline.paths import Paths
from stages.options import FilePath, with_settings_or_shipped
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline.importers.export import Exported, export
    from pipeline.importers.scan_text import CAPTIONS
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings
    from pipeline.store import FeatureStore

NAMED = 20  # failed images that are named; all stand in the made_from.json


@click.command
@click.argument("store", type=FilePath())
@click.option("--split", type=click.Choice(manifests.SPLITS), required=True, help="Which images.")
@click.option("--out", type=FilePath(), required=True, help="The folder.")
@click.option("--manifest", "manifest_file", type=FilePath(), show_default="data/DATASET.parquet",
              help="The manifest that the store was made for.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, store: Path, split: str, out: Path, manifest_file: Path | None) -> None:
    """Write a split of a feature store in SCAN's layout: {split}_ims.npy, {split}_ids.txt, {split}_caps.txt.

    SCAN calls val `dev`, and COCO's 5K test split `testall`. Running again does nothing.

    Example: pipeline export features/coco/region.zarr --split val --out coco_precomp
    """
    features = FeatureStore(store)
    manifest = Manifest.load(manifest_file or paths.manifest(features.fingerprint["dataset"]))
    with Progress("export", "image") as bar:
        done = export(features, manifest, split, out, bar.reset, bar.update)
    click.echo("\n  ".join([f"{out}/{done.name}_ims.npy: {done.images:,} images x {done.items} items x "
                            f"{done.dimension}, {done.images * CAPTIONS:,} captions of {split}"
                            + ("" if done.written else ", there already"), *_told(done)]))


def _told(done: Exported) -> Iterator[str]:
    """What a reader of the files must know."""
    if done.fewest < done.items:
        yield (f"images have {done.fewest} to {done.items} items: shorter ones are padded with zeros, which older code "
               f"takes for items; {done.name}_counts.npy holds how many are valid")
    if done.captions_left_out:
        yield f"{done.captions_left_out:,} captions after an image's fifth are left out"
    if done.images_left_out:
        more = len(done.images_left_out) - NAMED
        yield (f"{len(done.images_left_out):,} failed images are left out with their captions: "
               + ", ".join(done.images_left_out[:NAMED])
               + (f" and {more:,} more, see {done.name}_made_from.json" if more > 0 else ""))

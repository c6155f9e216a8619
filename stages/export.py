"""Write a feature store as older code bases read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline import manifest as manifests
from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths
from stages.options import FilePath, with_settings_or_shipped
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline.features.importers.export import CAPTIONS, Exported, export, export_folder, export_tsv
    from pipeline.features.store import FeatureStore
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings

FORMATS = ("scan", "butd-tsv", "folder")
NAMED = 20  # failed images that are named; all stand in the made_from.json


@click.command
@click.argument("what", nargs=-1, required=True, metavar="[FORMAT] STORE", type=FilePath())
@click.option("--split", type=click.Choice(manifests.SPLITS), help="Which images; scan needs one, the others take all "
              "without it.")
@click.option("--out", type=FilePath(file_okay=False), required=True, help="The folder.")
@click.option("--manifest", "manifest_file", type=FilePath(dir_okay=False), show_default="data/DATASET.parquet",
              help="The manifest that the store was made for.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, what: tuple[Path, ...], split: str | None, out: Path,
            manifest_file: Path | None) -> None:
    """Write a split of a feature store as older code bases read it. Running again does nothing.

    scan: {split}_ims.npy, {split}_ids.txt, {split}_caps.txt. SCAN calls val `dev`, and COCO's 5K test split `testall`.
    butd-tsv: {split}.tsv with bottom-up-attention's columns, or LXMERT's where the store has objects and attributes.
    folder: an .npz an image, named after its file. FORMAT may be left out for scan.

    Example: pipeline export features/coco/region.zarr --split val --out coco_precomp
    """
    form, store = ("scan", what[0]) if len(what) == 1 else (what[0].as_posix(), what[1])
    if form not in FORMATS or len(what) > 2:
        raise InputError(f"expected [FORMAT] STORE, a format being one of {', '.join(FORMATS)}, got "
                         f"{' '.join(map(str, what))}")
    features = FeatureStore(store)
    manifest = Manifest.load(manifest_file or paths.manifest(features.fingerprint["dataset"]))
    if form != "scan":
        _images(form, features, manifest, split, out)
        return
    if split is None:
        raise InputError("SCAN's layout holds one split; name it with --split")
    with Progress("export", "image") as bar:
        done = export(features, manifest, split, out, bar.reset, bar.update)
    click.echo("\n  ".join([f"{out}/{done.name}_ims.npy: {done.images:,} images x {done.items} items x "
                            f"{done.dimension}, {done.images * CAPTIONS:,} captions of {split}"
                            + ("" if done.written else ", there already"), *_told(done)]))


def _images(form: str, features: FeatureStore, manifest: Manifest, split: str | None, out: Path) -> None:
    write = export_tsv if form == "butd-tsv" else export_folder
    with Progress("export", "image") as bar:
        done = write(features, manifest, split, out, bar.reset, bar.update)
    click.echo(f"{done.place}: {done.images:,} images of {split or 'all splits'}"
               + ("" if done.written else ", there already")
               + (f"; {len(done.left_out):,} failed images are left out, see {split or 'all'}_made_from.json"
                  if done.left_out else ""))


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

"""Turn annotations and a folder of images or clips into one checked table."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths
from stages.options import FilePath, names, with_settings_or_shipped
from stages.progress import Progress

if TYPE_CHECKING:
    from pipeline import manifest
    from pipeline.files import record, remote
    from pipeline.files.remembered import states_of
    from pipeline.manifest import Manifest
    from pipeline.manifest.build import READERS
    from pipeline.settings import Settings


@click.command
@click.argument("name", required=False, shell_complete=names("dataset"))
@click.option("--images", type=FilePath(), show_default="the data set's card",
              help="Folder of images.")
@click.option("--videos", type=FilePath(), help="Folder of video files, in the place of --images.")
@click.option("--annotations", type=FilePath(), show_default="the data set's card",
              help="Karpathy's or COCO's .json; a .csv with columns image,caption[,split][,language], or "
              "video,caption[,split][,start,end]; img2dataset's tars or Parquet; or the files of Multi30K, MSR-VTT, "
              "VATEX or HGR.")
@click.option("--format", "form", metavar="NAME", show_default="as it looks",
              help="The format of the annotations, such as coco, karpathy or csv; an unknown one lists all.")
@click.option("--role-graphs", type=FilePath(dir_okay=False), show_default="the data set's card",
              help="HGR's sent2rolegraph.augment.json, which the recipe hgr needs; HGR's own folder has it.")
@click.option("--without-images", is_flag=True, help="There are features to import and no photographs: do not look for "
              "the image files.")
@click.option("--fetch", is_flag=True, help="Bring images that are named by http(s) addresses into the folder "
              "--images, from public addresses alone.")
@click.option("--out", type=FilePath(dir_okay=False), show_default="data/NAME.parquet", help="The manifest.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, name: str | None, images: Path | None, videos: Path | None,
            annotations: Path | None, form: str | None, role_graphs: Path | None, without_images: bool, fetch: bool,
            out: Path | None) -> None:
    """Turn annotations and a folder of images or clips into one checked table, the manifest of data set NAME.

    NAME is one of manifests/*.yaml (coco, flickr30k, flickr8k, multi30k, msrvtt, msrvtt_1ka, vatex, sample,
    sample_video) or your own; default: run.dataset.

    Example: pipeline manifest flickr8k --images photos --annotations dataset_flickr8k.json
    """
    if [bool(images), bool(videos), without_images].count(True) > 1:
        raise InputError("give one of --images, --videos and --without-images")
    given = images or videos
    if not (given or without_images) and annotations is None:
        manifest.refuse_unknown(name or settings.run.dataset, paths.root)
    card = manifest.dataset(name or settings.run.dataset, paths.root)
    folder = None if without_images else given or paths.root / card.images
    kind = "video" if videos else "image" if images else None if without_images else card.kind
    if role_graphs is None and annotations is None and card.role_graphs is not None:
        role_graphs = paths.root / card.role_graphs
    annotations, form = annotations or paths.root / card.annotations, form or card.format
    path, remembered = out or paths.manifest(card.name), paths.remembered(card.name)
    asked_for = _request(folder, annotations, role_graphs, path, [card.name, form, kind, fetch])
    if asked_for is not None and record.is_done(remembered, asked_for):
        click.echo(f"{path}: nothing to do")
        return
    build = partial(manifest.build, card.name, folder, annotations, form, kind=kind, role_graphs=role_graphs,
                    fetch_addresses=fetch)
    if fetch:
        with Progress("fetch", "image") as bar:
            table = build(on_start=bar.reset, on_image=bar.update)
    else:
        table = build()
    with Progress("look at photographs", table.noun, len(table.images)) as bar:
        table = manifest.with_checksums(table, remembered / "photographs", bar.update)
    table.save(path)
    if asked_for is not None:
        with suppress(OSError):  # a root that is read-only, or full: all is looked at again
            record.finish(remembered, asked_for, [os.path.relpath(path, remembered)])
    _say(table, card.title, path)
    if card.statistics:
        differing = [f"note: not as the card says: {each}" for each in manifest.differences(card.statistics, table)]
        click.echo("\n".join(differing) or f"counts and lengths are those of the card, {', '.join(card.statistics)}",
                   err=bool(differing))


def _request(folder: Path | None, annotations: Path, role_graphs: Path | None, path: Path, options: list[Any]
             ) -> dict[str, Any] | None:
    """All that a manifest depends on, told without reading a file; None where that is not possible."""
    places = [place for place in (folder, annotations, role_graphs) if place is not None]
    states = None if any(remote.address(place) for place in (path, *places)) else states_of(places)
    made_by = record.versions("manifest", *((READERS, name) for name in READERS))
    return None if states is None else {"options": options, "places": [str(place) for place in (path, *places)],
                                        "states": states, "versions": made_by}


def _say(table: Manifest, title: str, path: Path) -> None:
    """What the manifest holds."""
    splits = table.images["split"].value_counts()
    counts = ", ".join(f"{split} {splits[split]}" for split in manifest.SPLITS if split in splits)
    noun = f"{table.noun}s"
    if lacking := [split for split in manifest.SPLITS if split not in splits]:
        click.echo(f"note: no {noun} in {' and '.join(lacking)}; a head is trained on train, its best epoch chosen on "
                   "val, and its scores measured on test", err=True)
    spoken = ", ".join(f"{name} {(table.table['language'] == name).sum()}" for name in table.languages)
    captions = f"{len(table.table)} captions" + (f" ({spoken})" if spoken else "")
    click.echo(f"{title}: {len(table.images)} {noun} ({counts}), {captions}, "
               f"digest {table.digest[:12]} in {path}")

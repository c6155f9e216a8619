"""Data sets: the manifest of one, and the images and captions that two of them share."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.parts.errors import InputError, counted, refusing
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline import manifest
    from pipeline.artefacts import is_up_to_date, record_files
    from pipeline.files import atomic, remote
    from pipeline.files.left_out import LeftOut
    from pipeline.manifest import SPLITS, Manifest
    from pipeline.manifest.examples import write_all
    from pipeline.manifest.request import ManifestRequest
    from pipeline.settings import Settings
    from pipeline.studies.audit import collection, findings, fingerprints


@click.command
@click.argument("name", required=False, shell_complete=options.names("dataset"))
@click.option("--images", type=options.FilePath(in_store=True), show_default="the data set's card",
              help="Folder of images.")
@click.option("--videos", type=options.FilePath(), help="Folder of video files, in the place of --images.")
@click.option("--annotations", type=options.FilePath(in_store=True), show_default="the data set's card",
              help="A CSV or TSV, a list in JSON, JSON Lines or Parquet with columns image,caption[,split][,language] "
              "or video,caption[,split][,start,end]; Karpathy's or COCO's .json; img2dataset's folder; or the files of "
              "Multi30K, MSR-VTT, VATEX or HGR.")
@click.option("--format", "form", metavar="NAME", show_default="as it looks",
              help="The format of the annotations, such as coco, karpathy or csv; an unknown one lists all.")
@click.option("--role-graphs", type=options.FilePath(dir_okay=False), show_default="the data set's card",
              help="HGR's sent2rolegraph.augment.json, which the recipe hgr needs; HGR's own folder has it.")
@click.option("--without-images", is_flag=True, help="Do not look for the image files, if features are imported and "
              "there are no photographs.")
@click.option("--fetch", is_flag=True, help="Download images that are named by http(s) addresses into the folder "
              "--images, from public addresses alone.")
@click.option("--on-error", type=click.Choice(["fail", "skip"]), show_default="manifest.on_error",
              help="Whether a caption or image that cannot be used ends the command, or is left out, within "
              "manifest.left_out.")
@options.out("data/NAME.parquet", "The manifest.", endings=(".parquet",), in_store=True)
@click.option("--examples", type=options.OutputPath(dir_okay=True, file_okay=False),
              help="Write small annotations with images in every layout that is read into this new folder, and print "
              "the command that reads each. Nothing else is done.")
@options.with_settings_or_shipped
def manifest_command(paths: Paths, settings: Settings, name: str | None, images: Path | None, videos: Path | None,
                     annotations: Path | None, form: str | None, role_graphs: Path | None, without_images: bool,
                     fetch: bool, on_error: str | None, out: Path | None, examples: Path | None) -> None:
    """Turn annotations and a folder of images or clips into one checked table, the manifest of data set NAME.

    NAME is one of manifests/*.yaml (coco, flickr30k, flickr8k, multi30k, msrvtt, msrvtt_1ka, vatex, sample,
    sample_video) or your own; default: run.dataset.

    Example: pipeline manifest flickr8k --images photos --annotations dataset_flickr8k.json
    """
    if examples is not None:
        say(*write_all(examples), err=False)
        return
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
    limits = settings.manifest.left_out, (on_error or settings.manifest.on_error) == "fail"
    sources = [place for place in (folder, annotations, role_graphs) if place is not None]
    request = ManifestRequest.of(path, sources, dataset=card.name, form=form, items=kind, fetch=fetch,
                                 left_out=limits[0], fails=limits[1])
    if request is not None and is_up_to_date(remembered, request):
        say(f"{path}: nothing to do", err=False)
        return
    left_out = LeftOut("caption", *limits)
    with Progress("fetch", "image", shown=fetch) as bar:
        table = manifest.build(card.name, folder, annotations, form, kind=kind, role_graphs=role_graphs,
                               fetch_addresses=fetch, on_start=bar.reset, on_image=bar.update, left_out=left_out,
                               say=lambda line: say(line, err=line.startswith("note: ")))
    with nullcontext() if remote.address(path) else atomic.exclusive(path):
        with Progress("look at photographs", table.noun, len(table.images)) as bar:
            table = manifest.with_checksums(table, remembered / "photographs", bar.update)
        table = table.save(path)
        left_out.save(paths.left_out(card.name))
        if request is not None:
            with suppress(OSError):  # the root is read-only or full: the next run reads all again
                record_files(remembered, request, [path])
    _say(table, card.title, path)
    say(*(f"note: {line}" for line in left_out.lines(paths.left_out(card.name))))
    own = Path("manifests", f"{card.name}.yaml")
    says = f"as the card {own} says" if (paths.root / own).is_file() else f"as the built-in card {card.name} says"
    differing, alike, left = manifest.compared(card, table)
    say(*(f"note: not {says}: {each}" for each in differing))
    say(*([f"{says}: {'; '.join(alike)}"] if alike else []), *(f"not compared: {each}" for each in left), err=False)


def _say(table: Manifest, title: str, path: Path) -> None:
    """Print what the manifest holds."""
    splits = table.images["split"].value_counts()
    counts = ", ".join(f"{split} {splits[split]:,}" for split in manifest.SPLITS if split in splits)
    if lacking := [split for split in manifest.SPLITS if split not in splits]:
        say(f"note: no {table.noun}s in {' and '.join(lacking)}; a head is trained on train, its best epoch chosen on "
            "val, and its scores measured on test")
    spoken = ", ".join(f"{name} {(table.table['language'] == name).sum():,}" for name in table.languages)
    captions = counted(len(table.table), "caption") + (f" ({spoken})" if spoken else "")
    say(f"{title}: {counted(len(table.images), table.noun)} ({counts}), {captions}, digest "
        f"{table.digest[:12]} in {path}", err=False)


@click.command
@click.argument("one", metavar="A", shell_complete=options.names("dataset"))
@click.argument("other", metavar="[B]", required=False, shell_complete=options.names("dataset"))
@click.option("--alike", type=click.IntRange(0, 128), default=16, show_default=True, metavar="BITS",
              help="Images look alike if their dHashes differ in at most this many of 256 bits.")
@options.out("results/audit-A-B.html", "The report; a .json file of the same name is written beside it.",
             endings=(".html",))
@options.with_settings_or_shipped
def audit_command(paths: Paths, settings: Settings, one: str, other: str | None, alike: int, out: Path | None) -> None:
    """Find images and captions that data sets A and B share, or the splits of A alone.

    A data set is named as its manifest; NAME:SPLIT is one split of it. One photograph is found by Flickr's or COCO's
    number in the file's name, and by the file's contents. Pairs that look alike are shown side by side, for you to
    judge; so are images of one number that look different. Equal captions are counted.

    Exit code 1: A and B share photographs, or two splits of A do. 0: they do not. 2: something could not be read or
    written.

    Example: pipeline audit flickr8k:test multi30k:train
    """
    named = [name.partition(":") for name in (one, other) if name]
    every = []
    for dataset, colon, split in named:
        if colon and split not in SPLITS:
            raise InputError(f"{dataset}:{split}: expected a split of {', '.join(SPLITS)} after the colon")
        every.append(collection.Collection.of(Manifest.load(paths.manifest(dataset)), split or None))
    (first, _, part), (second, _, rest) = named[0], named[-1]
    if other and first == second and (not part or not rest or part == rest):
        raise InputError(f"{one} and {other} hold the same images by definition; name two splits, or {first} alone for "
                         "its own splits")
    prints = []
    for each in every:
        with Progress(f"read {each.name}", "image", len(each.files)) as bar:
            prints.append(fingerprints.take(each, os.cpu_count() or 1, bar.reach))
    found = findings.compare(every[0], every[-1], (prints[0], prints[-1]), alike)
    name = "-".join(each.replace(":", "-") for each in (one, other) if each)
    path = out or paths.root / "results" / f"audit-{name}.html"
    # exit code 1 would say something else
    with refusing(OSError, lambda error: f"{path}: {error.strerror or error}; choose another --out"):
        atomic.write_text(path, found.page())
        atomic.write_json(path.with_suffix(".json"), found.as_json())
    say(*found.lines(), f"{path}: pairs side by side", err=False)
    sys.exit(1 if found.leaks else 0)


"""Data sets: the manifest of one, and the images and captions that two of them share."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

from pipeline.foundation import manifest
from pipeline.foundation.artefacts import is_up_to_date, record_files
from pipeline.foundation.files import atomic, remote
from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import SPLITS, Manifest, drawn_splits
from pipeline.foundation.manifest.build import all_test
from pipeline.foundation.manifest.examples import write_all
from pipeline.foundation.manifest.request import ManifestRequest
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.run.studies.audit import collection, findings, fingerprints
from stages.commands.data import AuditOptions, ManifestOptions
from stages.progress import Progress, say

# Data sets that are rendered here -> the command that does so.
RENDERED_BY = {"sample": "pipeline lab sample", "sample_video": "pipeline lab sample --video"}


def make_manifest(paths: Paths, settings: Settings, options: ManifestOptions) -> None:
    """Turn annotations and a folder of images or clips into one checked table, the manifest of data
    set NAME.
    """
    if options.examples is not None:
        say(*write_all(options.examples), err=False)
        return
    if [bool(options.images), bool(options.videos), options.without_images].count(True) > 1:
        raise InputError("give one of --images, --videos and --without-images")
    given = options.images or options.videos
    if not (given or options.without_images) and options.annotations is None:
        manifest.refuse_unknown(options.name or settings.run.dataset, paths.root)
    card = manifest.dataset(options.name or settings.run.dataset, paths.root)
    folder = None if options.without_images else given or paths.root / card.images
    kind: Kind | None = card.kind
    if options.without_images:
        kind = None
    elif given:
        kind = "video" if options.videos else "image"
    role_graphs = options.role_graphs
    if role_graphs is None and options.annotations is None and card.role_graphs is not None:
        role_graphs = paths.root / card.role_graphs
    annotations = options.annotations or paths.root / card.annotations
    form = options.form or card.format
    if card.name in RENDERED_BY and folder is not None and not (given or folder.exists()):
        raise InputError(f"{folder}: no such folder; `{RENDERED_BY[card.name]}` renders it")
    path = options.out or paths.manifest(card.name)
    remembered = paths.remembered(card.name)
    if not remote.address(path):
        remembered = path.with_name(f".{path.stem}")  # beside it, as what is read of it later
    left_out_csv = remembered / paths.left_out(card.name).name
    limits = settings.manifest.left_out, (options.on_error or settings.manifest.on_error) == "fail"
    sources = [place for place in (folder, annotations, role_graphs) if place is not None]
    request = ManifestRequest.of(
        path,
        sources,
        dataset=card.name,
        form=form,
        items=kind,
        fetch=options.fetch,
        draws=options.draw_splits,
        left_out=limits[0],
        fails=limits[1],
    )
    if request is not None and is_up_to_date(remembered, request):
        say(f"{path}: nothing to do", err=False)
        return
    left_out = LeftOut("caption", *limits)
    with Progress("fetch", "image", shown=options.fetch) as bar:
        draw = drawn_splits.draw if options.draw_splits else all_test
        table = manifest.build(
            card.name,
            folder,
            annotations,
            form,
            draw,
            kind=kind,
            role_graphs=role_graphs,
            fetch_addresses=options.fetch,
            on_start=bar.reset,
            on_image=bar.update,
            left_out=left_out,
            say=lambda line: say(line, err=line.startswith("note: ")),
        )
    with nullcontext() if remote.address(path) else atomic.exclusive(path):
        with Progress("look at photographs", table.noun, len(table.images)) as bar:
            table = manifest.with_checksums(table, remembered / "photographs", bar.update)
        table = table.save(path)
        left_out.save(left_out_csv)
        if request is not None:
            # The root is read-only or full: the next run reads all again.
            with suppress(*atomic.NOT_WRITTEN):
                record_files(remembered, request, [path])
    _say(table, card.title, path)
    say(*(f"note: {line}" for line in left_out.lines(left_out_csv)))
    source = Path("manifests", f"{card.name}.yaml")
    says = (
        f"as the card {source} says"
        if (paths.root / source).is_file()
        else f"as the built-in card {card.name} says"
    )
    differing, alike, left = manifest.compared(card, table)
    say(*([f"note: not {says}: {'; '.join(differing)}"] if differing else []))
    say(
        *([f"{says}: {'; '.join(alike)}"] if alike else []),
        *([f"not compared: {'; '.join(left)}"] if left else []),
        err=False,
    )


def _say(table: Manifest, title: str, path: Path) -> None:
    """Print what the manifest holds."""
    splits = table.images["split"].value_counts()
    counts = ", ".join(f"{split} {splits[split]:,}" for split in manifest.SPLITS if split in splits)
    if lacking := [split for split in manifest.SPLITS if split not in splits]:
        say(
            f"note: no {table.noun}s in {' and '.join(lacking)}; a head is trained on train, its best epoch chosen on "
            "val, and its scores measured on test; --draw-splits draws splits where the annotations name none"
        )
    spoken = ", ".join(
        f"{name} {(table.table['language'] == name).sum():,}" for name in table.languages
    )
    captions = counted(table.captions, "caption") + (f" ({spoken})" if spoken else "")
    say(
        f"{title}: {counted(len(table.images), table.noun)} ({counts}), {captions}, digest "
        f"{table.digest[:12]} in {path}",
        err=False,
    )


def audit(paths: Paths, settings: Settings, options: AuditOptions) -> None:
    """Find images and captions that data sets A and B share, or the splits of A alone."""
    named = [name.partition(":") for name in (options.one, options.other) if name]
    every = []
    for dataset, colon, split in named:
        if colon and split not in SPLITS:
            raise InputError(
                f"{dataset}:{split}: expected a split of {', '.join(SPLITS)} after the colon"
            )
        every.append(
            collection.Collection.of(Manifest.load(paths.manifest(dataset)), split or None)
        )
    (first, _, part), (second, _, rest) = named[0], named[-1]
    if options.other and first == second and (not part or not rest or part == rest):
        raise InputError(
            f"{options.one} and {options.other} hold the same images by definition; name two splits, or {first} alone for "
            "its own splits"
        )
    prints = []
    for each in every:
        with Progress(f"read {each.name}", "image", len(each.files)) as bar:
            prints.append(fingerprints.take(each, os.cpu_count() or 1, bar.reach))
    report = findings.compare(every[0], every[-1], (prints[0], prints[-1]), options.alike)
    name = "-".join(each.replace(":", "-") for each in (options.one, options.other) if each)
    path = options.out or paths.root / "results" / f"audit-{name}.html"
    # exit code 1 would say something else
    with refusing(
        OSError, lambda error: f"{path}: {error.strerror or error}; choose another --out"
    ):
        atomic.write_text(path, report.page())
        atomic.write_json(path.with_suffix(".json"), report.as_json())
    say(*report.lines(), f"{path}: pairs side by side", err=False)
    sys.exit(1 if report.leaks else 0)

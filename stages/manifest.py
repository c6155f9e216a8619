"""Data sets: the manifest of one."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from pipeline.foundation import manifest
from pipeline.foundation.artefacts import is_up_to_date, record_files
from pipeline.foundation.files import atomic, remote
from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest, drawn_splits, fetch
from pipeline.foundation.manifest.build import all_test
from pipeline.foundation.manifest.caption_inputs import CAPTION_INPUTS
from pipeline.foundation.manifest.examples import write_all
from pipeline.foundation.manifest.request import ManifestRequest
from pipeline.foundation.parts.errors import InputError, InputWarning, counted, unknown
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from stages.commands.manifest import ManifestOptions
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
    ways = [bool(options.images), bool(options.videos), options.without_images]
    if ways.count(True) > 1:
        raise InputError("give one of --images, --videos and --without-images")
    name = options.name or settings.run.dataset
    if not any(ways) and options.annotations is None:
        manifest.refuse_unknown(name, paths.root)
    card = manifest.dataset(name, paths.root)
    folder = _folder(paths, card, options)
    kind = _kind(card, options)
    caption_inputs = _caption_inputs(paths, card, options)
    annotations = options.annotations or paths.root / card.annotations
    form = options.form or card.format
    path = options.out or paths.manifest(card.name)
    remembered = paths.remembered(card.name)
    if not remote.address(path):
        remembered = path.with_name(f".{path.stem}")  # beside it, as what is read of it later
    left_out_csv = remembered / paths.left_out(card.name).name
    most_left_out = settings.manifest.left_out
    on_error = options.on_error or settings.manifest.on_error
    fails = on_error == "fail"
    sources = [place for place in (folder, annotations) if place is not None]
    sources += caption_inputs.values()
    request = ManifestRequest.of(
        path,
        sources,
        dataset=card.name,
        form=form,
        items=kind,
        caption_inputs=tuple(caption_inputs),
        fetch=options.fetch,
        draws=options.draw_splits,
        left_out=most_left_out,
        fails=fails,
    )
    if request is not None and is_up_to_date(remembered, request):
        say(f"{path}: nothing to do", err=False)
        return
    left_out = LeftOut("caption", most_left_out, fails)
    draw = all_test
    if options.draw_splits:
        draw = drawn_splits.draw
    with Progress("fetch", "image", shown=options.fetch) as bar:
        fetching = None
        if options.fetch:
            fetching = fetch.Fetching(bar.reset, bar.update)
        reading = manifest.Reading(form, draw, kind, caption_inputs)
        table = manifest.build(
            card.name,
            folder,
            annotations,
            reading,
            fetching,
            left_out=left_out,
            say=lambda line: say(line, err=line.startswith("note: ")),
        )
    alone: AbstractContextManager[object] = nullcontext()
    if not remote.address(path):
        alone = atomic.exclusive(path)
    with alone:
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
    _say_compared(paths, card, table)


def _caption_inputs(
    paths: Paths, card: manifest.Dataset, options: ManifestOptions
) -> dict[str, Path]:
    """The files of further inputs of captions by column: those given, then the card's."""
    files: dict[str, Path] = {}
    for column, file in options.caption_inputs:
        if column not in CAPTION_INPUTS:
            raise InputError(f"--caption-input: {unknown('column', column, CAPTION_INPUTS)}")
        if column in files:
            raise InputError(f"--caption-input: {column} is given twice; name one file of it")
        files[column] = file
    if options.annotations is not None:
        return files
    for column, name in card.caption_inputs.items():
        if column in CAPTION_INPUTS:
            files.setdefault(column, paths.root / name)
        else:
            reason = unknown("column", column, CAPTION_INPUTS)
            warnings.warn(f"{name}: left out: {reason}", InputWarning, stacklevel=3)
    return files


def _folder(paths: Paths, card: manifest.Dataset, options: ManifestOptions) -> Path | None:
    """The folder of the images or clips; None without them."""
    if options.without_images:
        return None
    given = options.images or options.videos
    if given:
        return given
    folder = paths.root / card.images
    if card.name in RENDERED_BY and not folder.exists():
        raise InputError(f"{folder}: no such folder; `{RENDERED_BY[card.name]}` renders it")
    return folder


def _kind(card: manifest.Dataset, options: ManifestOptions) -> Kind | None:
    """What the captions are of: images, clips, or nothing that is here."""
    if options.without_images:
        return None
    if options.videos:
        return "video"
    if options.images:
        return "image"
    return card.kind


def _say_compared(paths: Paths, card: manifest.Dataset, table: Manifest) -> None:
    """Print in what the manifest is as the data set's card says."""
    source = Path("manifests", f"{card.name}.yaml")
    says = f"as the built-in card {card.name} says"
    if (paths.root / source).is_file():
        says = f"as the card {source} says"
    differing, alike, left = manifest.compared(card, table)
    if differing:
        say(f"note: not {says}: {'; '.join(differing)}")
    if alike:
        say(f"{says}: {'; '.join(alike)}", err=False)
    if left:
        say(f"not compared: {'; '.join(left)}", err=False)


def _say(table: Manifest, title: str, path: Path) -> None:
    """Print what the manifest holds."""
    splits = table.images["split"].value_counts()
    counts = []
    lacking = []
    for split in manifest.SPLITS:
        if split in splits:
            counts.append(f"{split} {splits[split]:,}")
        else:
            lacking.append(split)
    if lacking:
        say(
            f"note: no {table.noun}s in {' and '.join(lacking)}; a head is trained on train, its best epoch chosen on "
            "val, and its scores measured on test; --draw-splits draws splits where the annotations name none"
        )
    spoken = []
    for name in table.languages:
        count = (table.table["language"] == name).sum()
        spoken.append(f"{name} {count:,}")
    captions = counted(table.captions, "caption")
    if spoken:
        captions += f" ({', '.join(spoken)})"
    images = counted(len(table.images), table.noun)
    say(
        f"{title}: {images} ({', '.join(counts)}), {captions}, digest "
        f"{table.digest[:12]} in {path}",
        err=False,
    )

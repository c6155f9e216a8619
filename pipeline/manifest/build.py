"""Make a checked manifest of an annotation file and a folder of images, and compare its numbers with the card's."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from pipeline.files import containers, remote
from pipeline.files.gallery_file import VIDEO_SUFFIXES, Kind
from pipeline.manifest import fetch
from pipeline.manifest.dataset import Dataset, Statistics
from pipeline.manifest.reader import Reader
from pipeline.manifest.role_graphs import read as graphs_of
from pipeline.manifest.table import CLIP, LANGUAGE, NO_FILE, ROLE_GRAPH, SPLITS, Manifest, arranged
from pipeline.parts import lazy
from pipeline.parts.errors import InputError, InputWarning, counted, refusing
from pipeline.settings.recipe import language_tag

if TYPE_CHECKING:
    import pandas as pd

READERS: lazy.LookupTable[Reader] = lazy.LookupTable({
    "coco": "pipeline.manifest.json_captions:COCO",
    "msrvtt": "pipeline.manifest.videos:MSRVTT",
    "vatex": "pipeline.manifest.videos:VATEX",
    "hgr": "pipeline.manifest.videos:HGR",
    "karpathy": "pipeline.manifest.json_captions:KARPATHY",
    "csv": "pipeline.manifest.captions_csv:READER",
    "multi30k": "pipeline.manifest.multi30k:READER",
    "webdataset": "pipeline.manifest.webdataset:READER",
}, "readers")
"""Format -> its reader. The first that recognises the annotations reads them, unless the user names one."""


ORDINARY = re.compile(r"(?:[^/.\\\0][^/\\\0]*/)*[^/.\\\0][^/\\\0]*")
"""Paths below a folder without a name that begins with a dot. They are safe without the slower checks."""


def all_test(files: list[str]) -> dict[str, str]:
    """Put all images into the split test: file -> split."""
    return dict.fromkeys(files, "test")


def build(dataset: str, images: Path | None, annotations: Path, form: str | None = None,
          draw: Callable[[list[str]], dict[str, str]] = all_test, kind: Kind | None = None,
          role_graphs: Path | None = None, fetch_addresses: bool = False, on_start: fetch.OnImage = lambda count: None,
          on_image: fetch.OnImage = lambda count: None) -> Manifest:
    """Read annotations and check them against the folder of images or clips.

    Args:
        dataset: The name of the data set.
        images: The folder; None if there are features to import but no photographs: then no files are looked at.
        annotations: A file or folder in one of the formats of `READERS`.
        form: The format's name in `READERS`; None for the one that recognises the annotations.
        draw: Chooses a split for each image file; called where the annotations have no splits.
        kind: What the folder holds; None for what the annotations name.
        role_graphs: HGR's file of role graphs, see `pipeline.manifest.role_graphs`; None for what the annotations have.
        fetch_addresses: Whether images that are named by their addresses are fetched into the folder.
        on_start: Called with the number of images to fetch.
        on_image: Called with 1 for each that is done.

    Returns:
        The manifest, with the size of each image file in bytes.

    Raises:
        InputError: In one line, for a missing or unreadable annotation file or image; a file named twice; a caption
            without image or image without caption; an image of the folder that is not named, where the format names
            every image; an empty caption; text that is not UTF-8; a path that leaves the folder; an unknown split; ids
            used twice; a language that is no language tag; a clip that ends before it begins, or lies in a tar or in
            an object store; clips where images are expected, or images where clips are; role graphs that do not fit
            their captions.
    """
    reader = _reader(annotations, form)
    if images is not None and not (images.is_dir() or remote.address(images)):
        noun = f"{kind or 'image'}s"
        raise InputError(f"{images}: no such folder of {noun}; name it with --{noun}")
    table = reader.read(annotations)
    if table.empty:
        raise InputError(f"{annotations}: holds no captions")
    table = fetch.fetched(table, images, fetch_addresses, on_start, on_image)
    files = table["file"].unique().tolist()
    if "split" not in table.columns:
        table["split"] = table["file"].map(draw(files))
    kind = kind or (table["kind"].iloc[0] if "kind" in table.columns else "image")
    table = _with_clips(table, kind, annotations)
    _check_rows(table, annotations)
    for file in files:
        _check_path(file, annotations)
    if kind == "video" and images is not None:
        _check_plain(images, files)
    sizes = _sizes(images, files, annotations, kind) if images is not None else dict.fromkeys(files, NO_FILE)
    if images is not None and reader.names_every_image and not remote.address(images):
        _check_all_named(images, set(files), annotations, kind)
    table["bytes"] = table["file"].map(sizes)
    if LANGUAGE in table.columns:
        table[LANGUAGE] = _languages(table, annotations)
        # Other languages have letters that can be written in two ways, ü for one: a word has one spelling only in NFC.
        table["caption"] = [normalize("NFC", caption) for caption in table["caption"]]
    if role_graphs is not None:
        table[ROLE_GRAPH] = graphs_of(role_graphs, table["caption"])
    return Manifest(arranged(table).reset_index(drop=True), dataset, images or Path())


def _reader(annotations: Path, form: str | None) -> Reader:
    if form is not None:
        if form not in READERS:
            raise InputError(f"--format {form!r}: expected one of {', '.join(READERS)}")
        return READERS[form]
    titles = []
    for name in READERS:
        try:
            reader = READERS[name]
            if reader.recognises(annotations):
                return reader
            titles.append(reader.title)
        except (InputError, AttributeError) as error:  # a broken reader of an installed package stops no other reader
            warnings.warn(f"the reader {name!r} is left out: {error}", InputWarning, stacklevel=3)
    known = " or ".join(titles)
    raise InputError(f"{annotations}: expected {known}; name the format with --format")


def _with_clips(table: pd.DataFrame, kind: Kind, source: Path) -> pd.DataFrame:
    """Check that annotations name what the folder holds, and add the columns of clips."""
    told = table["kind"].iloc[0] if "kind" in table.columns else kind
    if told != kind:
        raise InputError(f"{source}: names {told}s; give their folder with --{told}s")
    if kind == "image":
        return table.drop(columns="kind", errors="ignore")
    table = table.assign(kind=kind, **{column: table.get(column, np.nan) for column in ("start", "end")})
    wrong = table[(table["start"] < 0) | (table["end"] <= table["start"].fillna(0))
                  | np.isinf(table["start"]) | np.isinf(table["end"])]
    if len(wrong):
        file, start, end = wrong[["file", "start", "end"]].iloc[0]
        until = "the end" if np.isnan(end) else f"{end:g} s"
        raise InputError(f"{source}: {file!r} is to be shown from {0 if np.isnan(start) else start:g} s to {until}; "
                         "expected a start of 0 s or later, and an end after it")
    return table


def _check_all_named(folder: Path, named: set[str], source: Path, kind: Kind) -> None:
    suffixes = VIDEO_SUFFIXES if kind == "video" else fetch.SUFFIXES
    silent = []
    for place, _, names in os.walk(folder):
        below = "" if (path := Path(place)) == folder else f"{path.relative_to(folder).as_posix()}/"
        silent += [below + name for name in names
                   if os.path.splitext(name)[1].lower() in suffixes and below + name not in named]
    if silent:
        raise InputError(f"{folder}: {counted(len(silent), kind)} without a caption in {source.name}, the first "
                         f"{min(silent)!r}; caption them or take them out of the folder")


def _check_rows(table: pd.DataFrame, source: Path) -> None:
    if {table[name].dtype.kind for name in ("image_id", "caption_id")} != {"i"}:
        raise InputError(f"{source}: image and caption ids must be integers of at most 64 bits")
    empty = table[(table["caption"] == "") | table["caption"].str.isspace()]
    if len(empty):
        raise InputError(f"{source}: empty caption for {empty['file'].iloc[0]!r} ({len(empty)} in all)")
    unknown = table[~table["split"].isin(SPLITS)]
    if len(unknown):
        raise InputError(f"{source}: {unknown['file'].iloc[0]!r} is in the unknown split "
                         f"{unknown['split'].iloc[0]!r}; expected {', '.join(SPLITS)}")
    if table["caption_id"].duplicated().any():
        twice = table.loc[table["caption_id"].duplicated(), "caption_id"].iloc[0]
        raise InputError(f"{source}: caption id {twice} is used twice")
    clip = [column for column in CLIP if column in table.columns]
    images = table.drop_duplicates(["image_id", "file", "split", *clip])
    for columns, what in ((["file", *clip], "file"), (["image_id"], "image id")):
        if (twice := images.duplicated(columns)).any():
            value = images.loc[twice, columns[0]].tolist()[0]
            raise InputError(f"{source}: the {what} {value!r} names two {'clips' if clip else 'images'} or splits")


def _languages(table: pd.DataFrame, source: Path) -> list[str]:
    known: dict[str, str] = {}
    for name, file, caption in zip(table[LANGUAGE], table["file"], table["caption"], strict=True):
        if name not in known:
            try:
                known[name] = language_tag(name)
            except ValueError as error:
                raise InputError(f"{source}: {error} (caption {caption[:40]!a} of {file})") from None
    return [known[name] for name in table[LANGUAGE]]


def _check_path(file: str, source: Path) -> None:
    if ORDINARY.fullmatch(file):
        return
    path = PurePosixPath(file)
    if path.as_posix() != file:
        raise InputError(f"{source}: write the path {file!r} as {path.as_posix()!r}, so that no file has two names")
    if path.is_absolute() or ".." in path.parts or "\\" in file or "\0" in file:
        raise InputError(f"{source}: the path {file!r} leaves the image folder")


def _check_plain(folder: Path, files: list[str]) -> None:
    packed = next((file for file in files if containers.inside(folder / file)), None)
    if packed is not None or remote.address(folder):
        where = remote.address(folder) or folder / str(packed)
        raise InputError(f"{where}: clips are decoded from plain files of this machine; copy or unpack them")


def _sizes(folder: Path, files: list[str], source: Path, kind: Kind) -> dict[str, int]:
    with refusing(OSError, str):
        sizes = containers.sizes(folder, files)
    sizes |= {file: _size(folder, file, source) for file in files if file not in sizes}
    if absent := [file for file in files if sizes[file] < 0]:
        raise InputError(f"{folder / absent[0]}: no such {kind}, though {source.name} names it; {len(absent)} of "
                         f"{len(files)} {kind}s that it names are not in the folder")
    return sizes


def _size(folder: Path, file: str, source: Path) -> int:
    """Its size in bytes; -1 if there is no such file."""
    place = f"{folder}/{file}"
    try:  # folders may be links, those are the user's own; a linked file that leads out is refused
        told, inside = os.lstat(place), True
        if stat.S_ISLNK(told.st_mode):
            told, inside = os.stat(place), Path(place).resolve().is_relative_to(folder.resolve())
        size = told.st_size if stat.S_ISREG(told.st_mode) else -1
    except (OSError, RuntimeError):  # RuntimeError: a link that leads in a circle, before Python 3.13
        inside, size = True, -1
    if not inside:
        raise InputError(f"{place}: is a link that leaves the image folder; name its target, or copy the file")
    return size


PARTS = 16  # that are counted one after another: of five million captions at once 2 GB are needed
WHAT = {name: name.replace("_", " ") for name in Statistics.model_fields} | {
    name: f"characters of the {name} caption" for name in ("shortest", "longest")}


def statistics_of(manifest: Manifest) -> dict[str, Statistics]:
    """Count a manifest: split -> its statistics, all of them known."""
    def count(split: str) -> Statistics:
        rows = manifest.rows(["split", "image_id", "caption"], lambda rows: rows[rows["split"] == split])
        captions = rows["caption"]
        parts = np.fromiter(map(hash, captions), np.int64, len(captions)) % PARTS  # equal captions are in one part
        texts, lengths = sum(captions[parts == part].nunique() for part in range(PARTS)), captions.str.len()
        return Statistics(images=rows["image_id"].nunique(), captions=len(rows), unique_captions=texts,
                          shortest=int(lengths.min()), longest=int(lengths.max()))

    return {split: count(split) for split in sorted(manifest.images["split"].unique())}


def compared(card: Dataset, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    """Compare a manifest with what its card states.

    Args:
        card: The card.
        manifest: The manifest.

    Returns:
        What differs; what agrees, such as "images, captions (train, test)"; what is not compared, and why.
    """
    found = statistics_of(manifest) if card.statistics else {}
    differing: list[str] = []
    agreeing, unstated = ({name: list[str]() for name in WHAT} for _ in range(2))  # name -> splits
    for split, expected in card.statistics.items():
        here = found.get(split, Statistics(images=0, captions=0)).model_dump()
        for name, value in expected.model_dump().items():
            if value is None:
                unstated[name].append(split)
            elif here[name] == value:
                agreeing[name].append(split)
            else:
                differing.append(f"{split}: {WHAT[name]}: expected {value}, found {here[name]}")
    alike, silent = _spoken(agreeing), "; ".join(_spoken(unstated))
    left = [f"{silent}: {card.unstated or 'the card does not state them'}"] if silent else []
    if card.languages == manifest.languages != []:
        alike.append("languages")
    elif manifest.languages == [] and len(card.languages) == 1:
        left.append("languages: the annotations do not name them")
    elif card.languages:
        differing.append(f"languages: expected {', '.join(card.languages)}, found "
                         f"{', '.join(manifest.languages) or 'none'}")
    return differing, alike, left


def _spoken(splits_of: Mapping[str, list[str]]) -> list[str]:
    """Name numbers of the same splits together, such as "images, captions (train, test)"."""
    together: dict[str, list[str]] = {}
    for name, splits in splits_of.items():
        together.setdefault(", ".join(splits), []).append(WHAT[name])
    return [f"{', '.join(names)} ({splits})" for splits, names in together.items() if splits]

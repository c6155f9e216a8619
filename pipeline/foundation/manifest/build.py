"""Make a checked manifest of an annotation file and a folder of images, and compare its numbers
with the card's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from pipeline.foundation.files import regular, remote, unfetched
from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import fetch, image_files, unpaired
from pipeline.foundation.manifest.caption_inputs import CAPTION_INPUTS
from pipeline.foundation.manifest.columns import (
    AT_ONCE,
    CLIP,
    LANGUAGE,
    NO_CAPTION,
    NO_IMAGE,
    arranged,
)
from pipeline.foundation.manifest.reader import Reader, Source
from pipeline.foundation.manifest.split import SPLITS
from pipeline.foundation.manifest.split_names import split_of
from pipeline.foundation.manifest.table import Manifest
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, InputWarning, refusing, unknown
from pipeline.foundation.settings.recipe import language_tag

if TYPE_CHECKING:
    import pandas as pd

READERS: lazy.LookupTable[Reader] = lazy.LookupTable(
    {
        "coco": "pipeline.foundation.manifest.json_captions:COCO",
        "msrvtt": "pipeline.foundation.manifest.videos:MSRVTT",
        "vatex": "pipeline.foundation.manifest.videos:VATEX",
        "karpathy": "pipeline.foundation.manifest.json_captions:KARPATHY",
        "multi30k": "pipeline.foundation.manifest.multi30k:READER",
        "scan": "pipeline.foundation.manifest.scan:READER",
        "parquet": "pipeline.foundation.manifest.rows.reader:PARQUET",
        "json": "pipeline.foundation.manifest.rows.reader:JSON",
        "csv": "pipeline.foundation.manifest.rows.reader:CSV",
    },
    "readers",
    base="pipeline.foundation.manifest.reader:Reader",
)
"""Format -> its reader."""
TABLES = ("parquet", "json", "csv")
"""Formats that read files of many layouts, so that all others are asked before."""


DVC_COPIES = "/.dvc/tmp/exps/"  # where `dvc exp run` copies a project to
PACKED = {
    b"PK\3\4": "it is an Excel workbook, to be saved as CSV UTF-8, or a zip archive, to be unpacked",
    b"\x1f\x8b": "it is compressed by gzip; unpack it",
    b"BZh": "it is compressed by bzip2; unpack it",
    b"\xd0\xcf\x11\xe0": "it is an old Excel workbook; save it as CSV UTF-8",
}
"""How files begin that have to be unpacked or saved otherwise -> what they are."""


def all_test(files: list[str]) -> dict[str, str]:
    """Put all images into the split test: file -> split."""
    return dict.fromkeys(files, "test")


@dataclass(frozen=True)
class Reading:
    """How annotations are read, and what is taken where they do not have it."""

    # The format's name in `READERS`; None for the one that recognises the annotations
    form: str | None = None
    # Chooses a split for each image file; called where the annotations have no splits
    draw: Callable[[list[str]], dict[str, str]] = all_test
    kind: Kind | None = None  # What the folder holds; None for what the annotations name
    # The files of further inputs of captions by column, see `CAPTION_INPUTS`; those that are not
    # here are as the annotations have them
    caption_inputs: Mapping[str, Path] = field(default_factory=dict)


def build(
    dataset: str,
    images: Path | None,
    annotations: Path,
    reading: Reading | None = None,
    fetching: fetch.Fetching | None = None,
    left_out: LeftOut | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> Manifest:
    """Read annotations and check them against the folder of images or clips.

    Args:
        dataset: The name of the data set.
        images: The folder; None if there are features to import but no photographs: then no files
            are looked at.
        annotations: A file or folder in one of the formats of `READERS`.
        reading: How they are read; None for what they are recognised as.
        fetching: How images that are named by their addresses are fetched; None to refuse them.
        left_out: Receives what cannot be used; None for one with the limits that ship.
        say: Called with lines on what the annotations are taken for, and on what is read otherwise
            than it is written.

    Returns:
        The manifest, with the size of each image file in bytes, and with the counts of what is left
        out.

    Raises:
        InputError: For annotations that cannot be read or contradict themselves or the folder, or
            more unusable ones than `left_out` allows.
    """
    if left_out is None:
        left_out = LeftOut()
    if reading is None:
        reading = Reading()
    if images is not None and not (images.is_dir() or remote.address(images)):
        raise _no_folder(images, f"{reading.kind or 'image'}s")
    reader = _reader(annotations, reading.form)
    split_by_name = reading.draw is all_test
    source = Source(annotations, left_out, say, split_by_name=split_by_name)
    table = _read(reader, source)
    table = _usable(table, left_out, annotations)
    table, alone = unpaired.apart(table)
    table = fetch.fetched(table, images, fetching, left_out)
    kind = reading.kind or _named_kind(table, "image")
    noun = "clip" if kind == "video" else "image"
    table, sizes = image_files.find(table, images, kind, left_out, say, annotations)
    table = unpaired.mark_images(table, noun, left_out, annotations, say)
    if "split" not in table.columns:
        captioned = table.loc[table["caption_id"] != NO_CAPTION, "file"]
        drawn = reading.draw(captioned.unique().tolist())
        table["split"] = table["file"].map(drawn).fillna("test")
    table = _with_clips(table, kind, annotations)
    _check_rows(table, annotations)
    if images is not None and reader.names_every_image and not remote.address(images):
        image_files.note_unnamed(images, set(sizes), kind, left_out, say)
    _check(left_out, len(table), annotations)
    unpaired.require_captions(table, noun, annotations)
    table["bytes"] = table["file"].map(sizes)
    if len(alone):
        table = unpaired.with_captions(table, alone, annotations, say)
    if LANGUAGE in table.columns:
        table[LANGUAGE] = _languages(table, annotations)
    _compose_letters(table)
    for column, file in reading.caption_inputs.items():
        table[column] = CAPTION_INPUTS.find(column).read(file, table["caption"])
    rows = arranged(table).reset_index(drop=True)
    return Manifest(rows, dataset, images or Path(), dict(left_out.counts))


def _read(reader: Reader, source: Source) -> pd.DataFrame:
    """Read annotations; a reader that does not say what it took them for is named by its title."""
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        source.say(line)

    try:
        return reader.read(replace(source, say=say))
    finally:  # which of the readers refused them is worth knowing, too
        if not any(": read as " in line for line in lines):
            source.say(f"{source.path}: read as {reader.title}")


def _no_folder(images: Path, noun: str) -> InputError:
    """The error for a folder of images that is not there."""
    if DVC_COPIES in images.absolute().as_posix():
        return InputError(
            f"{images}: no such folder of {noun}: DVC's temporary copies lack what is not in git, such "
            "as data/; have it copied: dvc exp run --temp -C data"
        )
    if images.is_file():
        return InputError(f"{images}: is a file; name the folder of {noun} that it is in")
    stand_in = unfetched.stand_in(images)
    if stand_in:
        return InputError(f"{images}: is {stand_in}")
    return InputError(
        f"{images}: no such folder of {noun}; name it with --{noun}, or give --without-images if "
        "their features are imported"
    )


def _reader(annotations: Path, form: str | None) -> Reader:
    is_remote = bool(remote.address(annotations))
    stand_in = None if is_remote else unfetched.stand_in(annotations)
    if stand_in:
        raise InputError(f"{annotations}: is {stand_in}")
    if form is not None:
        if form not in READERS:
            raise InputError(f"--format: {unknown('format', form, READERS)}")
        return READERS[form]
    if not is_remote and not annotations.exists():
        raise InputError(
            f"{annotations}: no such annotation file; name it with --annotations. Images without captions "
            "need a CSV, too: image,caption, with any words"
        )
    for format_name in _in_turn():
        try:
            reader = READERS[format_name]
            if reader.recognises(annotations):
                return reader
        # A broken reader of an installed package stops no other reader.
        except (InputError, AttributeError) as error:
            warnings.warn(
                f"the reader {format_name!r} is left out: {error}", InputWarning, stacklevel=3
            )
    raise InputError(
        f"{annotations}: unknown format; {_content(annotations)}. Expected a table with "
        f"columns image and caption, or name the format with --format: {', '.join(READERS)}"
    )


def _in_turn() -> list[str]:
    """Formats in the order in which they are asked whether they recognise annotations; those of
    other packages come last.
    """
    return sorted(READERS, key=lambda name: (not READERS.is_built_in(name), name in TABLES))


def _content(path: Path) -> str:
    if path.is_dir():
        file_names = sorted(file.name for file in path.iterdir())
        first_files = ", ".join(file_names[:5])[:200] or "nothing"
        if len(file_names) > 5:
            return f"it holds {first_files} and {len(file_names) - 5} more"
        return f"it holds {first_files}"
    if remote.address(path):
        return "it is in an object store"
    with regular.opened(path) as file:
        beginning = file.read(60)
    for mark, advice in PACKED.items():
        if beginning.startswith(mark):
            return advice
    return f"it begins with {beginning.decode('utf-8', 'replace')!r}"


def _compose_letters(table: pd.DataFrame) -> None:
    """Put captions into Unicode's form NFC, in which ü has one spelling, so that equal captions are
    equal.
    """
    column = [*table.columns].index("caption")
    for first in range(0, len(table), AT_ONCE):  # few at a time become Python objects
        rows = slice(first, first + AT_ONCE)
        captions = table["caption"].iloc[rows].tolist()
        if not all(map(str.isascii, captions)):
            table.iloc[rows, column] = [normalize("NFC", caption) for caption in captions]


def _named_kind(table: pd.DataFrame, otherwise: Kind) -> Kind:
    """What the annotations name, images or clips; `otherwise` if they do not say it."""
    if "kind" not in table.columns:
        return otherwise
    kind: Kind = table["kind"].iloc[0]
    return kind


def _with_clips(table: pd.DataFrame, kind: Kind, source: Path) -> pd.DataFrame:
    """Check that annotations name what the folder holds, and add the columns of clips."""
    named_kind = _named_kind(table, kind)
    if named_kind != kind:
        raise InputError(f"{source}: names {named_kind}s; give their folder with --{named_kind}s")
    if kind == "image":
        return table.drop(columns="kind", errors="ignore")
    start = table.get("start", np.nan)
    end = table.get("end", np.nan)
    table = table.assign(kind=kind, start=start, end=end)
    starts = table["start"]
    ends = table["end"]
    is_empty = ends <= starts.fillna(0)
    is_infinite = np.isinf(starts) | np.isinf(ends)
    wrong_clips = table[(starts < 0) | is_empty | is_infinite]
    if len(wrong_clips):
        file, first_start, first_end = wrong_clips[["file", "start", "end"]].iloc[0]
        clip_start = 0 if np.isnan(first_start) else first_start
        clip_end = "none given" if np.isnan(first_end) else f"{first_end:g} s"
        raise InputError(
            f"{source}: {file!r}: the clip's start ({clip_start:g} s) must be 0 s or "
            f"later and come before its end ({clip_end})"
        )
    return table


def _usable(table: pd.DataFrame, left_out: LeftOut, source: Path) -> pd.DataFrame:
    """Leave out captions that are missing or blank, or whose id occurs twice; name splits as
    manifests do.
    """
    captions = table["caption"]
    if captions.dtype != "str":
        captions = captions.astype("str")
    is_of_nothing = (captions == "") & (table["file"] == "")
    is_blank = table["caption"].isna() | captions.str.isspace() | is_of_nothing
    for file in table.loc[is_blank, "file"]:
        left_out.add("no caption", f"{source}, {file}")
    if is_blank.any():
        table = table[~is_blank]
    if table["caption_id"].duplicated().any():
        repeated_rows = table.duplicated()
        for file in table.loc[repeated_rows, "file"]:
            left_out.add("doubled", f"{source}, {file}")
        table = table[~repeated_rows]
    _check(left_out, len(table), source)
    if not (captions[~is_blank] != "").any():
        reasons = "".join(f"; {line}" for line in left_out.lines())
        raise InputError(f"{source}: holds no captions{reasons}")
    if "split" in table.columns:
        table = _with_plain_splits(table)
    return table.reset_index(drop=True)


def _with_plain_splits(table: pd.DataFrame) -> pd.DataFrame:
    """Name splits as manifests do."""
    plain_splits = {}
    for annotated_split in table["split"].unique():
        split = split_of(annotated_split) if isinstance(annotated_split, str) else None
        if split and split != annotated_split:
            plain_splits[annotated_split] = split
    if not plain_splits:
        return table
    return table.assign(split=table["split"].replace(plain_splits))


def _check(left_out: LeftOut, captions: int, source: Path) -> None:
    with refusing(InputError, lambda error: f"{source}: {error}"):
        left_out.check(captions + sum(left_out.counts.values()))


def _check_rows(table: pd.DataFrame, source: Path) -> None:
    kinds = {table[name].dtype.kind for name in ("image_id", "caption_id")}
    if kinds != {"i"}:
        raise InputError(f"{source}: image and caption ids must be integers of at most 64 bits")
    captions = table.loc[table["caption"] != "", "caption_id"]
    _require_ids(table["image_id"], "image", NO_IMAGE, source)
    _require_ids(captions, "caption", NO_CAPTION, source)
    unknown_split = table[~table["split"].isin(SPLITS)]
    if len(unknown_split):
        raise InputError(
            f"{source}: {unknown_split['file'].iloc[0]!r} is in the unknown split "
            f"{unknown_split['split'].iloc[0]!r}; expected {', '.join(SPLITS)}"
        )
    is_repeated = captions.duplicated()
    if is_repeated.any():
        raise InputError(f"{source}: caption id {captions[is_repeated].iloc[0]} is used twice")
    clip = [column for column in CLIP if column in table.columns]
    images = table.drop_duplicates(["image_id", "file", "split", *clip])
    noun = "clips" if clip else "images"
    for columns, named_by in ((["file", *clip], "file"), (["image_id"], "image id")):
        named_twice = images.duplicated(columns)
        if named_twice.any():
            doubled_name = images.loc[named_twice, columns[0]].tolist()[0]
            raise InputError(
                f"{source}: the {named_by} {doubled_name!r} names two {noun} or splits"
            )


def _require_ids(ids: pd.Series, what: str, none: int, source: Path) -> None:
    """Check that no id is `none`, which is kept for a row without an image or caption."""
    if (ids == none).any():
        raise InputError(
            f"{source}: no {what} may have the id {none}, which means that there is none"
        )


def _languages(table: pd.DataFrame, source: Path) -> list[str]:
    known: dict[str, str] = {}
    if (table["caption_id"] == NO_CAPTION).any():
        known[""] = ""
    rows = zip(table[LANGUAGE], table["file"], table["caption"], strict=True)
    for name, file, caption in rows:
        if name in known:
            continue
        try:
            known[name] = language_tag(name)
        except ValueError as error:
            where = f"caption {caption[:40]!a} of {file}"
            raise InputError(f"{source}: {error} ({where})") from None
    return [known[name] for name in table[LANGUAGE]]

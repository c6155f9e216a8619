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
from pipeline.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES, Kind
from pipeline.files.left_out import LeftOut
from pipeline.manifest import fetch
from pipeline.manifest.dataset import Dataset, Statistics
from pipeline.manifest.image_names import Folder, plain, unnamed
from pipeline.manifest.reader import Reader, Source
from pipeline.manifest.role_graphs import read as graphs_of
from pipeline.manifest.split import SPLITS
from pipeline.manifest.split_names import split_of
from pipeline.manifest.table import AT_ONCE, CLIP, LANGUAGE, NO_FILE, NO_IMAGE, ROLE_GRAPH, Manifest, arranged
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
    "multi30k": "pipeline.manifest.multi30k:READER",
    "webdataset": "pipeline.manifest.webdataset:READER",
    "parquet": "pipeline.manifest.rows.reader:PARQUET",
    "json": "pipeline.manifest.rows.reader:JSON",
    "csv": "pipeline.manifest.rows.reader:CSV",
}, "readers")
"""Format -> its reader. The first that recognises the annotations reads them, unless the user names one."""


ORDINARY = re.compile(r"(?:[^/.\\\0][^/\\\0]*/)*[^/.\\\0][^/\\\0]*")
"""Paths below a folder without a name that begins with a dot. They are safe without the slower checks."""

PACKED = {b"PK\3\4": "it is an Excel workbook, to be saved as CSV UTF-8, or a zip archive, to be unpacked",
          b"\x1f\x8b": "it is compressed by gzip; unpack it", b"BZh": "it is compressed by bzip2; unpack it",
          b"\xd0\xcf\x11\xe0": "it is an old Excel workbook; save it as CSV UTF-8"}
"""How files begin that have to be unpacked or saved otherwise -> what they are."""


def all_test(files: list[str]) -> dict[str, str]:
    """Put all images into the split test: file -> split."""
    return dict.fromkeys(files, "test")


def build(dataset: str, images: Path | None, annotations: Path, form: str | None = None,
          draw: Callable[[list[str]], dict[str, str]] = all_test, kind: Kind | None = None,
          role_graphs: Path | None = None, fetch_addresses: bool = False, on_start: fetch.OnImage = lambda count: None,
          on_image: fetch.OnImage = lambda count: None, left_out: LeftOut | None = None,
          say: Callable[[str], object] = lambda line: None) -> Manifest:
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
        left_out: Receives what cannot be used; None for one with the limits that ship.
        say: Called with a line for what the annotations are taken for, before they are read, and for what is read
            otherwise than it is written.

    Returns:
        The manifest, with the size of each image file in bytes, and with the counts of what is left out.

    Raises:
        InputError: In one line, for missing or unreadable annotations; more that cannot be used than `left_out` allows:
            images that are missing, or have no caption; blank captions; damaged rows. Also for a file named twice; a
            path that leaves the folder; an unknown split; ids used twice; a language that is no language tag; a clip
            that ends before it begins, or is in a tar or in an object store; clips where images are expected, or images
            where clips are; role graphs that do not fit their captions.
    """
    left_out = LeftOut() if left_out is None else left_out
    if images is not None and not (images.is_dir() or remote.address(images)):
        noun = f"{kind or 'image'}s"
        raise InputError(f"{images}: no such folder of {noun}; name it with --{noun}")
    reader = _reader(annotations, form)
    table = reader.read(Source(annotations, left_out, say, split_by_name=draw is all_test))
    table = _usable(table, left_out, annotations)
    table, alone = _apart(table)
    table = fetch.fetched(table, images, fetch_addresses, left_out, on_start, on_image)
    kind = kind or (table["kind"].iloc[0] if "kind" in table.columns else "image")
    table, sizes = _found(table, images, kind, left_out, say, annotations)
    if "split" not in table.columns:
        table["split"] = table["file"].map(draw(table["file"].unique().tolist()))
    table = _with_clips(table, kind, annotations)
    _check_rows(table, annotations)
    if images is not None and reader.names_every_image and not remote.address(images):
        _note_unnamed(images, set(sizes), kind, left_out, say)
    _check(left_out, len(table), annotations)
    table["bytes"] = table["file"].map(sizes)
    if len(alone):
        table = _with_alone(table, alone, annotations, say)
    if LANGUAGE in table.columns:
        table[LANGUAGE] = _languages(table, annotations)
    _compose_letters(table)
    if role_graphs is not None:
        table[ROLE_GRAPH] = graphs_of(role_graphs, table["caption"])
    return Manifest(arranged(table).reset_index(drop=True), dataset, images or Path(), dict(left_out.counts))


def _apart(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Take the captions that belong to no image apart from the others."""
    alone = table["file"] == ""
    return (table[~alone].reset_index(drop=True), table[alone]) if alone.any() else (table, table.iloc[:0])


def _with_alone(table: pd.DataFrame, alone: pd.DataFrame, source: Path, say: Callable[[str], object]) -> pd.DataFrame:
    """Append the captions that belong to no image; without a split of their own they are in test."""
    import pandas as pd

    known = alone.get("split", pd.Series("test", alone.index)).where(lambda split: split.isin(table["split"]))
    if known.isna().any():
        raise InputError(f"{source}: {alone['caption'][known.isna()].iloc[0]!r:.60} belongs to no image, and its split "
                         f"has none; expected one of {', '.join(table['split'].unique())}")
    if (table["image_id"] == NO_IMAGE).any() or alone["caption_id"].isin(table["caption_id"]).any():
        raise InputError(f"{source}: captions that belong to no image need caption ids of their own, and no image may "
                         f"have the id {NO_IMAGE}")
    say(f"note: {counted(len(alone), 'caption')} without an image, such as {alone['caption'].iloc[0]!r:.60}: "
        "candidates, never queries")
    alone = alone.assign(split=known, image_id=NO_IMAGE, bytes=NO_FILE)
    return pd.concat([table, alone.reindex(columns=table.columns)], ignore_index=True)


def _reader(annotations: Path, form: str | None) -> Reader:
    if form is not None:
        if form not in READERS:
            raise InputError(f"--format {form!r}: expected one of {', '.join(READERS)}")
        return READERS[form]
    if not remote.address(annotations) and not annotations.exists():
        raise InputError(f"{annotations}: no such annotation file")
    for name in READERS:
        try:
            reader = READERS[name]
            if reader.recognises(annotations):
                return reader
        except (InputError, AttributeError) as error:  # a broken reader of an installed package stops no other reader
            warnings.warn(f"the reader {name!r} is left out: {error}", InputWarning, stacklevel=3)
    raise InputError(f"{annotations}: unknown format; {_content(annotations)}. Expected a table with "
                     f"columns image and caption, or name the format with --format: {', '.join(READERS)}")


def _content(path: Path) -> str:
    """What a file or folder holds, for a message."""
    if path.is_dir():
        names = sorted(each.name for each in path.iterdir())
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return f"it holds {', '.join(names[:5])[:200] or 'nothing'}{more}"
    if remote.address(path):
        return "it is in an object store"
    with path.open("rb") as file:
        beginning = file.read(60)
    packed = next((what for mark, what in PACKED.items() if beginning.startswith(mark)), None)
    return packed or f"it begins with {beginning.decode('utf-8', 'replace')!r}"


def _compose_letters(table: pd.DataFrame) -> None:
    """Put captions into Unicode's form NFC, in which ü has one spelling, so that equal captions are equal."""
    column = [*table.columns].index("caption")
    for first in range(0, len(table), AT_ONCE):  # few at a time become Python objects
        captions = table["caption"].iloc[first:first + AT_ONCE].tolist()
        if not all(map(str.isascii, captions)):
            table.iloc[first:first + AT_ONCE, column] = [normalize("NFC", caption) for caption in captions]


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
        until = "none given" if np.isnan(end) else f"{end:g} s"
        raise InputError(f"{source}: {file!r}: the clip's start ({0 if np.isnan(start) else start:g} s) must be 0 s or "
                         f"later and come before its end ({until})")
    return table


def _usable(table: pd.DataFrame, left_out: LeftOut, source: Path) -> pd.DataFrame:
    """Leave out blank captions, and captions whose id occurs twice; name splits as manifests do."""
    captions = table["caption"] if table["caption"].dtype == "str" else table["caption"].astype("str")
    blank = table["caption"].isna() | (captions == "") | captions.str.isspace()
    for file in table.loc[blank, "file"]:
        left_out.add("no caption", f"{source}, {file}")
    table = table[~blank] if blank.any() else table
    if (again := table.duplicated("caption_id")).any() and (again := table.duplicated()).any():
        for file in table.loc[again, "file"]:
            left_out.add("doubled", f"{source}, {file}")
        table = table[~again]
    _check(left_out, len(table), source)
    if table.empty:
        raise InputError(f"{source}: holds no captions" + "".join(f"; {line}" for line in left_out.lines()))
    if "split" in table.columns:
        known = {name: split_of(name) if isinstance(name, str) else None for name in table["split"].unique()}
        if other := {name: split for name, split in known.items() if split and split != name}:
            table = table.assign(split=table["split"].replace(other))
    return table.reset_index(drop=True)


def _check(left_out: LeftOut, captions: int, source: Path) -> None:
    with refusing(InputError, lambda error: f"{source}: {error}"):
        left_out.check(captions + sum(left_out.counts.values()))


def _found(table: pd.DataFrame, folder: Path | None, kind: Kind, left_out: LeftOut, say: Callable[[str], object],
           source: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """Find the file of each name: the rows that have one, with the files' names, and each file's size."""
    names = table["file"].unique().tolist()
    if folder is not None and kind == "image" and all(map(ORDINARY.fullmatch, names)):
        sizes = _sizes(folder, names)
        if all(size >= 0 for size in sizes.values()):
            return table, sizes  # as most data sets are: nothing is spelled otherwise or missing
    file_of = {name: name for name in names}
    for name in names:
        if not ORDINARY.fullmatch(name):
            file_of[name] = plain(name, folder)
            _check_path(file_of[name], source)
    if folder is None:
        return _renamed(table, file_of), dict.fromkeys(file_of.values(), NO_FILE)
    if kind == "video":
        _check_plain(folder, [*file_of.values()])
    sizes = _sizes(folder, [*dict.fromkeys(file_of.values())])
    absent = [name for name, file in file_of.items() if sizes[file] < 0]
    if absent and not remote.address(folder):
        spelled = Folder(folder)
        file_of |= spelled.find(absent, folder)
        sizes |= _sizes(folder, [file_of[name] for name in absent])
        absent = [name for name in absent if sizes[file_of[name]] < 0]
    if changed := [name for name, file in file_of.items() if name != file and sizes[file] >= 0]:
        say(f"note: names of {counted(len(changed), kind)} are spelled differently from their files, whose spelling "
            f"is used, such as {file_of[changed[0]]} for {changed[0]!r}")
    if absent:
        hint = "" if remote.address(folder) else spelled.meant(absent[0])
        if len(absent) == len(names):
            raise InputError(f"{folder / absent[0]}: no such {kind}, though {source.name} names it; {len(absent)} of "
                             f"{len(names)} {kind}s that it names are not in the folder{hint}")
        captions = table["file"].value_counts()
        for name in absent:
            left_out.add(f"{kind} missing", f"{folder / name}{hint}", count=int(captions[name]))
            hint = ""
        table = table[~table["file"].isin(absent)].reset_index(drop=True)
        file_of = {name: file for name, file in file_of.items() if sizes[file] >= 0}
    return _renamed(table, file_of), {file: sizes[file] for file in file_of.values()}


def _renamed(table: pd.DataFrame, file_of: dict[str, str]) -> pd.DataFrame:
    """Replace names by files. Names of one file are one image."""
    if all(name == file for name, file in file_of.items()):
        return table
    several = len({*file_of.values()}) < len(file_of)
    table = table.assign(file=table["file"].map(file_of))
    if several:
        table["image_id"] = table.groupby("file", sort=False)["image_id"].transform("first")
        order = table.groupby("file", sort=False).ngroup().argsort(kind="stable")
        table = table.iloc[order].reset_index(drop=True)
    return table


def _note_unnamed(folder: Path, named: set[str], kind: Kind, left_out: LeftOut, say: Callable[[str], object]) -> None:
    """Count images of the folder that the annotations do not name."""
    images, companions = unnamed(folder, named, VIDEO_SUFFIXES if kind == "video" else IMAGE_SUFFIXES)
    for file in images:
        left_out.add(f"{kind} without a caption", f"{folder / file}", apart=True)  # captions of a part are ordinary
    if companions:
        say(f"note: ignored {counted(len(companions), 'file')} that macOS or Windows added, such as {companions[0]}")


def _check_rows(table: pd.DataFrame, source: Path) -> None:
    if {table[name].dtype.kind for name in ("image_id", "caption_id")} != {"i"}:
        raise InputError(f"{source}: image and caption ids must be integers of at most 64 bits")
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
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\0" in file:
        raise InputError(f"{source}: the path {file!r} leaves the image folder")


def _check_plain(folder: Path, files: list[str]) -> None:
    packed = next((file for file in files if containers.inside(folder / file)), None)
    if packed is not None or remote.address(folder):
        where = remote.address(folder) or folder / str(packed)
        raise InputError(f"{where}: clips are decoded from plain files of this machine; copy or unpack them")


def _sizes(folder: Path, files: list[str]) -> dict[str, int]:
    """File -> its size in bytes, -1 if there is none."""
    with refusing(OSError, str):
        sizes = containers.sizes(folder, files)
    return sizes | {file: _size(folder, file) for file in files if file not in sizes}


def _size(folder: Path, file: str) -> int:
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
        images = rows["image_id"][rows["image_id"] != NO_IMAGE].nunique()
        return Statistics(images=images, captions=len(rows), unique_captions=texts,
                          shortest=int(lengths.min()), longest=int(lengths.max()))

    return {split: count(split) for split in sorted(manifest.images["split"].unique())}


def compared(card: Dataset, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    """The differences of a manifest from what its card states; what agrees; what is not compared, and why."""
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

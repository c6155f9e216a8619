"""From an annotation file and a folder of images to a checked manifest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath

import pandas as pd
from pandas.api.types import is_signed_integer_dtype as is_integer_dtype

from pipeline.errors import InputError
from pipeline.manifest import captions_csv, karpathy
from pipeline.manifest.table import COLUMNS, NO_FILE, SPLITS, Manifest

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}
READERS = {".json": karpathy.read, ".csv": captions_csv.read}


def build(dataset: str, images: Path | None, annotations: Path) -> Manifest:
    """Read annotations (Karpathy's .json, or .csv with image, caption, split), check them against the folder.

    images: None where there are features to import but no photographs; the files are then not looked at.

    Raises InputError, in one line, for: a missing or unreadable annotation file or image; a file named twice;
    a caption without image or image without caption (with a .csv also an image of the folder that it does not
    name; Karpathy's files leave out some of Flickr's photographs on purpose); an empty caption; text that is not
    UTF-8; a path that leaves the folder; an unknown split; ids used twice.
    """
    reader = READERS.get(annotations.suffix.lower())
    if reader is None:
        raise InputError(f"{annotations}: expected a .json (Karpathy's layout) or .csv (image,caption,split) file")
    if images is not None and not images.is_dir():
        raise InputError(f"{images}: no such folder of images; name it with --images")
    table = reader(_text(annotations))
    if table.empty:
        raise InputError(f"{annotations}: holds no captions")
    _check_rows(table, annotations)
    if images is not None and reader is captions_csv.read:
        _check_all_told(images, set(table["file"]), annotations)
    for file in table["file"].unique():
        _check_path(file, annotations)
    sizes = {file: _size(images, file, annotations) if images else NO_FILE for file in table["file"].unique()}
    table.insert(2, "bytes", table["file"].map(sizes))
    return Manifest(table.astype(COLUMNS).reset_index(drop=True), dataset, images or Path())


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such annotation file; name it with --annotations") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected an annotation file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def _check_all_told(folder: Path, named: set[str], source: Path) -> None:
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*")
             if path.suffix.lower() in IMAGE_SUFFIXES)
    silent = sorted(set(files) - named)
    if silent:
        raise InputError(f"{folder}: {len(silent)} images have no caption in {source.name}, the first "
                         f"{silent[0]!r}; caption them or take them out of the folder")


def _check_rows(table: pd.DataFrame, source: Path) -> None:
    if not (is_integer_dtype(table["image_id"]) and is_integer_dtype(table["caption_id"])):
        raise InputError(f"{source}: image and caption ids must be integers of at most 64 bits")
    empty = table[table["caption"].str.strip() == ""]
    if len(empty):
        raise InputError(f"{source}: empty caption for {empty['file'].iloc[0]!r} ({len(empty)} in all)")
    unknown = table[~table["split"].isin(SPLITS)]
    if len(unknown):
        raise InputError(f"{source}: {unknown['file'].iloc[0]!r} is in the unknown split "
                         f"{unknown['split'].iloc[0]!r}; expected {', '.join(SPLITS)}")
    if table["caption_id"].duplicated().any():
        twice = table.loc[table["caption_id"].duplicated(), "caption_id"].iloc[0]
        raise InputError(f"{source}: caption id {twice} is used twice")
    images = table.drop_duplicates(["image_id", "file", "split"])
    for column, what in (("file", "file"), ("image_id", "image id")):
        value, times = Counter(images[column]).most_common(1)[0]
        if times > 1:
            raise InputError(f"{source}: the {what} {value!r} stands for two images or in two splits")


def _check_path(file: str, source: Path) -> None:
    path = PurePosixPath(file)
    if path.as_posix() != file:
        raise InputError(f"{source}: write the path {file!r} as {path.as_posix()!r}, so that no file has two names")
    if path.is_absolute() or ".." in path.parts or "\\" in file or "\0" in file:
        raise InputError(f"{source}: the path {file!r} leaves the image folder")


def _size(folder: Path, file: str, source: Path) -> int:
    place = folder / file
    try:  # folders may be links, those are the user's own; a linked file that leads out is refused
        inside = place.resolve().is_relative_to(folder.resolve()) or not place.is_symlink()
        size = place.stat().st_size if place.is_file() else -1
    except (OSError, RuntimeError):  # RuntimeError: a link that leads in a circle, before Python 3.13
        inside, size = True, -1
    if not inside:
        raise InputError(f"{source}: the path {file!r} leaves the image folder")
    if size < 0:
        raise InputError(f"{place}: no such image, though {source.name} names it")
    return size

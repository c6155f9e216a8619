"""SCAN's layout (Lee et al., ECCV 2018): for each split a file of captions and one of images' ids,
beside features.

{split}_caps.txt   five captions per image, in the images' order, a line each
{split}_ids.txt    an id for each image or for each caption: COCO's image id, for Flickr30K
                   Karpathy's imgid
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.foundation.files import regular
from pipeline.foundation.manifest.reader import Reader, Source, table_of
from pipeline.foundation.manifest.text_file import not_utf8
from pipeline.foundation.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import pandas as pd

# The manifest's split -> SCAN's names of it; the first that exists is read. COCO's `test` is the
# first 1,000 images of its `testall`.
NAMES = {"train": ("train",), "val": ("dev", "val"), "test": ("testall", "test")}
CAPTIONS = 5  # per image


def splits(folder: Path, ending: str) -> dict[str, str]:
    """The splits of which a folder has a file with this ending -> SCAN's names of them."""
    name_of: dict[str, str] = {}
    for split, choice in NAMES.items():
        scan_names = [name for name in choice if (folder / f"{name}_{ending}").is_file()]
        if scan_names:
            name_of[split] = scan_names[0]
    return name_of


def lines(path: Path) -> list[str]:
    """Read the lines of a text file."""
    with (
        not_utf8(path),
        refusing(
            OSError,
            lambda error: f"{path}: {error.strerror}; SCAN's layout has it beside the features",
        ),
    ):
        content = regular.content(path)
        text = content.decode("utf-8-sig")
    if not text:
        return []
    without_end = text.rstrip("\r\n")
    return [line.strip() for line in without_end.split("\n")]


def read(source: Source) -> pd.DataFrame:
    """Read the captions of all splits, a row each; an image is called as its id."""
    names = splits(source.path, "caps.txt")
    files = ", ".join(f"{name}_caps.txt" for name in names.values())
    source.say(
        f"{source.path}: read as SCAN's files, {files}, "
        f"{CAPTIONS} captions an image; split by the names of the files"
    )
    images = (_images(source.path, split, name) for split, name in names.items())
    return table_of(chain.from_iterable(images))


def _images(folder: Path, split: str, name: str) -> Iterator[tuple[int, str, str, list[str]]]:
    captions = lines(folder / f"{name}_caps.txt")
    ids_file = folder / f"{name}_ids.txt"
    ids = lines(ids_file)
    images = len(captions) // CAPTIONS
    is_even = len(captions) % CAPTIONS == 0
    ids_fit = len(ids) in (images, len(captions))
    if not images or not is_even or not ids_fit:
        raise InputError(
            f"{ids_file}: {len(ids)} ids and {len(captions)} captions do not fit; expected five captions "
            "an image, and an id for each image or for each caption"
        )
    image_ids = ids[:: len(ids) // images]
    for image, image_id in enumerate(image_ids):
        first = image * CAPTIONS
        of_image = captions[first : first + CAPTIONS]
        with refusing(ValueError, f"{ids_file}: expected an image's number, got {image_id!r}"):
            yield int(image_id), image_id, split, of_image


def _is_scan(path: Path) -> bool:
    return path.is_dir() and bool(splits(path, "caps.txt"))


READER = Reader("SCAN's folder", _is_scan, read)

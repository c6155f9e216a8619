"""Multi30K (Elliott et al. 2016): Flickr30K's photographs with captions in English, German, French
and Czech.

The root is a clone of the repository `multi30k/dataset`, or its folder `data`. Task 2 has five
independent captions per image in English and in German. Task 1 has one English caption, which is
one of those five, with its translations; of these French and Czech are taken. Geigle et al. (TACL
2022, section 4) train and test on the same 12 captions.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pipeline.foundation.manifest.columns import LANGUAGE
from pipeline.foundation.manifest.reader import Reader, Source
from pipeline.foundation.manifest.text_file import text_of
from pipeline.foundation.parts.errors import InputError, refusing

# Bytes of an unpacked file; Multi30K's largest has 2.7 million. A file that unpacks to more is
# damaged or hostile.
LARGEST = 64_000_000


# For each caption of an image its language, the task's folder, the end of the file's name after the
# split, and the task's name for the test split of 2016.
SOURCES = [
    *(("en", "task2", f"{number}.en", "test_2016") for number in range(1, 6)),
    *(("de", "task2", f"{number}.de", "test_2016") for number in range(1, 6)),
    ("fr", "task1", "fr", "test_2016_flickr"),
    ("cs", "task1", "cs", "test_2016_flickr"),
]
# Split -> task 2's list of images, in the order of the captions. Task 1's lists are equal.
LISTS = {"train": "train_images.txt", "val": "val_images.txt", "test": "test_2016_images.txt"}


def read(source: Source) -> pd.DataFrame:
    """Read the captions of train, val and test (test_2016), a row each; images are numbered in the
    lists' order.
    """
    path = source.path
    root = _data(path)
    source.say(
        f"{path}: read as Multi30K's files, UTF-8, packed by gzip; captions in en and de of task2, in fr and cs "
        "of task1; split by the names of the files"
    )
    rows: list[tuple[int, str, str, int, str, str]] = []
    images = 0
    for split, list_name in LISTS.items():
        list_file = root / "task2" / "image_splits" / list_name
        listed = text_of(list_file).split()
        columns = _columns(root, split, len(listed))
        captions_of_images = zip(*columns, strict=True)
        for image, captions in zip(listed, captions_of_images, strict=True):
            for language, caption in captions:
                caption_id = len(rows)
                rows.append((images, image, split, caption_id, caption, language))
            images += 1
    manifest_columns = ["image_id", "file", "split", "caption_id", "caption", LANGUAGE]
    return pd.DataFrame(rows, columns=manifest_columns)


def _columns(root: Path, split: str, images: int) -> Iterator[list[tuple[str, str]]]:
    """For each caption that an image of the split has, a list over images of (language,
    caption).
    """
    for language, task, ending, test in SOURCES:
        split_in_name = test if split == "test" else split
        file = root / task / "raw" / f"{split_in_name}.{ending}.gz"
        captions = _lines(file)
        if len(captions) != images:
            raise InputError(
                f"{file}: expected {images} lines, one for each image of {split}, received {len(captions)}"
            )
        yield [(language, caption) for caption in captions]


def _lines(file: Path) -> list[str]:
    with (
        refusing(
            (OSError, EOFError, zlib.error, UnicodeDecodeError),
            lambda error: f"{file}: not a packed text file in UTF-8: {error}",
        ),
        refusing(
            (FileNotFoundError, NotADirectoryError),
            f"{file}: no such file; --annotations must be a clone of "
            "multi30k/dataset, with task 1 and task 2",
        ),
        gzip.open(file) as packed_captions,
    ):
        content = packed_captions.read(LARGEST + 1)
        captions_text = content.decode("utf-8")
    if len(content) > LARGEST:
        raise InputError(
            f"{file}: unpacks to more than {LARGEST:,} bytes; it is damaged, or no file of Multi30K"
        )
    # Not splitlines, which also cuts at rare characters inside a caption.
    return captions_text.removesuffix("\n").split("\n")


def _data(path: Path) -> Path:
    if (path / "data" / "task2").is_dir():
        return path / "data"
    return path


def _is_multi30k(path: Path) -> bool:
    return (_data(path) / "task2" / "raw").is_dir()


READER = Reader("a clone of multi30k/dataset", _is_multi30k, read)

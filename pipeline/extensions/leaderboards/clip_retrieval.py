"""The folder that clip-retrieval's inference writes: shards of vectors, and the paths of images.

img_emb/img_emb_00.npy          float16 [n, D]; row i of all three is one pair
text_emb/text_emb_00.npy        float16 [n, D]
metadata/metadata_00.parquet    image_path, caption, …
"""

import re
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.judgements import typed_columns
from pipeline.foundation.evaluation.retrieval import Ids
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.parts.errors import InputError, counted, first_line, refusing
from pipeline.judge.systems.scores.foreign import scores as of_arrays, shards
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays, joined
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import Scores
from pipeline.judge.systems.scores.judged import Columns

IMAGES = "img_emb"
CAPTIONS = "text_emb"
METADATA = "metadata"
PARTS = (IMAGES, CAPTIONS, METADATA)
PATH = "image_path"
# Vectors of one photograph that are nearer than this share of their length are equal.
SAME = 0.01
ROWS_AT_ONCE = 1 << 12
# Numbers that a line lists.
SHOWN = 5


class Folder(FileSet):
    """clip-retrieval's vectors of images and captions; an image is there once for each caption."""

    @classmethod
    def recognises(cls, typed: Typed) -> bool:
        path, _ = typed[0]
        if len(typed) > 1:
            return False
        folder = _folder(path)
        there = _there(folder)
        is_of_vectors = any(any((folder / name).glob("*.npy")) for name in (IMAGES, CAPTIONS))
        # Both sides without paths are read by themselves.
        return is_of_vectors and (folder != path or there != [IMAGES, CAPTIONS])

    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        ((path, parts),) = typed
        _require_all(path)
        if parts:
            raise InputError(f"{path}: holds one set of vectors; leave out :{':'.join(parts)}")
        files = _files(path)
        images = []
        captions = []
        paths: list[str] = []
        for number, shard in files.items():
            images.append(shards.array(shard.images))
            captions.append(shards.array(shard.captions))
            of_shard = _paths_of(shard.metadata)
            _require_pairs(f"{path}: shard {number}", images[-1], captions[-1], len(of_shard))
            paths += of_shard
        names = np.array(paths)
        image_of_row, first_row = _images(names)
        vectors = joined(images, str(path / IMAGES)).read()
        of_images = vectors[first_row]
        arrays = {
            "image_features": Array.of(of_images),
            "text_features": joined(captions, str(path / CAPTIONS)),
            "image_names": Array.of(names[first_row]),
            "caption_image": Array.of(image_of_row),
        }
        title = f"clip-retrieval's folder, rows of one image_path are one image{_gaps([*files])}"
        differing = _differing(vectors, of_images, image_of_row)
        if differing:
            title += f"; {counted(differing, 'row')} of an image with another vector than its first, which is read"
        return of_arrays.of_files([(path, Arrays(title, arrays), [])], columns, normalise)


def _differing(vectors: np.ndarray, of_images: np.ndarray, image_of_row: Ids) -> int:
    """How many rows [N, D] differ from the vector of their image by more than batches in half
    precision do.
    """
    differing = 0
    for first in range(0, len(vectors), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        of_first = of_images[image_of_row[rows]].astype(np.float64)
        apart = np.linalg.norm(vectors[rows] - of_first, axis=1)
        differing += int((apart > SAME * np.linalg.norm(of_first, axis=1)).sum())
    return differing


def _folder(path: Path) -> Path:
    """The folder that is meant where one of those in it is typed."""
    if path.name in PARTS and path.is_dir():
        return path.parent
    return path


def _there(folder: Path) -> list[str]:
    """Which of clip-retrieval's folders a folder has."""
    return [name for name in PARTS if (folder / name).is_dir()]


def _require_all(path: Path) -> None:
    """Refuse a folder that lacks one of the three, or one of these that is typed alone."""
    folder = _folder(path)
    there = _there(folder)
    missing = [name for name in PARTS if name not in there]
    if missing == [METADATA]:
        raise InputError(
            f"{path}: is one side; without {METADATA} beside it name both, images first: "
            f"{folder / IMAGES}:{folder / CAPTIONS}"
        )
    if missing:
        raise InputError(
            f"{folder}: has clip-retrieval's {' and '.join(there)}, and lacks {' and '.join(missing)} beside it; "
            "images and captions are compared, so run it with --enable_image and --enable_text"
        )
    if folder != path:
        raise InputError(f"{path}: is one of clip-retrieval's three folders; name {folder}")


class Shard(NamedTuple):
    """The files of one partition, whose rows are pairs."""

    images: Path
    captions: Path
    metadata: Path


def _files(path: Path) -> dict[int, Shard]:
    """The files of each shard by its number, in order. A partition without rows has none, so a
    number that is missing in all three folders is no fault.
    """
    of_folder = {
        IMAGES: shards.by_number(path / IMAGES),
        CAPTIONS: shards.by_number(path / CAPTIONS),
        METADATA: _tables(path / METADATA),
    }
    files = {}
    for number in sorted({*chain.from_iterable(of_folder.values())}):
        lacking = [name for name, found in of_folder.items() if number not in found]
        if lacking:
            others = [name for name in of_folder if name not in lacking]
            raise InputError(
                f"{path}: shard {number} is missing in {' and '.join(lacking)}, and there in "
                f"{' and '.join(others)}; expected it in all three folders, or in none"
            )
        files[number] = Shard(*(found[number] for found in of_folder.values()))
    return files


def _require_pairs(shard: str, images: Array, captions: Array, paths: int) -> None:
    """Refuse a shard whose files have different numbers of rows: those that follow would be
    paired wrongly.
    """
    if images.shape[:1] == captions.shape[:1] == (paths,):
        return
    raise InputError(
        f"{shard} has {images} in {IMAGES}, {captions} in {CAPTIONS} and {paths:,} rows in {METADATA}, "
        "expected as many rows in each: its files are of different runs"
    )


def _gaps(numbers: Sequence[int]) -> str:
    """Say which numbers no shard has, as the end of a title; "" for none. numbers: in order."""
    first = min(numbers[0], 1)
    count = numbers[-1] + 1 - first - len(numbers)
    if not count:
        return ""
    there = {*numbers}
    missing = (number for number in range(first, numbers[-1]) if number not in there)
    shown = ", ".join(map(str, islice(missing, SHOWN)))
    more = ""
    if count > SHOWN:
        more = f" and {count - SHOWN:,} more"
    return f", {counted(count, 'empty partition')}: no shard {shown}{more} in any of its folders"


def _tables(folder: Path) -> dict[int, Path]:
    """The tables of metadata by the numbers of their shards."""
    files: dict[int, Path] = {}
    for file in sorted(folder.glob("*.parquet")):
        number = _number(file)
        if number in files:
            raise InputError(f"{folder}: has two shards of the number {number}")
        files[number] = file
    if not files:
        raise InputError(f"{folder}: holds no .parquet, which says which image each row is of")
    return files


def _number(file: Path) -> int:
    """The number of a shard, at the end of its name."""
    number = re.search(r"\d{1,9}$", file.stem)
    if number is None:
        raise InputError(f"{file}: has no number, which says which shards of vectors it belongs to")
    return int(number[0])


def _paths_of(file: Path) -> list[str]:
    """The path of each row's image, of one shard."""
    damaged = f"{file}: is damaged, cut short or no Parquet file"
    with refusing(Exception, lambda error: f"{damaged} ({first_line(error)})"):
        expansion = Expansion(file)
        table = typed_columns.opened(file, expansion)
        if PATH not in table.schema_arrow.names:
            raise InputError(f"{file}: has no column {PATH}")
        column = typed_columns.decoded(table.read([PATH])[PATH], expansion)
        if column.null_count:
            raise InputError(f"{file}: {column.null_count:,} rows have no {PATH}")
        return list(map(str, column.to_pylist()))


def _images(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The image of each row, numbered in the order of their first rows, and these rows."""
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[group], first[order]

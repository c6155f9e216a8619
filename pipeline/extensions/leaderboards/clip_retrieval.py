"""The folder that clip-retrieval's inference writes: shards of vectors, and the paths of images.

img_emb/img_emb_00.npy          float16 [n, D]; row i of all three is one pair
text_emb/text_emb_00.npy        float16 [n, D]
metadata/metadata_00.parquet    image_path, caption, …
"""

import re
from pathlib import Path

import numpy as np

from pipeline.foundation.evaluation.judgements import typed_columns
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.judge.systems.scores.foreign import scores as of_arrays, shards
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import Scores
from pipeline.judge.systems.scores.judged import Columns

IMAGES = "img_emb"
CAPTIONS = "text_emb"
METADATA = "metadata"
PATH = "image_path"


class Folder(FileSet):
    """clip-retrieval's vectors of images and captions; an image is there once for each caption."""

    @classmethod
    def recognises(cls, typed: Typed) -> bool:
        path, _ = typed[0]
        return len(typed) == 1 and all(
            (path / name).is_dir() for name in (IMAGES, CAPTIONS, METADATA)
        )

    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        ((path, parts),) = typed
        if parts:
            raise InputError(f"{path}: holds one set of vectors; leave out :{':'.join(parts)}")
        images = shards.read(path / IMAGES).arrays[""]
        captions = shards.read(path / CAPTIONS).arrays[""]
        names = np.array(_paths(path / METADATA))
        if not len(names) == images.shape[0] == captions.shape[0]:
            raise InputError(
                f"{path}: {images.shape[0]:,} image vectors, {captions.shape[0]:,} caption vectors and "
                f"{len(names):,} rows of metadata, expected as many of each: a shard is missing"
            )
        image_of_row, first_row = _images(names)
        arrays = {
            "image_features": Array.of(images.read()[first_row]),
            "text_features": captions,
            "image_names": Array.of(names[first_row]),
            "caption_image": Array.of(image_of_row),
        }
        title = "clip-retrieval's folder, rows of one image_path are one image"
        return of_arrays.of_files([(path, Arrays(title, arrays), [])], columns, normalise)


def _paths(folder: Path) -> list[str]:
    """The path of each row's image, of all shards in order."""
    files = sorted(folder.glob("*.parquet"), key=_number)
    if not files:
        raise InputError(f"{folder}: holds no .parquet, which says which image each row is of")
    paths: list[str] = []
    for file in files:
        paths += _paths_of(file)
    return paths


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

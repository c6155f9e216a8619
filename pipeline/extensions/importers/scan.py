"""SCAN's format, which the successors of VSE++ read: an array beside each split's captions and ids.

    {split}_ims.npy    [n, N, D], or [5n, N, D] with a copy of the image for each of its five
                       captions
    {split}_counts.npy [n], valid items of each image; written by `pipeline store export` where they
                       vary

`pipeline.foundation.manifest.scan` reads captions and ids. The array is memory-mapped for one image
at a time, so that its pages do not fill the memory. Ids and captions are compared with the
manifest's: nothing else shows that both describe the same images.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.extensions.importers.base import FeatureSource, OnFound, Place, SourceItems
from pipeline.foundation.files import npy
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.columns import NO_IMAGE
from pipeline.foundation.manifest.image_ids import by_image_id
from pipeline.foundation.manifest.scan import CAPTIONS, lines, splits
from pipeline.foundation.parts.errors import InputError, refusing

REPEATS = 64  # images whose five copies are compared


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Index a folder's splits and compare their ids and captions with the manifest's."""
    if len(paths) != 1 or not paths[0].is_dir():
        raise InputError(
            f"{', '.join(map(str, paths))}: expected one folder with SCAN's files, dev_ims.npy and so on"
        )
    folder = paths[0]
    names = list(splits(folder, "ims.npy").values())
    if not names:
        raise InputError(
            f"{folder}: expected one at least of train_ims.npy, dev_ims.npy, testall_ims.npy, "
            "test_ims.npy"
        )
    texts = TextCheck(manifest)
    source = FeatureSource(manifest, _read)
    for name in names:
        on_found(_add(source, folder, name, texts))
    arrays = [f"{name}_ims.npy" for name in names]
    source.title = f"SCAN's files, {', '.join(arrays)}, {CAPTIONS} captions an image"
    if texts.others:
        images = len(texts.others) + len(source.places)
        source.notes.append(
            f"{len(texts.others):,} of {images:,} images are not in the manifest, the first "
            f"{texts.others[0]}"
        )
    if texts.unlike:
        source.notes.append(
            f"{texts.unlike:,} of {texts.compared:,} captions are spelt otherwise than in the manifest"
        )
    return source


def _read(place: Place) -> SourceItems:
    row, count = place.at
    return SourceItems(np.array(_mapped(place.file)[row, :count], np.float32))


def _add(source: FeatureSource, folder: Path, name: str, texts: TextCheck) -> int:
    """Add a split's images to the source; the number of its images."""
    file, ids_file, captions_file, counts_file = (
        folder / f"{name}_{what}" for what in ("ims.npy", "ids.txt", "caps.txt", "counts.npy")
    )
    ids = lines(ids_file)
    captions = lines(captions_file)
    array = _mapped(file)
    step = _step(file, array, len(ids), len(captions))
    n = len(array) // step
    items, dimension = array.shape[1:]
    if source.files:
        others_items, others_dimension = _mapped(source.files[0]).shape[1:]
        if (items, dimension) != (others_items, others_dimension):
            raise InputError(
                f"{file}: expected {others_items} items of {others_dimension} values an image, as in "
                f"{source.files[0].name}, got {items} of {dimension}; give one set of features"
            )
    rows = texts.rows(ids_file, ids, captions_file, captions)
    counts = _counts(counts_file, n, items).tolist()
    for image, (row, count) in enumerate(zip(rows, counts, strict=True)):
        if row is None:
            continue
        if row in source.places:
            raise InputError(
                f"{file}: image {image} is also in {source.places[row].file.name}; "
                "an image belongs to one split"
            )
        source.places[row] = Place(file, f"row {image * step}", (image * step, count))
        source.counts[row] = count
    source.dimension = dimension
    source.files = [*source.files, file, ids_file, captions_file]
    if counts_file.exists():
        source.files.append(counts_file)
    return n


def _loaded(file: Path) -> np.ndarray:
    # numpy's own message advises to allow pickles
    with refusing(
        (OSError, ValueError, EOFError),
        f"{file}: not readable as an array; fetch or write it again",
    ):
        return npy.mapped(file)


def _mapped(file: Path) -> np.ndarray:
    array = _loaded(file)
    if array.ndim != 3 or array.dtype.kind != "f" or not array.size:
        raise InputError(
            f"{file}: expected floats of shape [images, items, values], got {array.dtype} {array.shape}"
        )
    return array


def _step(file: Path, array: np.ndarray, ids: int, captions: int) -> int:
    """Rows of the array per image: 1, or 5 if each caption has its own copy of the image."""
    n, rest = divmod(captions, CAPTIONS)
    if rest or not n or len(array) not in (n, captions) or ids not in (n, captions):
        raise InputError(
            f"{file}: {len(array)} images, {ids} ids and {captions} captions do not fit; expected five "
            "captions an image, and a row and an id for each image or for each caption"
        )
    step = len(array) // n
    if step == 1:
        return step
    for image in np.unique(np.linspace(0, n - 1, min(n, REPEATS)).astype(np.int64)):
        start = image * step
        first = array[start]
        for row in range(start + 1, start + step):
            if not np.array_equal(first, array[row], equal_nan=True):
                raise InputError(
                    f"{file}: has a row a caption, expected the five rows of an image to be equal, rows "
                    f"{start} and {row} are not"
                )
    return step


def _counts(file: Path, n: int, items: int) -> np.ndarray:
    """Items of each image, int64 [n]; all N if there is no file of counts."""
    if not file.is_file():
        return np.full(n, items)
    counts = _loaded(file)
    is_whole = counts.shape == (n,) and counts.dtype.kind in "iu"
    if not is_whole or counts.min() < 1 or counts.max() > items:
        raise InputError(
            f"{file}: expected {n} integers of 1 to {items}, got {counts.dtype} {counts.shape}"
        )
    return counts.astype(np.int64)


def bare(caption: str) -> str:
    """Reduce a caption to lower-case letters and digits without accents: released files hold
    tokenised captions.
    """
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKD", caption).casefold())


class TextCheck:
    """Finds the manifest's images by id and compares their captions."""

    # More than half of an image's captions must be the manifest's. Not all: the tokeniser of the
    # released COCO files changed the spelling of some words ("colour" occurs in none of the 25,000
    # test captions).

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.row_of, self.name_of = by_image_id(manifest)
        captions = manifest.rows(
            ["image_id", "caption"], lambda rows: rows[rows["image_id"] != NO_IMAGE]
        )
        self.captions = captions.groupby("image_id", sort=False)["caption"].agg(list).tolist()
        self.compared = self.unlike = 0
        self.others: list[str] = []  # images that the manifest lacks

    def rows(
        self, ids_file: Path, ids: list[str], captions_file: Path, captions: list[str]
    ) -> list[int | None]:
        """Find the manifest's row of each image, None for one that it lacks; most must be there."""
        n = len(captions) // CAPTIONS
        step = len(ids) // n
        image_of: dict[int, int] = {}  # row -> image
        matched: list[int | None] = []
        missing: tuple[int, str] | None = None
        for image in range(n):
            line = image * step + 1
            id_ = _only(ids[image * step : (image + 1) * step], line, ids_file)
            row = self._row(id_)
            matched.append(row)
            if row is None:
                missing = missing or (line, id_)
                self.others.append(f"{id_!r} in {ids_file}, line {line}")
                continue
            if row in image_of:
                raise InputError(
                    f"{ids_file}, line {line}: the id {id_} is also in line "
                    f"{image_of[row] * step + 1}; an image has one place"
                )
            image_of[row] = image
            first = image * CAPTIONS
            self._compare(row, captions[first : first + CAPTIONS], captions_file, first + 1)
        if missing and len(image_of) < n / 2:
            line, id_ = missing
            raise InputError(
                f"{ids_file}, line {line}: expected an image id of {self.manifest.dataset}, got "
                f"{id_!r}; give the manifest of these images, it has {len(image_of):,} of {n:,}"
            )
        self.compared += CAPTIONS * len(image_of)
        return matched

    def _row(self, id_: str) -> int | None:
        """The manifest's row of an id."""
        for name in self.name_of(id_):
            if name in self.row_of:
                return self.row_of[name]
        return None

    def _compare(self, row: int, captions: Sequence[str], file: Path, line: int) -> None:
        """Compare an image's captions, which begin at a line, with those of the manifest's row."""
        known = {bare(caption) for caption in self.captions[row]}
        unlike = []
        for number, caption in enumerate(captions, line):
            if bare(caption) not in known:
                unlike.append((number, caption))
        self.unlike += len(unlike)
        if len(unlike) > CAPTIONS // 2:
            number, caption = unlike[0]
            raise InputError(
                f"{file}, line {number}: {caption!r} is no caption of "
                f"image {self.manifest.images['image_id'][row]} in the manifest, which has "
                f"{self.captions[row][0]!r}; give the manifest of the features' data set"
            )


def _only(ids: Sequence[str], line: int, file: Path) -> str:
    """The id of an image, which begins at a line, and is repeated for each of its captions."""
    if any(id_ != ids[0] for id_ in ids):
        raise InputError(
            f"{file}: has an id a caption, expected the lines {line} to {line + len(ids) - 1} to "
            f"be equal, got {', '.join(ids)}"
        )
    return ids[0]

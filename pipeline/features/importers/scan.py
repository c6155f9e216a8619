"""SCAN's format, which the successors of VSE++ read: an array beside each split's captions and ids.

    {split}_ims.npy    [n, N, D], or [5n, N, D] with a copy of the image for each of its five
                       captions
    {split}_counts.npy [n], valid items of each image; written by `pipeline store export` where they
                       vary

`pipeline.manifest.scan` reads captions and ids. The array is memory-mapped for one image at a time,
so that its pages do not fill the memory. Ids and captions are compared with the manifest's: nothing
else shows that both describe the same images.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.features.importers.base import FeatureSource, OnFound, Place, SourceItems
from pipeline.files import npy
from pipeline.manifest import Manifest
from pipeline.manifest.columns import NO_IMAGE
from pipeline.manifest.image_ids import by_image_id
from pipeline.manifest.scan import CAPTIONS, lines, splits
from pipeline.parts.errors import InputError, refusing

REPEATS = 64  # images whose five copies are compared


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Index a folder's splits and compare their ids and captions with the manifest's."""
    if len(paths) != 1 or not paths[0].is_dir():
        raise InputError(
            f"{', '.join(map(str, paths))}: expected one folder with SCAN's files, dev_ims.npy and so on"
        )
    folder = paths[0]
    names = [*splits(folder, "ims.npy").values()]
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
        every = len(texts.others) + len(source.places)
        source.notes.append(
            f"{len(texts.others):,} of {every:,} images are not in the manifest, the first "
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
    file, ids_file, captions_file, counts_file = (
        folder / f"{name}_{what}" for what in ("ims.npy", "ids.txt", "caps.txt", "counts.npy")
    )
    ids, captions = lines(ids_file), lines(captions_file)
    array = _mapped(file)
    step = _step(file, array, len(ids), len(captions))
    n, items, dimension = len(array) // step, *array.shape[1:]
    if source.files and (items, dimension) != (other := _mapped(source.files[0]).shape[1:]):
        raise InputError(
            f"{file}: expected {other[0]} items of {other[1]} values an image, as in "
            f"{source.files[0].name}, got {items} of {dimension}; give one set of features"
        )
    rows = texts.rows(ids_file, ids, captions_file, captions)
    for image, (row, count) in enumerate(
        zip(rows, _counts(counts_file, n, items).tolist(), strict=True)
    ):
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
    source.files = [
        *source.files,
        file,
        ids_file,
        captions_file,
        *([counts_file] if counts_file.exists() else []),
    ]
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
    for image in (
        np.unique(np.linspace(0, n - 1, min(n, REPEATS)).astype(np.int64)) if step > 1 else ()
    ):
        first, *copies = array[image * step : (image + 1) * step]
        unlike = [
            copy
            for copy, values in enumerate(copies, 1)
            if not np.array_equal(first, values, equal_nan=True)
        ]
        if unlike:
            raise InputError(
                f"{file}: has a row a caption, expected the five rows of an image to be equal, rows "
                f"{image * step} and {image * step + unlike[0]} are not"
            )
    return step


def _counts(file: Path, n: int, items: int) -> np.ndarray:
    """Items of each image, int64 [n]; all N if there is no file of counts."""
    if not file.is_file():
        return np.full(n, items)
    counts = _loaded(file)
    if (
        counts.shape != (n,)
        or counts.dtype.kind not in "iu"
        or counts.min() < 1
        or counts.max() > items
    ):
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
        matched, missing = list[int | None](), None
        for image in range(n):
            line, here = image * step + 1, ids[image * step : (image + 1) * step]
            row = next(
                (self.row_of[name] for name in self.name_of(here[0]) if name in self.row_of), None
            )
            if any(text != here[0] for text in here):
                raise InputError(
                    f"{ids_file}: has an id a caption, expected the lines {line} to {line + step - 1} to "
                    f"be equal, got {', '.join(here)}"
                )
            matched.append(row)
            if row is None:
                missing = missing or (line, here[0])
                self.others.append(f"{here[0]!r} in {ids_file}, line {line}")
                continue
            if row in image_of:
                raise InputError(
                    f"{ids_file}, line {line}: the id {here[0]} is also in line "
                    f"{image_of[row] * step + 1}; an image has one place"
                )
            image_of[row] = image
            known, first = {bare(caption) for caption in self.captions[row]}, image * CAPTIONS
            unlike = [
                place
                for place in range(first, first + CAPTIONS)
                if bare(captions[place]) not in known
            ]
            self.unlike += len(unlike)
            if len(unlike) > CAPTIONS // 2:
                raise InputError(
                    f"{captions_file}, line {unlike[0] + 1}: {captions[unlike[0]]!r} is no caption of "
                    f"image {self.manifest.images['image_id'][row]} in the manifest, which has "
                    f"{self.captions[row][0]!r}; give the manifest of the features' data set"
                )
        if missing and len(image_of) < n / 2:
            raise InputError(
                f"{ids_file}, line {missing[0]}: expected an image id of {self.manifest.dataset}, got "
                f"{missing[1]!r}; give the manifest of these images, it has {len(image_of):,} of {n:,}"
            )
        self.compared += CAPTIONS * len(image_of)
        return matched

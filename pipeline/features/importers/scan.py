"""SCAN's format (Lee et al., ECCV 2018), which the successors of VSE++ read: three files for each split.

    {split}_ims.npy    [n, N, D], or [5n, N, D] with a copy of the image for each of its five captions
    {split}_ids.txt    an id for each image or for each caption: COCO's image id, for Flickr30K Karpathy's imgid
    {split}_caps.txt   five captions an image, in the images' order, a line each
    {split}_counts.npy [n], valid items of each image; written by `pipeline export` where they vary

The array is memory-mapped for one image at a time, so that its pages do not fill the memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.features.importers import scan_text
from pipeline.features.importers.base import FeatureSource, OnFound, SourceItems
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError

# The manifest's split -> what SCAN calls it; the first that is there is read. COCO's `test` is the first 1,000 images
# of its `testall`.
NAMES = {"train": ("train",), "val": ("dev", "val"), "test": ("testall", "test")}
REPEATS = 64  # images whose five copies are compared


@dataclass(frozen=True)
class SplitArray:
    """One split's array."""

    file: Path  # the .npy file
    step: int  # rows of the array for each image: 1 or 5
    counts: np.ndarray  # int64 [n], valid items

    def array(self) -> np.ndarray:
        """Map the array without reading it."""
        return _mapped(self.file)


@dataclass
class ScanSource(FeatureSource):
    """An indexed folder in SCAN's format.

    Attributes:
        parts: The splits' arrays.
        where: Int64 [I, 2], for each of the manifest's images the index of its split's array and its position there.
    """

    parts: list[SplitArray] = field(default_factory=list)
    where: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def read(self, row: int) -> SourceItems:
        part, there = self._there(row)
        return SourceItems(np.array(part.array()[there, :self.counts[row]], np.float32))

    def place(self, row: int) -> str:
        part, there = self._there(row)
        return f"{part.file}, row {there}"

    def _there(self, row: int) -> tuple[SplitArray, int]:
        number, place = self.where[row]
        return self.parts[number], int(place) * self.parts[number].step


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> ScanSource:
    """Index a folder's splits and compare their ids and captions with the manifest's."""
    if len(paths) != 1 or not paths[0].is_dir():
        raise InputError(f"{', '.join(map(str, paths))}: expected one folder with SCAN's files, dev_ims.npy and so on")
    folder = paths[0]
    names = [next((name for name in choice if (folder / f"{name}_ims.npy").is_file()), None)
             for choice in NAMES.values()]
    if not any(names):
        raise InputError(f"{folder}: expected one at least of train_ims.npy, dev_ims.npy, testall_ims.npy, "
                         "test_ims.npy")
    texts = scan_text.TextCheck(manifest)
    source = ScanSource(np.zeros(len(manifest.images), np.int64), 0, [], where=np.full((len(manifest.images), 2), -1))
    for name in filter(None, names):
        _add(source, folder, name, texts)
        on_found(len(source.parts[-1].counts))
    source.notes += texts.notes()
    return source


def _add(source: ScanSource, folder: Path, name: str, texts: scan_text.TextCheck) -> None:
    """Take up one split."""
    file = folder / f"{name}_ims.npy"
    ids, captions = scan_text.lines(folder / f"{name}_ids.txt"), scan_text.lines(folder / f"{name}_caps.txt")
    array = _mapped(file)
    step = _step(file, array, len(ids), len(captions))
    n, items, dimension = len(array) // step, *array.shape[1:]
    other = source.parts[0].array().shape[1:] if source.parts else (items, dimension)
    if (items, dimension) != other:
        raise InputError(f"{file}: expected {other[0]} items of {other[1]} values an image, as in "
                         f"{source.parts[0].file.name}, got {items} of {dimension}; give one set of features")
    rows = texts.rows(folder / f"{name}_ids.txt", ids, folder / f"{name}_caps.txt", captions)
    _once(source, rows, file)
    counts = _counts(folder / f"{name}_counts.npy", n, items)
    source.where[rows] = np.stack([np.full(n, len(source.parts)), np.arange(n)], axis=1)
    source.counts[rows], source.dimension = counts, dimension
    source.parts.append(SplitArray(file, step, counts))
    files = [folder / f"{name}_{what}" for what in ("ims.npy", "ids.txt", "caps.txt", "counts.npy")]
    source.files = [*source.files, *(path for path in files if path.exists())]


def _mapped(file: Path) -> np.ndarray:
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):  # numpy's own text advises to load what a pickle holds
        raise InputError(f"{file}: not readable as an array; fetch or write it again") from None
    if array.ndim != 3 or array.dtype.kind != "f" or not array.size:
        raise InputError(f"{file}: expected floats of shape [images, items, values], got {array.dtype} {array.shape}")
    return array


def _step(file: Path, array: np.ndarray, ids: int, captions: int) -> int:
    """Rows of the array an image: 1, or 5 where each caption has its own copy of the image."""
    n, rest = divmod(captions, scan_text.CAPTIONS)
    if rest or not n or len(array) not in (n, captions) or ids not in (n, captions):
        raise InputError(f"{file}: {len(array)} images, {ids} ids and {captions} captions do not fit; expected five "
                         "captions an image, and a row and an id for each image or for each caption")
    step = len(array) // n
    for image in np.unique(np.linspace(0, n - 1, min(n, REPEATS)).astype(np.int64)) if step > 1 else ():
        first, *copies = array[image * step:(image + 1) * step]
        unlike = [copy for copy, values in enumerate(copies, 1) if not np.array_equal(first, values, equal_nan=True)]
        if unlike:
            raise InputError(f"{file}: has a row a caption, expected the five rows of an image to be equal, rows "
                             f"{image * step} and {image * step + unlike[0]} are not")
    return step


def _once(source: ScanSource, rows: np.ndarray, file: Path) -> None:
    taken = np.flatnonzero(source.counts[rows])
    if len(taken):
        other = source.parts[source.where[rows[taken[0]], 0]].file
        raise InputError(f"{file}: image {taken[0]} stands in {other.name} too; an image belongs to one split")


def _counts(file: Path, n: int, items: int) -> np.ndarray:
    """[n] int64, all N where nothing else is said."""
    if not file.is_file():
        return np.full(n, items)
    try:
        counts = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{file}: not readable as an array ({error})") from None
    if counts.shape != (n,) or counts.dtype.kind not in "iu" or counts.min() < 1 or counts.max() > items:
        raise InputError(f"{file}: expected {n} integers of 1 to {items}, got {counts.dtype} {counts.shape}")
    return counts.astype(np.int64)

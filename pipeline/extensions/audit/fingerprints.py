"""Digests of image files, and the look of images: a perceptual hash of 256 bits (dHash)."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product, repeat
from math import comb
from typing import NamedTuple

import numpy as np
from PIL import Image

from pipeline.extensions.audit.collection import Collection
from pipeline.foundation.files import images
from pipeline.foundation.files.gallery_file import GalleryFile

# Rows and columns of differences: 256 bits.
SIDE = 16
BITS = SIDE * SIDE
WORDS = BITS // 64
BLOCK = 1 << 18  # comparisons at once: 8 MB of words
TOGETHER = 4096  # files at once
Among = Callable[[list[int], list[int] | None], Iterable[tuple[int, int]]]


class Fingerprints(NamedTuple):
    """Fingerprints of I images."""

    content: list[str]  # BLAKE2b of each file, "" for one that cannot be read
    # Uint64 [I, 4]: whether each of 16 x 16 cells is darker than its right neighbour.
    look: np.ndarray
    # Bool [I], whether an image could be decoded and is not of one colour, so that `look` is
    # meaningful.
    is_seen: np.ndarray


def take(
    collection: Collection, threads: int, progress: Callable[[int], object] = lambda images: None
) -> Fingerprints:
    """Read all images of a collection once, on several threads."""
    count = len(collection.files)
    look = np.zeros((count, WORDS), np.uint64)
    is_seen = np.zeros(count, bool)
    fingerprints = Fingerprints([""] * count, look, is_seen)

    def one(row: int) -> None:
        path = collection.folder / collection.files[row]
        try:
            content = path.read_bytes()
            digest = hashlib.blake2b(content, digest_size=16)
            fingerprints.content[row] = digest.hexdigest()
            frames = GalleryFile.named(path).frames(1)
            bits = differences(frames[0])
        except (OSError, images.ImageError):
            return
        look[row] = np.packbits(bits).view(np.uint64)
        is_seen[row] = bits.any()

    with ThreadPoolExecutor(threads) as pool:
        # A pool of threads keeps a kilobyte for each waiting task.
        for start in range(0, count, TOGETHER):
            stop = min(start + TOGETHER, count)
            reading = pool.map(one, range(start, stop))
            for done, _ in enumerate(reading, start=start + 1):
                progress(done)
    return fingerprints


def differences(image: Image.Image) -> np.ndarray:
    """Compare each cell of a small grey copy with its right neighbour (dHash).

    Copies of a photograph in other sizes or qualities differ in few of the 256 bits, other
    photographs in about half.
    """
    grey = image.convert("L").resize((SIDE + 1, SIDE), Image.Resampling.BOX)
    cells = np.asarray(grey, np.int16)
    is_darker = cells[:, :-1] < cells[:, 1:]
    return np.asarray(is_darker).ravel()


def every(rows: Sequence[int], columns: Sequence[int] | None = None) -> Iterable[tuple[int, int]]:
    """All pairs of some images with others; without COLUMNS, of these images with each other."""
    return combinations(rows, 2) if columns is None else product(rows, columns)


def alike(
    one: Fingerprints, other: Fingerprints, most_bits: int, alone: bool, among: Among = every
) -> Iterator[tuple[int, int, int]]:
    """Find pairs of images that look alike, in no order, without comparing all pairs.

    Different looks are compared, each once, because data sets may have thousands of copies of an
    image, such as a site's placeholder for deleted photographs. AMONG chooses the pairs among the
    images of two looks, or of one.
    """
    first = _Looks(one)
    second = first if alone else _Looks(other)
    if alone:
        for rows in first.several():
            for row, column in among(rows, None):
                yield row, column, 0
    for look, other_look, bits in _near(first.look, second.look, most_bits, alone):
        images_of_look = first.images(look)
        images_of_other = second.images(other_look)
        for row, column in among(images_of_look, images_of_other):
            if alone and column < row:
                yield column, row, bits
            else:
                yield row, column, bits


class _Looks:
    """The different looks, uint64 [L, 4], of images with `is_seen`, and the images of each look."""

    def __init__(self, prints: Fingerprints) -> None:
        seen = np.flatnonzero(prints.is_seen)
        # Those of one look stand together, ascending.
        by_look = np.lexsort(prints.look[seen].T)
        self._rows = seen[by_look]
        look = prints.look[self._rows]
        has_changed = (look[1:] != look[:-1]).any(axis=1)
        is_another = np.append([True], has_changed)
        first = np.flatnonzero(is_another[: len(look)])
        self.look = look[first]
        self._bounds = np.append(first, len(look))

    def images(self, look: int) -> list[int]:
        """The images of a look, ascending."""
        start, stop = self._bounds[look : look + 2]
        rows: list[int] = self._rows[start:stop].tolist()
        return rows

    def several(self) -> Iterator[list[int]]:
        """For each look that several images have, these images."""
        counts = np.diff(self._bounds)
        return map(self.images, np.flatnonzero(counts > 1).tolist())


def _near(
    one: np.ndarray, other: np.ndarray, most_bits: int, alone: bool
) -> Iterator[tuple[int, int, int]]:
    """Find pairs of different looks, uint64 [L, 4], that are alike, each once.

    The bits are cut into most_bits + k bands. In a pair that differs in at most most_bits bits at
    least k bands are equal. So for each choice of k bands, only looks that agree in these are
    compared: with a million photographs and 16 bits, for 153 choices those that have the same 28
    bits.
    """
    most_looks = max(len(one), len(other))
    equal = _bands_to_share(most_bits, most_looks)
    bands = most_bits + equal
    near_pairs = np.zeros(0, np.int64)
    bits_of_key = 64 - most_looks.bit_length()
    width = bits_of_key // max(1, equal)
    first_keys = _keys(one, bands, equal, width)
    second_keys: Iterator[np.ndarray | None] = repeat(None)
    if not alone:
        second_keys = _keys(other, bands, equal, width)
    for keys in zip(first_keys, second_keys, strict=False):
        for first, second in _with_equal(*keys):
            near = _apart(one[first], other[second]) <= most_bits
            numbers = first[near] * len(other) + second[near]
            near_pairs = np.union1d(near_pairs, numbers)
    blocks = len(near_pairs) // BLOCK + 1
    for numbers in np.array_split(near_pairs, blocks):
        first, second = np.divmod(numbers, max(1, len(other)))
        apart = _apart(one[first], other[second])
        yield from zip(first.tolist(), second.tolist(), apart.tolist(), strict=True)


def _bands_to_share(most_bits: int, images: int) -> int:
    """How many bands must agree, k; 0 compares all pairs, which is least work for few images or
    many bits.

    With k = 1 the work would grow with the square of the number of images.
    """

    def work(equal: int) -> float:
        pairs = images * images
        if not equal:
            return images + pairs
        bands = most_bits + equal
        alike = pairs / 2 ** (BITS * equal / bands)
        return comb(bands, equal) * (images + alike)

    return min((0, 2, 3), key=work)


def _keys(look: np.ndarray, bands: int, equal: int, width: int) -> Iterator[np.ndarray]:
    """For each choice of bands, a key of each look, uint64 [L]: equal if the first bits of these
    bands are equal.

    A band has bits from all over the image, because neighbouring bits are often equal in different
    photographs, too, such as in a sky. WIDTH bits of a band enter the key, which fits in 64 bits
    with the look's number; no pair is lost.
    """
    bits = np.unpackbits(look.view(np.uint8), axis=1)
    if not equal:
        yield np.zeros(len(look), np.uint64)
        return
    of_bands = []
    for band in range(bands):
        bits_of_band = bits[:, band::bands]
        part = bits_of_band[:, :width].astype(np.uint64)
        exponents = np.arange(part.shape[1], dtype=np.uint64)
        powers = np.uint64(1) << exponents
        of_bands.append(part @ powers)
    for first, *others in combinations(of_bands, equal):
        key = first
        for values in others:
            key = (key << np.uint64(width)) | values
        yield key


def _in_order(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The keys in ascending order, and the number of each one's look; equal keys by this number.

    Both are sorted as one integer, which is eight times as fast as a stable sort by keys.
    """
    bits = np.uint64(len(keys).bit_length())
    numbers = np.arange(len(keys), dtype=np.uint64)
    both = np.sort((keys << bits) | numbers)
    one = np.uint64(1)
    mask = (one << bits) - one
    number = both & mask
    return both >> bits, number.astype(np.int64)


def _with_equal(
    one: np.ndarray, other: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows and columns of all pairs with equal keys, in parts; without OTHER each pair once,
    the smaller first.
    """
    ordered, rows = _in_order(one)
    if other is None:
        columns = rows
        some = np.flatnonzero(ordered[1:] == ordered[:-1])  # few: most keys occur once
        ends_run = np.diff(some, append=-1) != 1
        last = np.flatnonzero(ends_run)
        lengths = np.diff(last, prepend=-1)
        begin = some + 1
        end = np.repeat(some[last] + 2, lengths)
    else:
        keys, columns = _in_order(other)
        begin = np.searchsorted(keys, ordered, "left")
        end = np.searchsorted(keys, ordered, "right")
        some = np.flatnonzero(end > begin)
        begin = begin[some]
        end = end[some]
    rows = rows[some]
    count = end - begin
    before = np.concatenate([[0], np.cumsum(count)])
    start = 0
    while start < len(rows):
        most = before[start] + BLOCK
        full = int(np.searchsorted(before, most, "right")) - 1
        stop = max(start + 1, full)
        here = count[start:stop]
        offsets = begin[start:stop] - before[start:stop]
        pairs = np.arange(before[start], before[stop])
        order = np.repeat(offsets, here) + pairs
        yield np.repeat(rows[start:stop], here), columns[order]
        start = stop


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    changed = np.bitwise_count(one ^ other)
    return np.asarray(changed.sum(axis=1, dtype=np.int64))

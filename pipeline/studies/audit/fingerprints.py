"""Digests of image files, and what images look like in 256 bits."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, repeat
from math import comb
from typing import NamedTuple

import numpy as np
from PIL import Image

from pipeline.files import images
from pipeline.files.gallery_file import GalleryFile
from pipeline.studies.audit.collection import Collection

SIDE = 16
"""Rows and columns of differences: 256 bits."""
BITS = SIDE * SIDE
WORDS = BITS // 64
BLOCK = 1 << 18  # comparisons at once: 8 MB of words


class Fingerprints(NamedTuple):
    """Fingerprints of I images.

    Attributes:
        content: BLAKE2b of each file, "" for one that cannot be read.
        look: Uint64 [I, 4]: whether each of 16 x 16 cells is darker than its right neighbour.
        is_seen: Bool [I], whether an image could be decoded and is not of one colour, so that `look` says something.
    """

    content: list[str]
    look: np.ndarray
    is_seen: np.ndarray


def take(collection: Collection, threads: int, progress: Callable[[int], object] = lambda images: None) -> Fingerprints:
    """Read all images of a collection once.

    Args:
        collection: The images.
        threads: How many are decoded at once.
        progress: Called with the number of images read so far.

    Returns:
        Their fingerprints.
    """
    count = len(collection.files)
    found = Fingerprints([""] * count, np.zeros((count, WORDS), np.uint64), np.zeros(count, bool))

    def one(row: int) -> None:
        path = collection.folder / collection.files[row]
        try:
            content = path.read_bytes()
            found.content[row] = hashlib.blake2b(content, digest_size=16).hexdigest()
            bits = differences(GalleryFile.named(path).frames(1)[0])
        except (OSError, images.ImageError):
            return
        found.look[row] = np.packbits(bits).view(np.uint64)
        found.is_seen[row] = bool(bits.any())

    with ThreadPoolExecutor(threads) as pool:
        for done, _ in enumerate(pool.map(one, range(count)), start=1):
            progress(done)
    return found


def differences(image: Image.Image) -> np.ndarray:
    """Compare each cell of a small grey copy with its right neighbour (dHash).

    Copies of a photograph in other sizes or qualities differ in few of the 256 bits, other photographs in about half.
    """
    grey = image.convert("L").resize((SIDE + 1, SIDE), Image.Resampling.BOX)
    cells = np.asarray(grey, np.int16)
    return np.asarray(cells[:, :-1] < cells[:, 1:]).ravel()


def alike(one: Fingerprints, other: Fingerprints, most_bits: int, alone: bool) -> Iterator[tuple[int, int, int]]:
    """Find all pairs of images that look alike, without comparing every two.

    The bits are cut into most_bits + k bands. In a pair that differs in at most most_bits bits at least k bands are
    equal, so only images with k equal bands are compared, for each choice of k bands: of a million photographs and 16
    bits, 153 times those that have the same 28 bits.
    """
    rows, columns = np.flatnonzero(one.is_seen), np.flatnonzero(other.is_seen)
    looks = one.look[rows], other.look[columns]
    equal = _bands_to_share(most_bits, max(len(rows), len(columns)))
    found = np.zeros(0, np.int64)
    width = (64 - max(len(rows), len(columns)).bit_length()) // max(1, equal)
    first_keys = _keys(looks[0], most_bits + equal, equal, width)
    second_keys = repeat(None) if alone else _keys(looks[1], most_bits + equal, equal, width)
    for keys in zip(first_keys, second_keys, strict=False):
        for first, second in _with_equal(*keys):
            near = _apart(looks[0][first], looks[1][second]) <= most_bits
            found = np.union1d(found, first[near] * len(columns) + second[near])
    for place in np.array_split(found, len(found) // BLOCK + 1):
        first, second = np.divmod(place, max(1, len(columns)))
        apart = _apart(looks[0][first], looks[1][second])
        yield from zip(rows[first].tolist(), columns[second].tolist(), apart.tolist(), strict=True)


def _bands_to_share(most_bits: int, images: int) -> int:
    """How many bands are compared at once. None compares every two images: with few of them, or many bits.

    One would do for few images, but then the work grows with the square of their number.
    """
    def work(equal: int) -> float:
        alike = images * images / 2 ** (BITS * equal / (most_bits + equal)) if equal else images * images
        return comb(most_bits + equal, equal) * (images + alike)

    return min((0, 2, 3), key=work)


def _keys(look: np.ndarray, bands: int, equal: int, width: int) -> Iterator[np.ndarray]:
    """For each choice of bands, uint64 [I]: the same number where these bands are the same in their first bits.

    A band has bits from all over the image, as neighbours are often equal in other photographs too, such as in a sky.
    At most WIDTH of them are compared, so that the key and the image's number fit in 64 bits: no pair less is found.
    """
    bits = np.unpackbits(look.view(np.uint8), axis=1)
    each = []
    for band in range(bands if equal else 0):
        part = bits[:, band::bands][:, :width].astype(np.uint64)
        each.append(part @ (np.uint64(1) << np.arange(part.shape[1], dtype=np.uint64)))
    for chosen in combinations(each, equal):
        key = np.zeros(len(look), np.uint64)
        for values in chosen:
            key = (key << np.uint64(width)) | values if equal > 1 else values
        yield key


def _in_order(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The keys in ascending order, and the image of each; of equal keys the smaller image first.

    Numbers that hold both are sorted eight times as fast as images by their keys, stably.
    """
    bits = np.uint64(len(keys).bit_length())
    both = np.sort((keys << bits) | np.arange(len(keys), dtype=np.uint64))
    return both >> bits, (both & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)


def _with_equal(one: np.ndarray, other: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows and columns of all pairs with equal keys, some at a time; without OTHER the smaller first, each once."""
    ordered, rows = _in_order(one)
    if other is None:
        columns, begin = rows, np.arange(1, len(rows) + 1)
        ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(rows))
        end = np.repeat(ends, np.diff(ends, prepend=0))
    else:
        keys, columns = _in_order(other)
        begin, end = (np.searchsorted(keys, ordered, side) for side in ("left", "right"))
    some = np.flatnonzero(end > begin)
    rows, begin, count = rows[some], begin[some], (end - begin)[some]
    before = np.concatenate([[0], np.cumsum(count)])
    start = 0
    while start < len(rows):
        stop = max(start + 1, int(np.searchsorted(before, before[start] + BLOCK, "right")) - 1)
        here = count[start:stop]
        places = np.arange(before[start], before[stop]) + np.repeat(begin[start:stop] - before[start:stop], here)
        yield np.repeat(rows[start:stop], here), columns[places]
        start = stop


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """In how many bits each pair differs, int64 [P], of uint64 [P, 4]."""
    return np.asarray(np.bitwise_count(one ^ other).sum(axis=1, dtype=np.int64))

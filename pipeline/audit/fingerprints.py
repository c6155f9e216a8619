"""Digests of image files, and what images look like in 256 bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from PIL import Image

from pipeline.audit.collection import Collection
from pipeline.files import images
from pipeline.files.gallery_file import GalleryFile

SIDE = 16
"""Rows and columns of differences: 256 bits."""
WORDS = SIDE * SIDE // 64


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

    Args:
        image: The image.

    Returns:
        Bool [256].
    """
    grey = image.convert("L").resize((SIDE + 1, SIDE), Image.Resampling.BOX)
    cells = np.asarray(grey, np.int16)
    return np.asarray(cells[:, :-1] < cells[:, 1:]).ravel()

"""Which image or caption an id in a file of judgements or a run means.

    12, image:12, caption:55     ids of the manifest
    beach/a.jpg, a               an image's file, where the manifest is known
    a.jpg#0                      the first caption of that image, as Flickr8k and Flickr30k number
                                 them

Without a manifest, an id of text becomes a number by its digest: the same text is the same id in
every file. "07" is such a text and not 7: both may be candidates of one run. "5.0" is 5: a column
of numbers is written so where a row has none.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.retrieval import Collection, Ids
from pipeline.foundation.files import image_names

# The side of an id: an image, a caption, or one that is not written like either.
IMAGE = 1
CAPTION = 0
EITHER = -1
Sides = npt.NDArray[np.int8]
# A column of a file: texts as objects, int64 or float64, [n].
Column = npt.NDArray[Any]
# What ids of text that are in no pool become.
UNKNOWN = np.iinfo(np.int64).min
PREFIX = re.compile(r"(image|caption)[:_-]?([0-9]+)")
# A whole number as one writes it.
NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
# A whole number that may have zeros before it.
PADDED = re.compile(r"-?[0-9]{1,19}")
# A whole number in a column of floats.
OF_FLOAT = re.compile(r"(0|-?[1-9][0-9]{0,14})\.0")
# What a candidate of a tool that is called "" is digested as: a text that is no id.
NAMELESS = "\0 the empty text as an id \0"
PICTURE = re.compile(r".+\.(jpe?g|png|webp|gif|bmp|tiff?|avif|heic|mp4|avi|webm)", re.IGNORECASE)
REMEMBERED = 1 << 17  # texts whose ids are kept from one column to the next


class Names:
    """Finds ids by how they are written, in a pool; None for one that is not known otherwise.

    files: reads the images' files in the pool's order, for ids of text alone; None where they are
        not known. sided: whether the spelling of an id says its side; else every query counts as a
        caption, and an id is its exact text.
    """

    def __init__(
        self,
        collection: Collection | None = None,
        files: Callable[[], Sequence[str]] | None = None,
        sided: bool = True,
    ) -> None:
        self.collection = collection
        self._is_sided = sided
        self._files = files
        self.by_file = files is not None
        self._find: Callable[[str], tuple[int, int]] | None = None
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, column: Column) -> tuple[Ids, Sides]:
        """Find a column of text: the ids, int64 [n], `UNKNOWN` for what is none, and their sides,
        int8 [n].
        """
        ids, sides = self._of_column(column)
        if not self._is_sided:
            sides = np.full(len(ids), EITHER, np.int8)
        return ids, sides

    def _of_column(self, column: Column) -> tuple[Ids, Sides]:
        if column.dtype.kind == "i":
            return column, np.full(len(column), EITHER, np.int8)
        if len(self._known) > REMEMBERED:
            self._known.clear()
        known = self._known.get
        found = [known(text) or self._remembered(text) for text in column.tolist()]
        ids = np.array([number for number, _ in found], np.int64)
        sides = np.array([side for _, side in found], np.int8)
        return ids, sides

    def _remembered(self, text: str) -> tuple[int, int]:
        """Find an id and its side, and keep them for the next rows that have the same text."""
        found = self.sided(text)
        self._known[text] = found
        return found

    def one(self, text: str) -> int:
        """Find an id, `UNKNOWN` for what is none."""
        return self.sided(text)[0]

    def sided(self, text: str) -> tuple[int, int]:
        """Find an id and its side."""
        if NUMBER.fullmatch(text):
            return _within_64_bits(text) or self._found(text)
        of_float = OF_FLOAT.fullmatch(text)
        if of_float:
            return int(of_float[1]), EITHER
        if not self._is_sided:
            return self._found(text or NAMELESS)
        digits, side = _split(text)
        is_number = self.by_file or side != EITHER
        if is_number and PADDED.fullmatch(digits):
            number = _within_64_bits(digits)
            return (UNKNOWN, side) if number is None else (number[0], side)
        if side != EITHER:
            return UNKNOWN, side
        return self._found(text)

    def _found(self, text: str) -> tuple[int, int]:
        """Find an id of text and its side."""
        if self._find is None:
            self._find = self._finder()
        return self._find(text)

    def _finder(self) -> Callable[[str], tuple[int, int]]:
        if self.collection is None:
            return by_digest
        if self._files is None:
            return _of_pool(self.collection)
        return _of_files(self.collection, self._files())


def _split(text: str) -> tuple[str, int]:
    """An id without its prefix, and the side that this says."""
    prefixed = PREFIX.fullmatch(text)
    if not prefixed:
        return text, EITHER
    side, digits = prefixed.groups()
    if side == "image":
        return digits, IMAGE
    return digits, CAPTION


def _within_64_bits(digits: str) -> tuple[int, int] | None:
    """The number and no side; None for one of more bits."""
    number = int(digits)
    if not UNKNOWN < number < -UNKNOWN:
        return None
    return number, EITHER


def _of_pool(collection: Collection) -> Callable[[str], tuple[int, int]]:
    """Finds texts by their digests among the ids of a pool."""
    known = {*collection.image_ids.tolist(), *collection.caption_ids.tolist()}

    def find(text: str) -> tuple[int, int]:
        number, side = by_digest(text)
        if number not in known:
            return UNKNOWN, EITHER
        return number, side

    return find


def _of_files(collection: Collection, files: Sequence[str]) -> Callable[[str], tuple[int, int]]:
    """Finds images by their files, and captions by their image's file and their number."""
    tables = (image_names.by_name(files), image_names.by_number(files))
    order = np.argsort(collection.caption_image, kind="stable")
    first = np.searchsorted(collection.caption_image[order], np.arange(len(files) + 1))

    def row_of(text: str) -> int | None:
        for table, names in tables:
            for name in names(text):
                if name in table:
                    return table[name]
        return None

    def find(text: str) -> tuple[int, int]:
        row = row_of(text)
        if row is not None:
            return int(collection.image_ids[row]), IMAGE
        file, _, place = text.rpartition("#")
        if not place.isdigit():
            return UNKNOWN, EITHER
        row = row_of(file)
        if row is None:
            return UNKNOWN, EITHER
        captions = order[first[row] : first[row + 1]]
        if int(place) >= len(captions):
            return UNKNOWN, CAPTION
        return int(collection.caption_ids[captions[int(place)]]), CAPTION

    return find


def by_digest(text: str) -> tuple[int, int]:
    """The number of an id of text, below -1 so that it is no number of a file, `UNKNOWN` for "";
    and its side.
    """
    if not text:
        return UNKNOWN, EITHER
    side = EITHER
    if PICTURE.fullmatch(text):
        side = IMAGE
    elif PICTURE.fullmatch(text.partition("#")[0]):
        side = CAPTION
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "little") >> 2
    return -2 - number, side


def by_sides(query: tuple[Ids, Sides], document: tuple[Ids, Sides]) -> tuple[Any, ...]:
    """Which ids are images: those of images and of captions, int64 [n] each, whether images ask,
    and what is wrong.

    Of two plain numbers the query is a caption and the document an image; of one, it is what the
    other is not. Wrong is bool [n]: rows that pair two of a kind.
    """
    one, side = query
    other, answer = document
    asks = np.where(side == EITHER, answer == CAPTION, side == IMAGE)
    wrong = (side == answer) & (side != EITHER)
    return np.where(asks, one, other), np.where(asks, other, one), asks, wrong

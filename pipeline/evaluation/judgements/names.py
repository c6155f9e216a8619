"""Which image or caption an id in a file of judgements or a run means.

    12, image:12, caption:55     ids of the manifest
    beach/a.jpg, a               an image's file, where the manifest is known
    a.jpg#0                      the first caption of that image, as Flickr8k and Flickr30k number
                                 them

Without a manifest, an id of text becomes a number by its digest: the same text is the same id in
every file.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval import Collection, Ids
from pipeline.files import image_names

if TYPE_CHECKING:
    import pyarrow as pa

# The side of an id: an image, a caption, or one that is not written like either.
IMAGE, CAPTION, EITHER = 1, 0, -1
Sides = npt.NDArray[np.int8]
# What ids of text that are in no pool become.
UNKNOWN = np.iinfo(np.int64).min
PREFIX = r"^(image|caption)[:_-]?([0-9]+)$"
NUMBER = re.compile(r"-?\d{1,18}")
PICTURE = re.compile(r".+\.(jpe?g|png|webp|gif|bmp|tiff?|avif|heic|mp4|avi|webm)", re.IGNORECASE)


class Names:
    """Finds ids by how they are written, in a pool; None for one that is not known otherwise.

    files: reads the images' files in the pool's order, for ids of text alone; None where they are
        not known.
    """

    def __init__(
        self, collection: Collection | None = None, files: Callable[[], Sequence[str]] | None = None
    ) -> None:
        self.collection, self._files = collection, files
        self.by_file = files is not None
        self._find: Callable[[str], tuple[int, int]] | None = None

    def of(self, column: "pa.ChunkedArray") -> tuple[Ids, Sides]:
        """Find a column of text: the ids, int64 [n], `UNKNOWN` for what is none, and their sides,
        int8 [n].
        """
        import pyarrow as pa
        from pyarrow import compute

        try:
            return column.cast(pa.int64()).to_numpy(), np.full(len(column), EITHER, np.int8)
        except (pa.ArrowInvalid, ValueError):
            pass
        held = compute.match_substring_regex(column, PREFIX).to_numpy(zero_copy_only=False)
        bare = compute.replace_substring_regex(column, PREFIX, r"\2") if held.any() else column
        try:
            ids = bare.cast(pa.int64()).to_numpy()
        except (pa.ArrowInvalid, ValueError):
            return self._of_text(column)
        images = compute.starts_with(column, "image").to_numpy(zero_copy_only=False)
        return ids, np.where(held, np.where(images, IMAGE, CAPTION), EITHER).astype(np.int8)

    def _of_text(self, column: "pa.ChunkedArray") -> tuple[Ids, Sides]:
        coded = column.combine_chunks().dictionary_encode()
        coded = coded.chunk(0) if hasattr(coded, "chunk") else coded
        each_id = [self.sided(text or "") for text in coded.dictionary.to_pylist()]
        ids, sides = (
            np.array([each[0] for each in each_id], np.int64),
            np.array([each[1] for each in each_id], np.int8),
        )
        codes = coded.indices.to_numpy(zero_copy_only=False)
        return ids[codes], sides[codes]

    def one(self, text: str) -> int:
        """Find an id, `UNKNOWN` for what is none."""
        return self.sided(text)[0]

    def sided(self, text: str) -> tuple[int, int]:
        """Find an id and its side."""
        if match := re.fullmatch(PREFIX[1:-1], text):
            return int(match[2]) if NUMBER.fullmatch(match[2]) else UNKNOWN, IMAGE if match[
                1
            ] == "image" else CAPTION
        if NUMBER.fullmatch(text):
            return int(text), EITHER
        if self._find is None:
            self._find = by_digest if self.collection is None else self._finder(self.collection)
        return self._find(text)

    def _finder(self, collection: Collection) -> Callable[[str], tuple[int, int]]:
        if self._files is None:
            known = {*collection.image_ids.tolist(), *collection.caption_ids.tolist()}

            def of_pool(text: str) -> tuple[int, int]:
                number, side = by_digest(text)
                return (number, side) if number in known else (UNKNOWN, EITHER)

            return of_pool
        files = self._files()
        tables = image_names.by_name(files), image_names.by_number(files)
        order = np.argsort(collection.caption_image, kind="stable")
        first = np.searchsorted(collection.caption_image[order], np.arange(len(files) + 1))

        def row_of(text: str) -> int | None:
            return next(
                (table[name] for table, names in tables for name in names(text) if name in table),
                None,
            )

        def find(text: str) -> tuple[int, int]:
            if (row := row_of(text)) is not None:
                return int(collection.image_ids[row]), IMAGE
            file, _, place = text.rpartition("#")
            if not place.isdigit() or (row := row_of(file)) is None:
                return UNKNOWN, EITHER
            captions = order[first[row] : first[row + 1]]
            return (
                int(collection.caption_ids[captions[int(place)]])
                if int(place) < len(captions)
                else UNKNOWN
            ), CAPTION

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
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 2
    return -2 - number, side


def by_sides(query: tuple[Ids, Sides], document: tuple[Ids, Sides]) -> tuple[Any, ...]:
    """Which ids are images: those of images and of captions, int64 [n] each, whether images ask,
    and what is wrong.

    Of two plain numbers the query is a caption and the document an image; of one, it is what the
    other is not. Wrong is bool [n]: rows that pair two of a kind.
    """
    (one, side), (other, answer) = query, document
    asks = np.where(side == EITHER, answer == CAPTION, side == IMAGE)
    wrong = (side == answer) & (side != EITHER)
    return np.where(asks, one, other), np.where(asks, other, one), asks, wrong

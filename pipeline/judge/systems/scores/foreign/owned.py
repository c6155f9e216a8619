"""Which image each caption is of, as people's files say it.

caption_image, text_to_image_map, text_image_ids     an image's row or id for each caption
{caption: image}, {image: [captions]}                dicts, as ALBEF, BLIP and LAVIS keep them
captions_per_image                                   how many captions each image has
gt, positive_pairs                                   a matrix, 1 where both belong together
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from pipeline.foundation import files
from pipeline.foundation.evaluation.retrieval import Ids, Side, rows_of
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign.arrays import Array
from pipeline.judge.systems.scores.foreign.words import IDS, ROWS, SIDES, STARTS, Name


@dataclass(frozen=True)
class Pairing:
    """An array that says which captions and images belong together."""

    name: str
    array: Array
    of: Side  # the side that has an entry each: "caption" where it holds each caption's image
    is_sure: bool = True  # whether its name says so, and not only its content

    def __str__(self) -> str:
        return f"{self.name} {self.array}".strip()

    def by(self, side: Side) -> "Pairing":
        """The same array, with an entry for each image or caption of this side."""
        return replace(self, of=side)


@dataclass(frozen=True)
class Known:
    """What is known of rows and columns before their owners are."""

    shape: tuple[int, int]
    images: Ids | None  # [I], their ids
    captions: Ids | None  # [C]
    number: Callable[[np.ndarray, str], Ids]  # makes ids of values as a file has them
    files: Sequence[str] = ()  # [I], the images' ids as texts

    def size(self, side: Side) -> int:
        """How many images or captions there are."""
        return self.shape[side == "caption"]


def readings(pairing: Pairing, known: Known) -> list[Ids]:
    """The different owners that an array may mean, int64 [C] each: by ids or by rows; [] where it
    fits neither.
    """
    if Name.of(pairing.name).counts or not pairing.is_sure:
        counted = _of_counts(pairing, known)
        if counted is not None:
            return [counted]
    if not pairing.is_sure and _is_table(pairing):
        return (
            _of_matrix(pairing, known)
            or _of_two_columns(pairing, known)
            or _of_lists(pairing, known)
        )
    if pairing.is_sure or pairing.array.keys is None:
        return _of_entries(pairing, known)
    owners: list[Ids] = []
    for side in SIDES:
        owners += _of_entries(pairing.by(side), known)
    return _different(owners)


def _of_entries(pairing: Pairing, known: Known) -> list[Ids]:
    """The owners where an array has an entry for each image or caption of one side."""
    entries, values = _pairs(pairing)
    other: Side = "image" if pairing.of == "caption" else "caption"
    entry_rows: list[Ids] = []
    if entries is not None:
        entry_rows = _rows(entries, pairing.of, pairing, known)
    elif len(values) == known.size(pairing.of):
        entry_rows = [np.arange(len(values))]
    owners: list[Ids] = []
    for rows in entry_rows:
        for answers in _rows(values, other, pairing, known):
            images = rows
            captions = answers
            if pairing.of == "caption":
                images = answers
                captions = rows
            owners.append(_of_pairs(images, captions, known.shape[1], pairing))
    return _different(owners)


def _different(owners: Sequence[Ids]) -> list[Ids]:
    """The same owners, each once."""
    once: list[Ids] = []
    for owner in owners:
        if not any(np.array_equal(owner, each) for each in once):
            once.append(owner)
    return once


def _is_table(pairing: Pairing) -> bool:
    """Whether it has rows and columns."""
    return len(pairing.array.shape) == 2 and 1 not in pairing.array.shape


def _of_two_columns(pairing: Pairing, known: Known) -> list[Ids]:
    """The owners where an array lists pairs of an image and a caption, each caption once."""
    values = pairing.array.read()
    if values.dtype.kind not in "iu" or 2 not in values.shape:
        return []
    columns = values
    if values.shape[1] == 2:
        columns = values.T
    owners: list[Ids] = []
    for images, captions in (columns, columns[::-1]):
        of_images = _rows(images, "image", pairing, known)
        of_captions = _rows(captions, "caption", pairing, known)
        for rows in of_captions:
            if np.array_equal(np.sort(rows), np.arange(known.shape[1])):
                owners += [_of_pairs(each, rows, known.shape[1], pairing) for each in of_images]
    return _different(owners)


def _of_lists(pairing: Pairing, known: Known) -> list[Ids]:
    """The owners where a row lists all captions of an image, or the only image of a caption."""
    owners: list[Ids] = []
    for side in _listing_sides(pairing, known):
        with suppress(InputError):  # several images of a caption, see `contradicts`
            owners += _of_entries(pairing.by(side), known)
    return _different(owners)


def _listing_sides(pairing: Pairing, known: Known) -> list[Side]:
    """The sides of which a table of whole numbers has a row each."""
    if pairing.array.read().dtype.kind not in "iu":
        return []
    return [side for side in SIDES if pairing.array.shape[0] == known.size(side)]


def labels(pairing: Pairing, known: Known) -> np.ndarray | None:
    """What an array says of each caption, [C], whatever it means; None where it does not say one
    thing of each.
    """
    if pairing.of != "caption" or _is_table(pairing):
        return None
    entries, values = _pairs(pairing)
    if len(values) != known.shape[1]:
        return None
    if entries is None:
        return values
    rows = _rows(entries, "caption", pairing, known)
    if len(rows) != 1:
        return None
    return values[np.argsort(rows[0])]


def in_order(of_captions: np.ndarray, images: int) -> Ids | None:
    """The owners, int64 [C], where images have no ids, and captions name as many different images
    in ascending order: so do both that sort images and that keep them as they come. None otherwise.
    """
    different, first, owner = np.unique(of_captions, return_index=True, return_inverse=True)
    if len(different) != images or (np.diff(first) < 0).any():
        return None
    return owner.astype(np.int64).ravel()


def same_groups(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays [C] put the same captions together."""
    of_one, first = np.unique(one, return_inverse=True)
    of_other, second = np.unique(other, return_inverse=True)
    pairs = np.stack([first.ravel(), second.ravel()])
    together = np.unique(pairs, axis=1).shape[1]
    return together == len(of_one) == len(of_other)


def _pairs(pairing: Pairing) -> tuple[np.ndarray | None, np.ndarray]:
    """The entry and the value of each pair that an array lists; None where entries are those of a
    side in their order.
    """
    values = pairing.array.read()
    if values.ndim == 1 or 1 in values.shape:
        return pairing.array.keys, values.ravel()
    entries = np.repeat(np.arange(len(values)), values.shape[1])
    listed = values.ravel()
    none = NO_IMAGE if values.dtype.kind in "iu" else ""
    is_listed = listed != none
    return entries[is_listed], listed[is_listed]


def _rows(values: np.ndarray, side: Side, pairing: Pairing, known: Known) -> list[Ids]:
    """The rows of a side that values may mean: by its ids, as rows, or in the order of the keys of
    a dict.
    """
    ids = known.images if side == "image" else known.captions
    numbers = known.number(values, pairing.name)
    size = known.size(side)
    found: list[Ids] = []
    if ids is not None:
        by_id = np.where(numbers == NO_IMAGE, NO_IMAGE, rows_of(ids, numbers))
        if side == "image" and known.files and values.dtype.kind in "UST":
            by_id = np.where(by_id < 0, _by_file(values, known.files), by_id)
        is_known = by_id >= 0
        if is_known.any() and (is_known | (numbers == NO_IMAGE)).all():
            found.append(by_id)
    if len(numbers) and numbers.min() >= NO_IMAGE and NO_IMAGE < numbers.max() < size:
        found.append(numbers)
    words = Name.of(pairing.name)
    if len(found) == 2 and words.has(IDS):
        return found[:1]
    if len(found) == 2 and (words.has(ROWS) or words.words == ("caption", "image")):
        return found[1:]
    if not found and pairing.array.keys is not None:
        return _in_order_of_dict(values, side, pairing, size)
    return found


def _in_order_of_dict(values: np.ndarray, side: Side, pairing: Pairing, size: int) -> list[Ids]:
    """The rows of a side where a dict lists all of it, one after another, by what is no id."""
    first = np.sort(np.unique(values, return_index=True)[1])
    if side == pairing.of and len(first) == size:
        rows = np.arange(len(values))
        return [np.searchsorted(first, rows, "right") - 1]
    is_whole_side = len(values) == size and (len(first) == size or values.dtype.kind in "UST")
    if pairing.of == "image" and side == "caption" and is_whole_side:
        return [np.arange(size)]
    return []


def _by_file(names: np.ndarray, image_files: Sequence[str]) -> Ids:
    """The rows of images by their files' names, with or without folder and suffix; -1 for none."""
    table, spellings = files.image_names.by_name(image_files)
    rows = np.full(len(names), -1, np.int64)
    for place, name in enumerate(map(str, names.tolist())):
        for spelling in spellings(name):
            if spelling in table:
                rows[place] = table[spelling]
                break
    return rows


def _of_counts(pairing: Pairing, known: Known) -> Ids | None:
    """The owners where an array says how many captions each image has, or where they begin; None
    for another one.
    """
    images, captions = known.shape
    values = pairing.array.read().ravel()
    if pairing.array.keys is not None or values.dtype.kind not in "iuf" or not len(values):
        return None
    numbers = values.astype(np.float64)
    if len(numbers) == images + 1:
        count = numbers
        if numbers[0] == 0 and numbers[-1] == captions:
            count = np.diff(numbers)
    elif len(numbers) == images and Name.of(pairing.name).has(STARTS) and numbers[0] == 0:
        count = np.diff([*numbers, captions])
    else:
        count = numbers
    is_of_whole = bool((count >= 0).all() and (count == np.floor(count)).all())
    if len(count) != images or not is_of_whole or count.sum() != captions:
        return None
    return np.repeat(np.arange(images), count.astype(np.int64))


def _of_matrix(pairing: Pairing, known: Known) -> list[Ids]:
    """The owners where a matrix is 1 for what belongs together, with one image for each caption; of
    a square one its rows may be images or captions.
    """
    owners: list[Ids] = []
    for right in _oriented(pairing, known):
        if (right.sum(0, dtype=np.int64) == 1).all():
            owner = right.argmax(0).astype(np.int64)
            if not any(np.array_equal(owner, each) for each in owners):
                owners.append(owner)
    return owners


def _oriented(pairing: Pairing, known: Known) -> list[np.ndarray]:
    """A matrix of zeros and ones as images x captions, where its shape is that, turned or not."""
    values = pairing.array.read()
    oriented = [each for each in (values, values.T) if each.shape == known.shape]
    if not oriented or values.dtype.kind not in "biuf":
        return []
    has_others = ((values != 0) & (values != 1)).any()
    return [] if has_others else oriented


def contradicts(pairing: Pairing, owner: Ids, known: Known) -> bool:
    """Whether an array that may say each caption's image, and does not say it of all images, says
    something else than these owners.
    """
    if _is_table(pairing):
        columns = np.arange(len(owner))
        oriented = _oriented(pairing, known)
        if oriented:
            return not any(each[owner, columns].all() for each in oriented)
        if any(
            _lists_others(pairing.by(side), owner, known) for side in _listing_sides(pairing, known)
        ):
            return True
    read = readings(pairing, known)
    if not read or any(np.array_equal(each, owner) for each in read):
        return False
    return any(2 * len(np.unique(each)) >= known.shape[0] for each in read)


def _lists_others(pairing: Pairing, owner: Ids, known: Known) -> bool:
    """Whether rows list images of captions, or captions of images, by their rows, and these owners
    are not among them.
    """
    entries, values = _pairs(pairing)
    other: Side = "image" if pairing.of == "caption" else "caption"
    if entries is None or not len(values) or values.min() < 0 or values.max() >= known.size(other):
        return False
    if 2 * len(np.unique(values)) < known.size(other):
        return False
    images = entries
    captions = values
    if pairing.of == "caption":
        images = values
        captions = entries
    agree = owner[captions] == images
    return len(np.unique(captions[agree])) < len(owner)


def _of_pairs(images: Ids, captions: Ids, size: int, pairing: Pairing) -> Ids:
    """The owners of pairs of an image and a caption, int64 [size]; of captions in no pair none."""
    owner = np.full(size, NO_IMAGE, np.int64)
    is_known = captions >= 0
    owner[captions[is_known]] = images[is_known]
    again = owner[captions[is_known]] != images[is_known]
    if again.any():
        caption = captions[is_known][np.argmax(again)]
        raise InputError(
            f"{pairing} gives caption {caption} several images; give what is right as --qrels"
        )
    return owner

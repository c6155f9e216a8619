"""What a file holds beside scores or vectors: ids of images and captions, each caption's image, and
the captions themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from pipeline.foundation.evaluation.retrieval import Side
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign.arrays import TEXT, UNREADABLE, Array
from pipeline.judge.systems.scores.foreign.held import Found, Held
from pipeline.judge.systems.scores.foreign.identified import SIDES, Given, Identified
from pipeline.judge.systems.scores.foreign.owned import Pairing
from pipeline.judge.systems.scores.foreign.words import IDS, Name

# Among fewer images an array of other numbers may look like each caption's image by chance.
FEWEST = 20


@dataclass(frozen=True)
class Rows:
    """The rows and columns of scores, and where they are from."""

    shape: tuple[int, int]
    parts: tuple[int, int] = (0, 0)  # the files of images and of captions
    repeats: int = 1  # how often each image is there in its file, one row for each caption

    def part(self, side: Side) -> int | None:
        """The file of a side; None where both are in one."""
        if self.parts[0] == self.parts[1]:
            return None
        return self.parts[SIDES.index(side)]

    def size(self, side: Side) -> int:
        """How many images or captions there are."""
        return self.shape[SIDES.index(side)]


@dataclass(frozen=True)
class Beside:
    """What is beside the scores, and the arrays that it is from."""

    given: Given
    ids: Sequence[Found]
    pairings: Sequence[tuple[Pairing, Found]]
    texts: Found | None = None

    def used(self, found: Identified) -> list[Found]:
        """The arrays that say which images and captions rows and columns are."""
        arrays = [*self.ids]
        for pairing, array in self.pairings:
            if any(pairing is used for used in found.used):
                arrays.append(array)
        if self.texts is not None and found.used_texts:
            arrays.append(self.texts)
        return arrays


def beside(held: Held, rows: Rows) -> Beside:
    """Find the ids of rows and columns, and what says each caption's image."""
    pairings = [
        (Pairing(each.name, each.array, "caption"), each) for each in _per_caption(held, rows)
    ]
    of_captions = [each for _, each in pairings]
    chosen = {side: _ids(side, held, rows, of_captions) for side in SIDES}
    pairings += [*_pairings(held, rows)]
    ids = [each for each in chosen.values() if each is not None]
    _refuse_unclear(held, rows, ids)
    images = _values(chosen["image"])
    captions = _values(chosen["caption"])
    all_pairings = [each for each, _ in pairings]
    if rows.repeats > 1:
        owner = np.repeat(np.arange(rows.shape[0]), rows.repeats)
        all_pairings.append(Pairing("equal rows", Array.of(owner), "caption"))
        if images is not None and len(images) == len(owner):
            images = images[:: rows.repeats]
    one_a_caption = [each for each in held.of("texts") if each.size == rows.shape[1]]
    texts = next(iter(one_a_caption), None)
    if texts is chosen["caption"]:
        texts = None
    known = [*ids, *(array for _, array in pairings)]
    others = list(_others(held, known))
    given = Given(images, captions, all_pairings, _values(texts), others)
    return Beside(given, ids, pairings, texts)


def _values(found: Found | None) -> np.ndarray | None:
    """The values of an array with one for each row; None for none."""
    if found is None:
        return None
    return column(found)


def column(found: Found) -> np.ndarray:
    """The values of an array with one for each row, [n]; of a dict its values or keys, where the
    others number them.
    """
    values = found.array.read()
    keys = found.array.keys
    if values.size != max(values.shape, default=0):
        raise InputError(f"{found} has no one value for each row; save ids as one column")
    values = values.ravel()
    if keys is None:
        return values
    numbers = np.arange(len(keys))
    if np.array_equal(keys, numbers):
        return values
    if values.dtype.kind in "iu" and np.array_equal(np.sort(values), numbers):
        return keys[np.argsort(values)]
    raise InputError(f"{found} is a dict; save its ids in the order of the rows, as one array")


def tells_repeats(held: Held, rows: Rows, repeats: int) -> bool:
    """Whether the file's image ids, if there are any for each row, are the same for the rows that
    are equal.
    """
    ids = _ids("image", held, rows, [])
    if ids is None or ids.size != rows.shape[0]:
        return True
    values = column(ids)
    return np.array_equal(values, np.repeat(values[::repeats], repeats))


def _ids(side: Side, held: Held, rows: Rows, others: Sequence[Found]) -> Found | None:
    """The ids of a side: by their name, by the file of its vectors, or where only that side has so
    many. others: those that are known to be something else.
    """
    every = [each for each in held.of("ids") if each not in others]
    part = rows.part(side)
    size = rows.size(side)
    sizes = {size}
    if side == "image":
        sizes.add(size * rows.repeats)
    by_name = [each for each in every if each.role.side == side]
    by_name.sort(key=lambda each: (each.size not in sizes, part not in (None, each.part)))
    loose = [each for each in every if each.role.side is None and _may_be_ids(each)]
    by_file = [each for each in loose if part is not None and each.part == part]
    by_size: list[Found] = []
    if part is None and rows.shape[0] != rows.shape[1]:
        by_size = [each for each in loose if each.size in sizes]
    texts = [each for each in held.of("texts") if each.role.side == side and each.size == size]
    by_text = [each for each in texts if _are_short(column(each))]
    by_certainty = (*by_name, *by_file, *by_size, *by_text)
    return next(iter(by_certainty), None)


def _may_be_ids(found: Found) -> bool:
    """Whether a column is called ids, or holds different texts."""
    return Name.of(found.name).has(IDS) or len(np.unique(column(found))) == found.size


def _are_short(texts: np.ndarray) -> bool:
    """Whether texts are different and without blanks, as ids are and captions are not."""
    if len(np.unique(texts)) < len(texts):
        return False
    return not any(" " in str(each) for each in texts)


def _per_caption(held: Held, rows: Rows) -> Iterator[Found]:
    """The image ids that are there once for each caption."""
    images, captions = rows.shape
    for each in held.of("ids"):
        if each.role.side != "image" or each.size != captions:
            continue
        is_of_file = rows.part("caption") == each.part
        if is_of_file or captions not in (images, images * rows.repeats):
            yield each


def _pairings(held: Held, rows: Rows) -> Iterator[tuple[Pairing, Found]]:
    """The arrays that say which image each caption is of, by their names or by what they hold."""
    for each in held.every:
        if each.role.kind == "owners":
            yield Pairing(each.name, each.array, each.role.side or "caption"), each
        elif each.array.stored == UNREADABLE:
            continue
        elif each.role.kind == "truth" or _may_tell(each, rows):
            yield Pairing(each.name, each.array, "caption", is_sure=False), each


def _others(held: Held, known: Sequence[Found]) -> Iterator[Pairing]:
    """The columns of numbers or texts that are not known to say anything."""
    for each in held.every:
        array = each.array
        if array.shape == () or array.keys is not None or array.stored == UNREADABLE:
            continue
        is_column = max(array.shape) == prod(array.shape)
        if is_column and each not in known:
            yield Pairing(each.name, array, "caption", is_sure=False)


def _may_tell(found: Found, rows: Rows) -> bool:
    """Whether an array whose name does not say what it is may say which image each caption is of:
    by a value for each caption, by counts or places of each image's captions, or by pairs.
    """
    images, captions = rows.shape
    array = found.array
    if images == captions or images < FEWEST or found.role.kind != "":
        return False
    if Name.of(found.name).is_truth and array.shape in (rows.shape, rows.shape[::-1]):
        return True
    if not array.is_whole:
        return array.stored == TEXT and array.shape == (captions,)
    of_columns = ((captions,), (images,), (images + 1,))
    of_pairs = ((captions, 2), (2, captions))
    return array.shape in of_columns or array.shape in of_pairs


def _refuse_unclear(held: Held, rows: Rows, chosen: Sequence[Found]) -> None:
    """Refuse what is called ids and may be of images or of captions, where a side has none."""
    if len(chosen) == len(SIDES):
        return
    for each in held.of("ids"):
        if each in chosen or each.role.side is not None or not Name.of(each.name).has(IDS):
            continue
        if each.size in rows.shape or {*Name.of(each.name).words} <= {"id", "ids"}:
            raise InputError(
                f"{each} may be the ids of {rows.shape[0]} images or of {rows.shape[1]} captions; call "
                "them image_ids or caption_ids"
            )

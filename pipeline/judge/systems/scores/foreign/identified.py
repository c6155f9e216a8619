"""Which images and captions the rows and columns of scores are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeline.foundation import evaluation, manifest as manifests
from pipeline.foundation.evaluation.retrieval import Collection, Ids, Relevance, Side, rows_of
from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.judge.systems.scores.foreign.arrays import Array
from pipeline.judge.systems.scores.foreign.owned import (
    Known,
    Pairing,
    contradicts,
    in_order,
    labels,
    readings,
    same_groups,
)
from pipeline.judge.systems.scores.foreign.words import Name
from pipeline.judge.systems.scores.judged import CAPTIONS, Columns, files_of, manifest_rows

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.judgements.names import Names
    from pipeline.foundation.evaluation.statistics.intervals import Languages

SIDES: tuple[Side, Side] = ("image", "caption")
# Ids in floats are whole numbers up to here, beyond which they may have been rounded.
EXACT = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
NUMBERED_CAPTION = re.compile(r"(.+)#\d+")


@dataclass(frozen=True)
class Given:
    """What a file says of its rows and columns."""

    images: np.ndarray | None = None  # [I], ids as numbers or text; None if it has none
    captions: np.ndarray | None = None  # [C]
    pairings: Sequence[Pairing] = ()  # what says which image each caption is of
    texts: np.ndarray | None = None  # [C], the captions themselves
    others: Sequence[Pairing] = ()  # columns that are not known to say anything

    def of(self, side: Side) -> np.ndarray | None:
        """The ids of a side; None if the file has none."""
        return self.images if side == "image" else self.captions


class Identified(NamedTuple):
    """Which images and captions rows and columns are."""

    pool: Collection
    has_ids: bool
    said: str = ""  # what tells each caption's image, or what was assumed, for the user
    used: Sequence[Pairing] = ()  # what of `Given.pairings` says each caption's image
    used_texts: bool = False  # whether the captions' texts were compared


class Scores(NamedTuple):
    """Scores, and what is known of their rows and columns."""

    source: Any  # as `as_similarity` takes it
    pool: Collection  # the images and captions
    has_ids: bool
    read_as: str  # what was read as what, for the user
    of_vectors: bool = False
    # whether they are of queries and candidates, which nothing calls captions and images
    of_anything: bool = False
    # the file that says what is right, where the scores come with one
    judgements: Path | None = None
    # by a reading's name: the scores of the same files as others read them, see `Difference`
    otherwise: Mapping[str, Callable[[], Scores]] = {}
    # which of these are other parts of one benchmark, over which a mean is taken
    siblings: tuple[str, ...] = ()
    split: str | None = None  # the split that the file says; None where it says none
    languages: Languages | None = None  # likewise of each caption [C]
    # what is right, where they are ranks by other right answers than each caption's own image
    relevance: Relevance | None = None


def in_words(*words: str) -> str:
    """Join what was read as what and what was assumed, in one line."""
    return "; ".join(each for each in words if each)


def known_pool(columns: Columns) -> tuple[Collection, Names] | None:
    """The pool of the manifest's split, and how ids are found in it; None without a manifest."""
    if columns.manifest is None:
        return None
    manifest = manifests.Manifest.load(columns.manifest)
    split = manifest.split(columns.split or "test")
    pool = Collection(split.image_ids, split.caption_ids, split.caption_image)
    return pool, evaluation.judgements.names.Names(pool, lambda: files_of(pool, manifest))


def identified(
    shape: tuple[int, int], given: Given, columns: Columns, path: Path, of_vectors: bool = False
) -> Identified:
    """The images and captions of a matrix [I, C], and whether their ids are known."""
    for side, size in zip(SIDES, shape, strict=True):
        ids = given.of(side)
        if ids is not None and len(ids) != size:
            raise InputError(f"{path}: has {len(ids)} {side} ids for {size} {side}s of its scores")
    if columns.manifest is not None:
        return _of_manifest(shape, given, columns, path, of_vectors)
    given = _with_owners_in_ids(given, path)
    images = _numbers_once(given.images, "image", path)
    captions = _numbers_once(given.captions, "caption", path)
    files = []
    if given.images is not None:
        files = [str(image) for image in given.images.tolist()]
    known = Known(
        shape,
        images,
        captions,
        lambda ids, name: numbers(ids, evaluation.judgements.names.Names(), path, name),
        files,
    )
    owner, said, used = _owners(known, given, columns, path, of_vectors)
    has_ids = images is not None or captions is not None
    if images is None:
        images = np.arange(shape[0])
    if captions is None:
        captions = np.arange(shape[1])
    return Identified(Collection(images, captions, owner), has_ids, said, used)


def _numbers_once(ids: np.ndarray | None, side: Side, path: Path) -> Ids | None:
    """The ids of one side as numbers, each of which is there once; None where none are given."""
    if ids is None:
        return None
    return _once(
        numbers(ids, evaluation.judgements.names.Names(), path, f"{side} ids"), ids, side, path
    )


def numbers(ids: np.ndarray, names: Names, path: Path, what: str = "ids") -> Ids:
    """Ids as numbers: int64 [n], `UNKNOWN` for what is none. Whole numbers that were stored as
    floats are read as such.
    """
    kind = ids.dtype.kind
    largest = np.iinfo(np.int64).max
    exact = EXACT.get(ids.dtype.itemsize, 0)
    if kind == "f":
        is_whole = (np.abs(ids) < exact) & (ids == np.floor(ids))
        if is_whole.all():
            return ids.astype(np.int64)
    if kind == "u" and ids.max(initial=0) > largest:
        raise InputError(
            f"{path}: its {what} go to {ids.max()}, beyond {largest}; save such ids as texts"
        )
    if kind in "iu":
        return ids.astype(np.int64)
    if kind == "S":
        ids = np.char.decode(ids, "utf-8", "replace")
    if ids.dtype.kind not in "UT":
        such = f", such as {_least_like_ids(ids)}" if ids.size else ""
        raise InputError(
            f"{path}: its {what} are {ids.dtype}{such}, which are neither whole numbers nor texts; save "
            "them as one of both"
        )
    return np.array([names.one(str(each)) for each in ids.tolist()], np.int64)


def _least_like_ids(ids: np.ndarray) -> object:
    """The first value that is no whole number; of other types the first."""
    values = ids.ravel()
    if ids.dtype.kind != "f":
        return values[0]
    exact = EXACT.get(ids.dtype.itemsize, 0)
    is_whole = (np.abs(values) < exact) & (values == np.floor(values))
    return values[int(np.argmin(is_whole))]


def _with_owners_in_ids(given: Given, path: Path) -> Given:
    """What a file's ids of captions say of their images: a.jpg#0 is of a.jpg, and ids that are
    images' own are those of the captions' images.
    """
    if given.captions is None:
        return given
    if given.captions.dtype.kind in "UST":
        matches = [*map(NUMBERED_CAPTION.fullmatch, _texts(given.captions))]
        if all(matches):
            of_captions = np.array([match[1] for match in matches if match])
            pairing = Pairing("caption_ids", Array.of(of_captions), "caption")
            return replace(given, pairings=(*given.pairings, pairing))
    if given.images is None:
        return given
    images = numbers(given.images, evaluation.judgements.names.Names(), path)
    captions = numbers(given.captions, evaluation.judgements.names.Names(), path)
    if not np.isin(captions, images).all():
        return given
    pairing = Pairing("caption_ids", Array.of(given.captions), "caption")
    if len(np.unique(captions)) < len(captions):
        return replace(given, captions=None, pairings=(*given.pairings, pairing))
    if len(captions) != len(images) or np.array_equal(captions, images) or given.pairings:
        return given
    if given.captions.dtype.kind in "UST":
        return replace(given, pairings=(pairing,))
    raise InputError(
        f"{path}: has the same numbers as image ids and as caption ids, in another order: save "
        "caption_image, the row of each caption's image from 0"
    )


def _texts(values: np.ndarray) -> list[str]:
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return list(map(str, values.tolist()))


def _owners(
    known: Known, given: Given, columns: Columns, path: Path, of_vectors: bool
) -> tuple[Ids, str, list[Pairing]]:
    """Each caption's image, as the file says it, or else as `columns` do; which of both, in words;
    and what says it.
    """
    is_judged = columns.judged or columns.judgements is not None
    each = columns.captions_per_image
    owner, used = _as_paired(known, given, columns, path)
    if owner is None:
        assumed = columns.of(known.shape, of_vectors)[0]
        if each is not None or is_judged:
            return assumed, "", []
        _refuse_contradicted(assumed, given.pairings, known, path)
        return assumed, f"each image's {CAPTIONS} captions follow one another (assumed)", []
    said = " and ".join(pairing.name for pairing in used)
    count = np.bincount(owner[owner >= 0], minlength=known.shape[0])
    if each is not None and (count != each).any():
        row = int(np.argmax(count != each))
        raise InputError(
            f"{path}: {said} gives image {row} {counted(int(count[row]), 'caption')}, and "
            f"--captions-per-image says {each}; leave the option out"
        )
    return owner, f"each caption's image by {said}", used


def _refuse_contradicted(
    assumed: Ids, pairings: Sequence[Pairing], known: Known, path: Path
) -> None:
    """Refuse to assume what an array contradicts that may say each caption's image."""
    for each in pairings:
        if not each.is_sure and contradicts(each, assumed, known):
            raise InputError(
                f"{path}: {each} may say which image each caption is of, and {CAPTIONS} captions an image "
                "one after another are not that; call it caption_image, the row of each caption's image, or "
                f"give --captions-per-image {CAPTIONS}, or --qrels"
            )


def _as_paired(
    known: Known, given: Given, columns: Columns, path: Path
) -> tuple[Ids | None, list[Pairing]]:
    """The owners that the file's arrays say, and these arrays; None if none says them."""
    owner: Ids | None = None
    used: list[Pairing] = []
    for pairing in sorted(given.pairings, key=lambda each: not each.is_sure):
        read = _read(pairing, known, path)
        if read is None:
            if pairing.is_sure and not _fits_assumed(pairing, known, columns):
                raise _unfit(pairing, known, path)
            continue
        if owner is not None and not np.array_equal(owner, read):
            raise InputError(f"{path}: {used[0]} and {pairing} give captions different images")
        owner = read
        used.append(pairing)
    return owner, used


def _read(pairing: Pairing, known: Known, path: Path) -> Ids | None:
    """The owners that one array says; None if it does not."""
    read = readings(pairing, known)
    if not pairing.is_sure:
        read = [each for each in read if len(np.unique(each)) == known.shape[0]]
    if len(read) > 1:
        raise InputError(
            f"{path}: {pairing} may be read in several ways, such as by rows or by ids of images; save "
            "caption_image, the row of each caption's image from 0"
        )
    if read:
        return read[0]
    if not pairing.is_sure or known.images is not None:
        return None
    as_labels = labels(pairing, known)
    if as_labels is None:
        return None
    return in_order(as_labels, known.shape[0])


def _fits_assumed(pairing: Pairing, known: Known, columns: Columns) -> bool:
    """Whether names that are given to captions' images at least put those together that are assumed
    to be of one image.
    """
    as_labels = labels(pairing, known)
    if as_labels is None or as_labels.dtype.kind not in "UST":
        return False
    try:
        assumed = columns.of(known.shape)[0]
    except InputError:
        return False
    return same_groups(as_labels, assumed)


def _unfit(pairing: Pairing, known: Known, path: Path) -> InputError:
    images, captions = known.shape
    return InputError(
        f"{path}: {pairing} does not say which of {counted(images, 'image')} each of "
        f"{counted(captions, 'caption')} is of: its values are neither rows nor the file's image ids; save "
        "image_ids, or caption_image, the row of each caption's image from 0"
    )


def _of_manifest(
    shape: tuple[int, int], given: Given, columns: Columns, path: Path, of_vectors: bool
) -> Identified:
    known_ids = known_pool(columns)
    assert known_ids is not None
    pool, names = known_ids
    if given.images is None and given.captions is None:
        columns.of(shape, of_vectors)  # which says what a wrong shape may be
    images, captions = (
        _of_side(side, size, given.of(side), known_ids, columns, path)
        for side, size in zip(SIDES, shape, strict=True)
    )
    owned_by = of_owners(
        pool.image_ids,
        pool.caption_image[rows_of(pool.caption_ids, captions)],
        evaluation.judgements.names.UNKNOWN,
    )
    found = Collection(images, captions, rows_of(images, owned_by))
    known = Known(shape, images, captions, lambda ids, name: numbers(ids, names, path, name))
    agreeing = [
        pairing for pairing in given.pairings if _agrees(pairing, found.caption_image, known, path)
    ]
    has_texts = given.captions is None and _texts_agree(given.texts, captions, columns, path)
    assumed = [side for side in SIDES if given.of(side) is None]
    if has_texts:
        assumed.remove("caption")
    if len(assumed) == 1 and not agreeing:
        _refuse_other_order(found, pool, assumed[0], path)
    for side in assumed:
        for other in given.others:
            _refuse_ids_of_other_order(other, side, pool.ids(side), names, path)
    said = ""
    if assumed:
        said = f"{'s and '.join(assumed)}s in the manifest's order (assumed)"
    return Identified(found, True, said, agreeing, has_texts)


def _of_side(
    side: Side,
    size: int,
    ids: np.ndarray | None,
    known: tuple[Collection, Names],
    columns: Columns,
    path: Path,
) -> Ids:
    """The ids of a side in the file's order; without any in the file those of the manifest."""
    own = known[0].ids(side)
    if ids is None and size != len(own):
        raise InputError(
            f"{path}: has {size} {side}s without ids, and the manifest's {columns.known_split} split "
            f"{len(own)}"
        )
    if ids is None:
        return own
    return _of_pool(ids, side, *known, path, columns)


def _agrees(pairing: Pairing, owner: Ids, known: Known, path: Path) -> bool:
    """Whether what the file says of captions' images is what the manifest says; refused where it is
    something else. False for an array that cannot be compared.
    """
    read = readings(pairing, known)
    if any(np.array_equal(each, owner) for each in read):
        return True
    if not pairing.is_sure:
        return False
    as_labels = None if read else labels(pairing, known)
    if read or (as_labels is not None and not same_groups(as_labels, owner)):
        raise InputError(
            f"{path}: {pairing} gives captions other images than the manifest: rows or columns are in "
            "another order than the manifest's; save image_ids and caption_ids"
        )
    return False


def _texts_agree(texts: np.ndarray | None, captions: Ids, columns: Columns, path: Path) -> bool:
    """Whether the file's captions are those of the manifest in its order; refused in another order.
    False where there are none, or others.
    """
    if texts is None or columns.manifest is None:
        return False
    manifest = manifests.Manifest.load(columns.manifest)
    rows = manifest_rows(manifest, "caption", captions)
    captions_of_rows = manifest.rows(["caption"])["caption"].to_numpy()[rows]
    expected = list(map(_plain, captions_of_rows))
    received = list(map(_plain, _texts(texts)))
    if received == expected:
        return True
    there = {*expected}
    for row, (one, other) in enumerate(zip(received, expected, strict=True)):
        if one != other and one in there:
            raise InputError(
                f"{path}: its caption {row} is {one[:40]!a} and the manifest's {other[:40]!a}: columns "
                "are in another order than the manifest's; save caption_ids"
            )
    return False


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _refuse_other_order(found: Collection, pool: Collection, assumed: Side, path: Path) -> None:
    """Refuse one side without ids if those of the other side are in another order than the
    manifest's.
    """
    captions = rows_of(pool.caption_ids, found.caption_ids)
    owner = pool.caption_image[captions]
    images = rows_of(pool.image_ids, found.image_ids)
    if assumed == "image":
        owner = owner[owner >= 0]
        _, first = np.unique(owner, return_index=True)
        images = owner[np.sort(first)]
    if (np.diff(images) < 0).any():
        other = "caption" if assumed == "image" else "image"
        raise InputError(
            f"{path}: its {other}s are in another order than the manifest's, by their ids, and its "
            f"{assumed}s have no ids; save {assumed}_ids too"
        )


def _refuse_ids_of_other_order(
    pairing: Pairing, side: Side, assumed: Ids, names: Names, path: Path
) -> None:
    """Refuse to assume the manifest's order where a column holds all ids of a side in another
    order, or all rows if it is called by the side.
    """
    try:
        received = numbers(pairing.array.read().ravel(), names, path)
    except InputError:
        return  # neither whole numbers nor texts
    expected = [assumed]
    if Name.of(pairing.name).side == side:
        expected.append(np.arange(len(assumed)))
    if any(np.array_equal(received, each) for each in expected):
        return
    if any(np.array_equal(np.sort(received), np.sort(each)) for each in expected):
        raise InputError(
            f"{path}: {pairing} has all {side}s in another order than the manifest's, in which they are without "
            f"{side}_ids; save the rows' ids as {side}_ids, or leave {pairing.name or 'it'} out"
        )


def _of_pool(
    ids: np.ndarray, side: Side, pool: Collection, names: Names, path: Path, columns: Columns
) -> Ids:
    """Ids of one side, all of which must be in the pool."""
    known = pool.ids(side)
    wanted = numbers(ids, names, path, f"{side} ids")
    _refuse_missing(ids, side, path)
    lacking = rows_of(known, wanted) < 0
    if lacking.all():
        raise InputError(
            f"{path}: none of its {len(ids)} {side} ids, such as {ids[0]}, is in the manifest's "
            f"{columns.known_split} split, whose ids are such as {known[0]}: check that it has the "
            "images and captions of this data set and split"
        )
    if lacking.any():
        raise InputError(
            f"{path}: {int(lacking.sum())} of its {len(ids)} {side} ids, such as "
            f"{ids[np.argmax(lacking)]}, are not in the manifest's {columns.known_split} split"
        )
    return _once(wanted, ids, side, path)


def _refuse_missing(ids: np.ndarray, side: Side, path: Path) -> None:
    is_missing = np.array([str(each) == "" for each in ids.tolist()], bool)
    if is_missing.any():
        raise InputError(f"{path}: row {int(np.argmax(is_missing)) + 1} of its {side} ids is empty")


def _once(found: Ids, ids: np.ndarray, side: Side, path: Path) -> Ids:
    _refuse_missing(ids, side, path)
    unique, first, count = np.unique(found, return_index=True, return_counts=True)
    if len(unique) < len(found):
        row = first[np.argmax(count > 1)]
        raise InputError(f"{path}: has the {side} id {ids[row]} twice")
    return found


def numbered(shape: tuple[int, int], owner: Ids) -> Collection:
    """Images and captions whose ids are their rows and columns."""
    return Collection(np.arange(shape[0]), np.arange(shape[1]), owner)

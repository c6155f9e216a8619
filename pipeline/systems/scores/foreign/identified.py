"""Which images and captions the rows and columns of scores are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.evaluation.judgements import qrels
from pipeline.evaluation.judgements.names import UNKNOWN, Names
from pipeline.evaluation.retrieval import Collection, Direction, Ids, Side, rows_of
from pipeline.evaluation.retrieval.owners import of_owners
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.systems.scores.judged import Columns, files_of
from pipeline.systems.scores.runs import Run

SIDES: tuple[Side, Side] = ("image", "caption")


@dataclass(frozen=True)
class Given:
    """What a file says of its rows and columns."""

    images: np.ndarray | None = None  # [I], ids as numbers or text; None if it has none
    captions: np.ndarray | None = None  # [C]
    owners: np.ndarray | None = None  # [C], the row of each caption's image


def known_pool(columns: Columns) -> tuple[Collection, Names] | None:
    """The pool of the manifest's split, and how ids are found in it; None without a manifest."""
    if columns.manifest is None:
        return None
    manifest = Manifest.load(columns.manifest)
    split = manifest.split(columns.split or "test")
    pool = Collection(split.image_ids, split.caption_ids, split.caption_image)
    return pool, Names(pool, lambda: files_of(pool, manifest))


def identified(
    shape: tuple[int, int], given: Given, columns: Columns, path: Path, of_vectors: bool = False
) -> tuple[Collection, bool]:
    """The images and captions of a matrix [I, C], and whether their ids are known."""
    if given.images is None and given.captions is None:
        if given.owners is not None and columns.manifest is None:
            return _numbered(shape, _checked(given.owners, shape, path)), False
        owner, images, captions = columns.of(shape, of_vectors)
        known = images is not None and captions is not None
        return Collection(images, captions, owner) if known else _numbered(shape, owner), known  # type: ignore[arg-type]
    for side, ids, size in zip(SIDES, (given.images, given.captions), shape, strict=True):
        if ids is not None and len(ids) != size:
            raise InputError(f"{path}: has {len(ids)} {side} ids for {size} {side}s of its scores")
    known_ids = known_pool(columns)
    if known_ids is None:
        return _of_file(shape, given, columns, path), True
    pool, names = known_ids
    found = []
    for side, ids, size in zip(SIDES, (given.images, given.captions), shape, strict=True):
        own = pool.ids(side)
        if ids is None and size != len(own):
            raise InputError(
                f"{path}: has {size} {side}s without ids, and the manifest's {columns.known_split} split "
                f"{len(own)}"
            )
        found.append(own if ids is None else _of_pool(ids, side, pool, names, path, columns))
    owner = pool.caption_image[rows_of(pool.caption_ids, found[1])]
    return Collection(
        found[0], found[1], rows_of(found[0], of_owners(pool.image_ids, owner, UNKNOWN))
    ), True


def numbers(ids: np.ndarray, names: Names, path: Path) -> Ids:
    """Ids as numbers: int64 [n], `UNKNOWN` for what is none."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    if ids.dtype.kind not in "US":
        raise InputError(f"{path}: its ids are {ids.dtype}, expected whole numbers or texts")
    return np.array([names.one(str(each)) for each in ids.tolist()], np.int64)


def _of_pool(
    ids: np.ndarray, side: Side, pool: Collection, names: Names, path: Path, columns: Columns
) -> Ids:
    """Ids of one side, all of which must be in the pool."""
    own, found = pool.ids(side), numbers(ids, names, path)
    lacking = rows_of(own, found) < 0
    if lacking.all():
        raise InputError(
            f"{path}: none of its {len(ids)} {side} ids, such as {ids[0]}, is in the manifest's "
            f"{columns.known_split} split, whose ids are such as {own[0]}: is it of another data set or "
            "split?"
        )
    if lacking.any():
        raise InputError(
            f"{path}: {int(lacking.sum())} of its {len(ids)} {side} ids, such as "
            f"{ids[np.argmax(lacking)]}, are not in the manifest's {columns.known_split} split"
        )
    return _once(found, ids, side, path)


def _of_file(shape: tuple[int, int], given: Given, columns: Columns, path: Path) -> Collection:
    images, captions = (
        np.arange(size) if ids is None else _once(numbers(ids, Names(), path), ids, side, path)
        for side, ids, size in zip(SIDES, (given.images, given.captions), shape, strict=True)
    )
    if given.owners is not None:
        return Collection(images, captions, _checked(given.owners, shape, path))
    if given.images is not None and given.captions is not None and given.captions.dtype.kind == "U":
        named = {str(each): row for row, each in enumerate(given.images.tolist())}
        owner = [named.get(str(each).rpartition("#")[0], -1) for each in given.captions.tolist()]
        if min(owner) >= 0:  # a.jpg#0, as Flickr8k and Flickr30k number captions
            return Collection(images, captions, np.array(owner, np.int64))
    return Collection(images, captions, columns.of(shape)[0])


def _once(found: Ids, ids: np.ndarray, side: Side, path: Path) -> Ids:
    if (found == UNKNOWN).any():
        raise InputError(
            f"{path}: row {int(np.argmax(found == UNKNOWN)) + 1} of its {side} ids is empty"
        )
    unique, first, count = np.unique(found, return_index=True, return_counts=True)
    if len(unique) < len(found):
        raise InputError(f"{path}: has the {side} id {ids[first[np.argmax(count > 1)]]} twice")
    return found


def _numbered(shape: tuple[int, int], owner: Ids) -> Collection:
    return Collection(np.arange(shape[0]), np.arange(shape[1]), owner)


def _checked(owners: np.ndarray, shape: tuple[int, int], path: Path) -> Ids:
    if owners.dtype.kind not in "iu" or owners.shape != shape[1:]:
        raise InputError(
            f"{path}: expected the image of each of {shape[1]} captions as whole numbers, received "
            f"{owners.dtype} {list(owners.shape)}"
        )
    if owners.min() < -1 or owners.max() >= shape[0]:
        raise InputError(
            f"{path}: its captions are of the images {owners.min()} to {owners.max()}, expected 0 to "
            f"{shape[0] - 1}, or -1 for none"
        )
    return owners.astype(np.int64)


def pool_of_lists(
    run: Mapping[Direction, Run], columns: Columns, path: Path
) -> tuple[Collection, bool]:
    """The pool of lists without a manifest, and whether its ids are known: of the judgements, or of
    numbers from 0.
    """
    none = Run(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    i2t, t2i = run.get("i2t", none), run.get("t2i", none)
    listed = [np.union1d(i2t.query, t2i.candidate), np.union1d(i2t.candidate, t2i.query)]
    if columns.judgements is not None:
        judged = qrels.ids(columns.judgements, Names())
        every = [np.union1d(one, other) for one, other in zip(listed, judged, strict=True)]
        return Collection(every[0], every[1], np.full(len(every[1]), -1, np.int64)), True
    if columns.captions_per_image is None:
        raise InputError(
            f"{path}: lists the best candidates by their ids; name the --manifest or --qrels that says "
            "what is right, or with ids from 0 the --captions-per-image"
        )
    each = columns.captions_per_image
    # All images or all captions are queries, so their number is known; candidates may lack some.
    sizes = {
        (int(ids.max()) + 1) / of_image
        for ids, of_image in ((i2t.query, 1), (t2i.query, each))
        if len(ids)
    }
    size = int(max(sizes, default=0))
    if sizes != {size} or any(
        len(ids) and not 0 <= ids[0] <= ids[-1] < most
        for ids, most in zip(listed, (size, size * each), strict=True)
    ):
        raise InputError(
            f"{path}: its ids are no numbers from 0 with {each} captions an image; name the --manifest or "
            "--qrels"
        )
    return _numbered((size, size * each), columns.of((size, size * each))[0]), False

"""Relevance from a file: TREC's qrels, or CSV.

    caption:55 0 image:12 1     TREC: query, iteration (not read), document, grade; both directions in one file
    55 0 12 1                   the same with plain numbers: the query is a caption, the document an image
    image,caption,grade         CSV: this header, `grade` may be missing; a row is right in both directions
    12,55,1
    FOLDER                      *_image_to_caption.json and *_caption_to_image.json, each {id: [ids]}, as ECCV Caption's
                                package and the plausible matches of PMRP (Chun et al., CVPR 2021) come

If a file has queries of one direction only, the other direction takes the same pairs. A candidate is wrong if its grade
is 0 or less, or if the file does not list the pair. Files are read in pieces: 16 bytes of each row are kept, and there
cannot be more rows than pairs.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.judgements import coco_pairs, rows
from pipeline.evaluation.retrieval import Collection, Floats, Ids, Positives, Relevance, Side
from pipeline.files import atomic, parsing
from pipeline.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import pyarrow as pa

# The largest grade: a query's sum of such grades stays exact in float64.
LARGEST = 1e9

TREC = ("query", "iteration", "document", "grade")
CSV_NAMES = {"image": "image", "image_id": "image", "caption": "caption", "caption_id": "caption", "grade": "grade",
             "relevance": "grade"}


class _Pairs(NamedTuple):
    """Rows of one direction: places int32 of queries and candidates, grades float64."""

    query: npt.NDArray[np.int32]
    candidate: npt.NDArray[np.int32]
    grade: Floats


def read(path: Path, collection: Collection) -> Relevance:
    """Read judgements."""
    if path.is_dir():
        return _of_folder(path, collection)
    found: dict[bool, list[_Pairs]] = {True: [], False: []}
    most, count = 2 * collection.shape[0] * collection.shape[1], 0
    for table, first in rows.tables(path, TREC, partial(_header, path)):
        for by_image, pairs in _pairs(table, collection, first, path):
            found[by_image].append(pairs)
        count += len(table)
        if count > most:
            raise InputError(f"{path}: holds more rows than there are pairs, {most}; leave one row for each pair")
    owner = collection.caption_image if (collection.caption_image >= 0).any() else None
    asked = {by_image for by_image, parts in found.items() if parts}
    positives = {by_image: _positives(path, parts, by_image, collection) for by_image, parts in found.items()}
    i2t, t2i = positives.pop(True), positives.pop(False)
    if asked == {True, False}:
        relevance = Relevance.of_directions(i2t, t2i, owner)
    elif True in asked:
        relevance = Relevance.of_pairs(i2t.query, i2t.candidate, collection.shape, i2t.grade, owner)
    else:
        relevance = Relevance.of_captions(t2i, collection.shape[0], owner)
    if not len(relevance.i2t.candidate) or not len(relevance.t2i.candidate):
        raise InputError(f"{path}: nothing is right by these judgements: no grade is above 0")
    return relevance


def _of_folder(path: Path, collection: Collection) -> Relevance:
    """The pairs of the two JSON files of a folder."""
    positives = []
    for side, ending in (("image", "image_to_caption"), ("caption", "caption_to_image")):
        files = sorted(path.glob(f"*_{ending}.json"))
        if len(files) != 1:
            raise InputError(f"cannot read {path}: expected one file *_{ending}.json there, found {len(files)}")
        with refusing((ValueError, TypeError, AttributeError), f"{files[0]}: expected JSON, from ids to lists of ids"):
            pairs = {int(query): [parsing.whole(each) for each in listed]
                     for query, listed in parsing.from_json(files[0].read_bytes()).items()}
        positives.append(coco_pairs.positives_of(pairs, collection, side, str(files[0])))  # type: ignore[arg-type]
    return Relevance.of_directions(positives[0], positives[1], collection.caption_image)


def _header(path: Path, line: bytes) -> list[str]:
    try:
        given = line.decode("utf-8-sig").strip().split(",")
        names = [CSV_NAMES[name.strip().strip('"').lower()] for name in given]
    except (UnicodeDecodeError, KeyError):
        names = []
    if not {"image", "caption"} <= set(names) or len(set(names)) < len(names):
        raise InputError(f"{path}: expected TREC's four columns, or CSV with the header image,caption,grade; received "
                         f"{ascii(line[:60])[1:]}")
    return names


def _pairs(table: "pa.Table", collection: Collection, first: int, path: Path) -> Iterator[tuple[bool, _Pairs]]:
    """Split a piece's rows by direction: whether images are the queries, and the pairs."""
    grade = rows.finite(table, "grade", first, path) if "grade" in table.column_names else np.ones(len(table))
    if (large := np.flatnonzero(grade > LARGEST)).size:
        raise InputError(f"{path}: row {first + large[0]}: the grade {grade[large[0]]:g} is above {LARGEST:g}, the "
                         "largest whose sums are exact; use smaller grades")
    image, caption, asks = rows.pairs(table, first, path)
    sides: tuple[tuple[Side, Ids], ...] = (("image", image), ("caption", caption))
    for by_image, own in ((True, sides), (False, sides[::-1])):
        if len(here := np.flatnonzero(asks == by_image)):
            query, candidate = (collection.require(side, ids[here], str(path), first + here).astype(np.int32)
                                for side, ids in own)
            yield by_image, _Pairs(query, candidate, grade[here])


def _positives(path: Path, parts: list[_Pairs], by_image: bool, collection: Collection) -> Positives:
    """Join one direction's right pairs and empty `parts`. Raises InputError for a pair that is judged twice."""
    none = _Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    pairs = _Pairs(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))
    parts.clear()
    queries, candidates = collection.shape if by_image else collection.shape[::-1]
    key = pairs.query.astype(np.int64) * candidates + pairs.candidate
    order = np.argsort(key, kind="stable")
    key, grade = key[order], pairs.grade[order]
    del pairs, order
    if (twice := np.flatnonzero(key[1:] == key[:-1])).size:
        query, candidate = divmod(int(key[twice[0]]), candidates)
        image, caption = (query, candidate) if by_image else (candidate, query)
        more = f", and {len(twice) - 1} more pairs" if len(twice) > 1 else ""
        raise InputError(f"{path}: image {collection.image_ids[image]} and caption {collection.caption_ids[caption]} "
                         f"are judged twice{more}; leave one of each")
    kept = grade > 0
    grade = grade[kept]
    return Positives.of_pairs(key[kept] // candidates, key[kept] % candidates, queries,
                              None if (grade == 1).all() else grade)


def ids(path: Path) -> tuple[Ids, Ids]:
    """Read the distinct ids of images and of captions in a file, for a pool whose ids are not known otherwise."""
    images, captions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for table, first in rows.tables(path, TREC, partial(_header, path)):
        image, caption, _ = rows.pairs(table, first, path)
        images.append(np.unique(image))
        captions.append(np.unique(caption))
    return np.unique(np.concatenate(images)), np.unique(np.concatenate(captions))


def write(path: Path, relevance: Relevance, image_ids: Ids, caption_ids: Ids) -> bool:
    """Write TREC qrels, with ids such as image:12 and whole grades; returns whether a grade changed by rounding."""
    with atomic.replacing(path) as partial_file, partial_file.open("w", encoding="utf-8") as file:
        for positives, asking, answering, ours, theirs in (
                (relevance.i2t, "image", "caption", image_ids, caption_ids),
                (relevance.t2i, "caption", "image", caption_ids, image_ids)):
            pairs = zip(ours[positives.query].tolist(), theirs[positives.candidate].tolist(),
                        positives.grades.tolist(), strict=True)
            file.writelines(f"{asking}:{query} 0 {answering}:{candidate} {max(1, round(grade))}\n"
                            for query, candidate, grade in pairs)
    return any((np.maximum(1, np.round(pairs.grades)) != pairs.grades).any()
               for pairs in (relevance.i2t, relevance.t2i))

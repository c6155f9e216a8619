"""Relevance from a file: TREC's qrels, BEIR's, those of ranx and ir_measures, or CSV.

    caption:55 0 image:12 1     TREC: query, iteration (not read), document, grade; both directions
                                in one file
    55 0 12 1                   the same with plain numbers: the query is a caption, the document an
                                image
    query-id corpus-id score    a header, see `columns`; ids may be images' files, see `names`
    image,caption,grade         CSV: this header, `grade` may be missing; a row is right in both
                                directions
    {"55": {"12": 1}}           JSON: query, document, grade
    FOLDER                      *_image_to_caption.json and *_caption_to_image.json, each {id:
                                [ids]}, as ECCV Caption's package and the plausible matches of PMRP
                                (Chun et al., CVPR 2021) come

If a file has queries of one direction only, the other direction takes the same pairs. A candidate
is wrong if its grade is 0 or less, or if the file does not list the pair. Rows of images or
captions that the pool lacks are left out and counted. Files are read in pieces: 16 bytes of each
row are kept, and there cannot be more rows than pairs.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.judgements import coco_pairs
from pipeline.evaluation.judgements.columns import QRELS
from pipeline.evaluation.judgements.names import UNKNOWN, Names
from pipeline.evaluation.judgements.rows import IDS, Rows
from pipeline.evaluation.retrieval import Collection, Floats, Ids, Positives, Relevance, rows_of
from pipeline.files import atomic, parsing
from pipeline.files.left_out import SHARE, LeftOut
from pipeline.parts.errors import InputError, InputWarning, counted, refusing

if TYPE_CHECKING:
    import pyarrow as pa

# The largest grade: a query's sum of such grades stays exact in float64.
LARGEST = 1e9


@dataclass(frozen=True)
class Judgements:
    """What a file says is right."""

    relevance: Relevance
    title: str  # What the file was recognised as
    left_out: dict[str, int] = field(default_factory=dict)  # Why rows were left out -> how many


class _Pairs(NamedTuple):
    """Rows of one direction: places int32 of queries and candidates, grades float64."""

    query: npt.NDArray[np.int32]
    candidate: npt.NDArray[np.int32]
    grade: Floats


def read(
    path: Path, collection: Collection, names: Names | None = None, share: float = SHARE
) -> Judgements:
    """Read judgements.

    names: finds ids by how they are written; None for the pool's numbers alone. share: the largest
        that may be left out. Warns of rows that are left out, and of those that repeat others.
    """
    if path.is_dir():
        return Judgements(_of_folder(path, collection), "a folder of two JSON files, id: [ids]")
    read_pairs: dict[bool, list[_Pairs]] = {True: [], False: []}
    most = 2 * collection.shape[0] * collection.shape[1]
    rows = Rows(path, QRELS, left_out=LeftOut("row", share))
    for table, numbers in rows.tables():
        for by_image, pairs in _pairs(rows, table, numbers, collection, names or Names(collection)):
            read_pairs[by_image].append(pairs)
        if rows.count > most:
            raise InputError(
                f"{path}: holds more rows than there are pairs, {most}; leave one row for each pair"
            )
    owner = collection.caption_image if (collection.caption_image >= 0).any() else None
    asked = {by_image for by_image, parts in read_pairs.items() if parts}
    joined = {
        by_image: _positives(path, parts, by_image, collection)
        for by_image, parts in read_pairs.items()
    }
    (i2t, _), (t2i, _) = joined[True], joined[False]
    if asked == {True, False}:
        relevance = Relevance.of_directions(i2t, t2i, owner)
    elif True in asked:
        relevance = Relevance.of_pairs(i2t.query, i2t.candidate, collection.shape, i2t.grade, owner)
    else:
        relevance = Relevance.of_captions(t2i, collection.shape[0], owner)
    if not len(relevance.i2t.candidate) or not len(relevance.t2i.candidate):
        raise InputError(
            "; ".join(
                [
                    f"{path}: nothing is right by these judgements: no grade is above 0",
                    *rows.left_out.lines(),
                ]
            )
        )
    repeated = sum(count for _, count in joined.values())
    notes = (
        [f"{counted(repeated, 'row')} repeated with the same grade; one of each counts"]
        if repeated
        else []
    )
    for line in rows.left_out.lines() + notes:
        warnings.warn(f"{path}: {line}", InputWarning, stacklevel=2)
    return Judgements(relevance, rows.title, rows.left_out.counts)


def names_files(path: Path) -> bool:
    """Whether ids of a file are no numbers, so that a manifest has to say which image is which."""
    if path.is_dir():
        return False
    none = np.empty(0, np.int64)
    plain = Names(Collection(none, none, none))
    table, _ = next(Rows(path, QRELS).tables())
    return any(
        (plain.of(table[name].slice(0, 100))[0] == UNKNOWN).any()
        for name in IDS
        if name in table.column_names
    )


def _of_folder(path: Path, collection: Collection) -> Relevance:
    positives = []
    for side, ending in (("image", "image_to_caption"), ("caption", "caption_to_image")):
        files = sorted(path.glob(f"*_{ending}.json"))
        if len(files) != 1:
            raise InputError(
                f"cannot read {path}: expected one file *_{ending}.json there, found {len(files)}"
            )
        with refusing(
            (ValueError, TypeError, AttributeError),
            f"{files[0]}: expected JSON, from ids to lists of ids",
        ):
            pairs = {
                int(query): [parsing.whole(each) for each in listed]
                for query, listed in parsing.from_json(files[0].read_bytes()).items()
            }
        positives.append(coco_pairs.positives_of(pairs, collection, side, str(files[0])))  # type: ignore[arg-type]
    return Relevance.of_directions(positives[0], positives[1], collection.caption_image)


def _pairs(
    rows: Rows, table: "pa.Table", numbers: Ids, collection: Collection, names: Names
) -> Iterator[tuple[bool, _Pairs]]:
    """Split a piece's rows by direction: whether images are the queries, and the pairs."""
    grade, finite = rows.values(table)
    rows.leave_out("a grade that is no number", table, numbers, ~finite)
    if (large := np.flatnonzero(finite & (grade > LARGEST))).size:
        raise InputError(
            f"{rows.path}: row {numbers[large[0]]}: the grade {grade[large[0]]:g} is above {LARGEST:g}, "
            "the largest whose sums are exact; use smaller grades"
        )
    image, caption, asks, usable = rows.pairs(table, numbers, names)
    row, column = rows_of(collection.image_ids, image), rows_of(collection.caption_ids, caption)
    for side, index in (("image", row), ("caption", column)):
        rows.leave_out(f"the pool lacks the {side}", table, numbers, usable & finite & (index < 0))
        usable &= index >= 0
    pairs = row.astype(np.int32), column.astype(np.int32)
    for by_image, (query, candidate) in ((True, pairs), (False, pairs[::-1])):
        if len(here := np.flatnonzero((asks == by_image) & usable & finite)):
            yield by_image, _Pairs(query[here], candidate[here], grade[here])


def _positives(
    path: Path, parts: list[_Pairs], by_image: bool, collection: Collection
) -> tuple[Positives, int]:
    """Join one direction's right pairs and empty `parts`; also how many rows repeat others with the
    same grade.
    """
    none = _Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    pairs = _Pairs(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))
    parts.clear()
    queries, candidates = collection.shape if by_image else collection.shape[::-1]
    key = pairs.query.astype(np.int64) * candidates + pairs.candidate
    order = np.argsort(key, kind="stable")
    key, grade = key[order], pairs.grade[order]
    del pairs, order
    again = np.flatnonzero(key[1:] == key[:-1]) + 1
    if (twice := again[grade[again] != grade[again - 1]]).size:
        query, candidate = divmod(int(key[twice[0]]), candidates)
        image, caption = (query, candidate) if by_image else (candidate, query)
        more = f", and {len(twice) - 1} more pairs" if len(twice) > 1 else ""
        raise InputError(
            f"{path}: image {collection.image_ids[image]} and caption {collection.caption_ids[caption]} "
            f"are judged twice, {grade[twice[0] - 1]:g} and {grade[twice[0]]:g}{more}; leave one of each"
        )
    if again.size:
        key, grade = np.delete(key, again), np.delete(grade, again)
    positive = grade > 0
    grade = grade[positive]
    return Positives.of_pairs(
        key[positive] // candidates,
        key[positive] % candidates,
        queries,
        None if (grade == 1).all() else grade,
    ), again.size


def ids(path: Path, names: Names) -> tuple[Ids, Ids]:
    """Read the distinct ids of images and of captions in a file, for a pool whose ids are not known
    otherwise.
    """
    images, captions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rows = Rows(path, QRELS)
    for table, numbers in rows.tables():
        image, caption, _, usable = rows.pairs(table, numbers, names)
        images.append(np.unique(image[usable]))
        captions.append(np.unique(caption[usable]))
    return np.unique(np.concatenate(images)), np.unique(np.concatenate(captions))


def write(path: Path, relevance: Relevance, image_ids: Ids, caption_ids: Ids) -> bool:
    """Write TREC qrels, with ids such as image:12 and whole grades; returns whether a grade changed
    by rounding.
    """
    with atomic.replacing(path) as partial_file, partial_file.open("w", encoding="utf-8") as file:
        for positives, asking, answering, ours, theirs in (
            (relevance.i2t, "image", "caption", image_ids, caption_ids),
            (relevance.t2i, "caption", "image", caption_ids, image_ids),
        ):
            pairs = zip(
                ours[positives.query].tolist(),
                theirs[positives.candidate].tolist(),
                positives.grades.tolist(),
                strict=True,
            )
            file.writelines(
                f"{asking}:{query} 0 {answering}:{candidate} {max(1, round(grade))}\n"
                for query, candidate, grade in pairs
            )
    return any(
        (np.maximum(1, np.round(pairs.grades)) != pairs.grades).any()
        for pairs in (relevance.i2t, relevance.t2i)
    )

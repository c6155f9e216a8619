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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.judgements import coco_pairs
from pipeline.foundation.evaluation.judgements.columns import QRELS
from pipeline.foundation.evaluation.judgements.names import UNKNOWN, Names
from pipeline.foundation.evaluation.judgements.rows import IDS, Rows, Table
from pipeline.foundation.evaluation.retrieval import (
    Collection,
    Floats,
    Ids,
    Positives,
    Relevance,
    Side,
    rows_of,
)
from pipeline.foundation.files import atomic, parsing
from pipeline.foundation.files.left_out import SHARE, LeftOut
from pipeline.foundation.parts.errors import InputError, InputWarning, counted, refusing

# The largest grade: a query's sum of such grades stays exact in float64.
LARGEST = 1e9


@dataclass(frozen=True)
class Judgements:
    """What a file says is right."""

    path: Path
    relevance: Relevance
    title: str  # What the file was recognised as
    left_out: dict[str, int] = field(default_factory=dict)  # Why rows were left out -> how many
    example: str = ""  # The first candidate as the file writes it


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
        return Judgements(
            path, _of_folder(path, collection), "a folder of two JSON files, id: [ids]"
        )
    rows = Rows(path, QRELS, left_out=LeftOut("row", share))
    names = names or Names(collection)
    by_image, by_caption = _pairs_by_direction(rows, collection, names)
    owner = None
    if (collection.caption_image >= 0).any():
        owner = collection.caption_image
    images_ask = bool(by_image)
    captions_ask = bool(by_caption)
    i2t, repeated_of_images = _positives(rows, by_image, True, collection, names)
    t2i, repeated_of_captions = _positives(rows, by_caption, False, collection, names)
    if images_ask and captions_ask:
        relevance = Relevance.of_directions(i2t, t2i, owner)
    elif images_ask:
        relevance = Relevance.of_pairs(i2t.query, i2t.candidate, collection.shape, i2t.grade, owner)
    else:
        relevance = Relevance.of_captions(t2i, collection.shape[0], owner)
    notes = rows.left_out.lines()
    if not len(relevance.i2t.candidate) or not len(relevance.t2i.candidate):
        nothing = f"{path}: nothing is right by these judgements: no grade is above 0"
        raise InputError("; ".join([nothing, *notes]))
    repeated = repeated_of_images + repeated_of_captions
    if repeated:
        rows_repeated = counted(repeated, "row")
        notes.append(f"{rows_repeated} repeated with the same grade; one of each counts")
    for note in notes:
        warnings.warn(f"{path}: {note}", InputWarning, stacklevel=2)
    return Judgements(path, relevance, rows.title, rows.left_out.counts, rows.example)


def _pairs_by_direction(
    rows: Rows, collection: Collection, names: Names
) -> tuple[list[_Pairs], list[_Pairs]]:
    """Read the pairs whose queries are images, and those whose queries are captions."""
    pairs: dict[bool, list[_Pairs]] = {True: [], False: []}
    most = 2 * collection.shape[0] * collection.shape[1]
    for table, numbers in rows.tables():
        for by_image, of_table in _pairs(rows, table, numbers, collection, names):
            pairs[by_image].append(of_table)
        if rows.count > most:
            raise InputError(
                f"{rows.path}: holds more rows than there are pairs, {most}; leave one row for each pair"
            )
    return pairs[True], pairs[False]


def names_files(path: Path) -> bool:
    """Whether ids of a file are no numbers, so that a manifest has to say which image is which."""
    if path.is_dir():
        return False
    none = np.empty(0, np.int64)
    plain = Names(Collection(none, none, none))
    table, _ = next(Rows(path, QRELS).tables())
    for name in IDS:
        if name in table:
            ids, _ = plain.of(table[name][:100])
            if (ids == UNKNOWN).any():
                return True
    return False


def _of_folder(path: Path, collection: Collection) -> Relevance:
    i2t = _of_json(path, collection, "image", "image_to_caption")
    t2i = _of_json(path, collection, "caption", "caption_to_image")
    return Relevance.of_directions(i2t, t2i, collection.caption_image)


def _of_json(path: Path, collection: Collection, side: Side, ending: str) -> Positives:
    """Read the one file of a folder whose queries are of this side."""
    files = sorted(path.glob(f"*_{ending}.json"))
    if len(files) != 1:
        raise InputError(
            f"cannot read {path}: expected one file *_{ending}.json there, found {len(files)}"
        )
    (file,) = files
    pairs = {}
    with refusing(
        (ValueError, TypeError, AttributeError),
        f"{file}: expected JSON, from ids to lists of ids",
    ):
        for query, listed in parsing.from_json(file.read_bytes()).items():
            pairs[int(query)] = [parsing.whole(candidate) for candidate in listed]
    return coco_pairs.positives_of(pairs, collection, side, str(file))


def _pairs(
    rows: Rows, table: Table, numbers: Ids, collection: Collection, names: Names
) -> Iterator[tuple[bool, _Pairs]]:
    """Split a piece's rows by direction: whether images are the queries, and the pairs."""
    grade, finite = rows.values(table)
    rows.leave_out("a grade that is no number", table, numbers, ~finite)
    large = np.flatnonzero(finite & (grade > LARGEST))
    if large.size:
        first = large[0]
        raise InputError(
            f"{rows.path}: row {numbers[first]}: the grade {grade[first]:g} is above {LARGEST:g}, "
            "the largest whose sums are exact; use smaller grades"
        )
    image, caption, asks, usable = rows.pairs(table, numbers, names)
    row = rows_of(collection.image_ids, image)
    column = rows_of(collection.caption_ids, caption)
    for side, index in (("image", row), ("caption", column)):
        rows.leave_out(f"the pool lacks the {side}", table, numbers, usable & finite & (index < 0))
        usable &= index >= 0
    images = row.astype(np.int32)
    captions = column.astype(np.int32)
    of_images = np.flatnonzero(asks & usable & finite)
    if len(of_images):
        yield True, _Pairs(images[of_images], captions[of_images], grade[of_images])
    of_captions = np.flatnonzero(~asks & usable & finite)
    if len(of_captions):
        yield False, _Pairs(captions[of_captions], images[of_captions], grade[of_captions])


def _positives(
    rows: Rows, parts: list[_Pairs], by_image: bool, collection: Collection, names: Names
) -> tuple[Positives, int]:
    """Join one direction's right pairs and empty `parts`; also how many rows repeat others with the
    same grade.
    """
    none = _Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    columns = zip(none, *parts, strict=True)
    pairs = _Pairs(*map(np.concatenate, columns))
    parts.clear()
    queries, candidates = collection.shape
    if not by_image:
        queries, candidates = candidates, queries
    key = pairs.query.astype(np.int64) * candidates + pairs.candidate
    order = np.argsort(key, kind="stable")
    key = key[order]
    grade = pairs.grade[order]
    del pairs, order
    again = np.flatnonzero(key[1:] == key[:-1]) + 1
    contradicting = again[grade[again] != grade[again - 1]]
    if contradicting.size:
        place = contradicting[0]
        image, caption = divmod(int(key[place]), candidates)
        if not by_image:
            image, caption = caption, image
        more = ""
        if len(contradicting) > 1:
            more = f", and {counted(len(contradicting) - 1, 'more pair')}"
        shown = rows.of_pair(
            int(collection.image_ids[image]), int(collection.caption_ids[caption]), names
        )
        raise InputError(
            f"{rows.path}: one pair is judged twice, with different grades: {shown}{more}; leave one of each"
        )
    if again.size:
        key = np.delete(key, again)
        grade = np.delete(grade, again)
    positive = grade > 0
    key = key[positive]
    grade = grade[positive]
    grades = None
    if (grade != 1).any():
        grades = grade
    return Positives.of_pairs(key // candidates, key % candidates, queries, grades), again.size


def ids(path: Path, names: Names) -> tuple[Ids, Ids]:
    """Read the distinct ids of images and of captions in a file, for a pool whose ids are not known
    otherwise.
    """
    images = [np.empty(0, np.int64)]
    captions = [np.empty(0, np.int64)]
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
        file.writelines(_lines(relevance.i2t, "image", image_ids, "caption", caption_ids))
        file.writelines(_lines(relevance.t2i, "caption", caption_ids, "image", image_ids))
    return _is_rounded(relevance.i2t) or _is_rounded(relevance.t2i)


def _lines(
    positives: Positives, asking: str, asking_ids: Ids, answering: str, answering_ids: Ids
) -> Iterator[str]:
    """The lines of one direction's right pairs."""
    queries = asking_ids[positives.query].tolist()
    candidates = answering_ids[positives.candidate].tolist()
    grades = positives.grades.tolist()
    for query, candidate, grade in zip(queries, candidates, grades, strict=True):
        yield f"{asking}:{query} 0 {answering}:{candidate} {max(1, round(grade))}\n"


def _is_rounded(positives: Positives) -> bool:
    whole = np.maximum(1, np.round(positives.grades))
    return bool((whole != positives.grades).any())

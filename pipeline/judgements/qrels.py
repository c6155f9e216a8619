"""Relevance from a file: TREC's qrels, or CSV.

    caption:55 0 image:12 1     TREC: query, iteration (not read), document, grade; of both directions in one file
    55 0 12 1                   the same: of plain numbers the query is a caption, the document an image
    image,caption,grade         CSV: this header, `grade` may be missing; a row is right in both directions
    12,55,1

Where a file asks in one direction alone, the other takes the same pairs. A grade of 0 or less says that a candidate is
wrong, as does a pair that is not in the file. Files are read in pieces: 16 bytes of each row are kept, and there cannot
be more rows than pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import InputError
from pipeline.judgements.collection import Collection, Side
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.relevance import Floats, Positives, Relevance

if TYPE_CHECKING:
    import pyarrow as pa

PIECE, LONGEST_LINE = 16_000_000, 100_000  # bytes
TREC = ("query", "iteration", "document", "grade")
CSV_NAMES = {"image": "image", "image_id": "image", "caption": "caption", "caption_id": "caption", "grade": "grade",
             "relevance": "grade"}


class _Pairs(NamedTuple):
    """Rows of one direction: places int32 of queries and candidates, grades float64."""

    query: npt.NDArray[np.int32]
    candidate: npt.NDArray[np.int32]
    grade: Floats


def read(path: Path, collection: Collection) -> Relevance:
    """Reads judgements.

    Args:
        path: The file.
        collection: Whose images and captions it judges.

    Returns:
        What is right.

    Raises:
        InputError: For a file that cannot be read or is of another form, ids that the pool does not have, grades that
            are no finite numbers, a pair that is judged twice, and where nothing is right.
    """
    found: dict[bool, list[_Pairs]] = {True: [], False: []}
    most, rows = 2 * collection.shape[0] * collection.shape[1], 0
    for table, first in _tables(path):
        where = f"{path}, rows {first} to {first + len(table) - 1}"
        for by_image, pairs in _pairs(table, collection, where, first, path):
            found[by_image].append(pairs)
        rows += len(table)
        if rows > most:
            raise InputError(f"{path}: holds more rows than there are pairs, {most}: some are there twice")
    owner = collection.owner if (collection.owner >= 0).any() else None
    asked = {by_image for by_image, parts in found.items() if parts}
    positives = {by_image: _positives(path, _joined(parts), by_image, collection) for by_image, parts in found.items()}
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


def _pieces(path: Path) -> Iterator[bytes]:
    """The file in pieces of whole lines."""
    try:
        with path.open("rb") as file:
            rest = b""
            while piece := file.read(PIECE):
                lines, newline, rest = (rest + piece).rpartition(b"\n")
                if newline:
                    yield lines + newline
                if len(rest) > LONGEST_LINE:
                    raise InputError(f"{path}: holds a line of more than {LONGEST_LINE} bytes: it is no file of "
                                     "judgements")
            if rest.strip():
                yield rest + b"\n"
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _tables(path: Path) -> Iterator[tuple[pa.Table, int]]:
    """The rows as text, piece by piece, each with the number of its first row, from 1."""
    import pyarrow as pa
    from pyarrow import csv

    names: list[str] | None = None
    comma, first = False, 1
    for piece in _pieces(path):
        if names is None:
            head, _, body = piece.partition(b"\n")
            comma = b"," in head
            names = _header(path, head) if comma else list(TREC)
            piece = body.removeprefix(b"\xef\xbb\xbf") if comma else piece.removeprefix(b"\xef\xbb\xbf")
        if not comma:
            piece = re.sub(rb" ?\n ?", b"\n", re.sub(rb"[ \t\r\f\v]+", b" ", piece)).lstrip(b" ")
        if not piece.strip():
            continue
        try:
            table = csv.read_csv(
                pa.BufferReader(piece), csv.ReadOptions(column_names=names),
                csv.ParseOptions(delimiter="," if comma else " ", quote_char='"' if comma else False),
                csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())))
        except pa.ArrowInvalid as error:
            said = ascii(str(error).splitlines()[0])[1:-1][:150]
            raise InputError(f"{path}: from row {first} on: {said}; expected {' '.join(names)}") from None
        yield table, first
        first += len(table)
    if names is None:
        raise InputError(f"{path}: is empty, expected judgements")


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


def _pairs(table: pa.Table, collection: Collection, where: str, first: int, path: Path
           ) -> Iterator[tuple[bool, _Pairs]]:
    """A piece's rows by direction: whether images ask, and the pairs."""
    grade = _grades(table, first, path)
    if "image" in table.column_names:
        image = collection.require("image", numbers(table["image"], first, path), where)
        caption = collection.require("caption", numbers(table["caption"], first, path), where)
        yield False, _Pairs(caption.astype(np.int32), image.astype(np.int32), grade)
        return
    query, query_is_image = _named(table["query"], "caption", first, path)
    document, document_is_image = _named(table["document"], "image", first, path)
    if (wrong := np.flatnonzero(query_is_image == document_is_image)).size:
        kind = "image" if query_is_image[wrong[0]] else "caption"
        raise InputError(f"{path}: row {first + wrong[0]} judges {_a(kind)} for {_a(kind)}; expected a caption and an "
                         "image")
    for by_image, sides in ((True, ("image", "caption")), (False, ("caption", "image"))):
        rows = query_is_image == by_image
        if rows.any():
            places = [collection.require(side, ids[rows], where)  # type: ignore[arg-type]
                      for side, ids in zip(sides, (query, document), strict=True)]
            yield by_image, _Pairs(places[0].astype(np.int32), places[1].astype(np.int32), grade[rows])


def _a(kind: str) -> str:
    return "an image" if kind == "image" else "a caption"


def _named(column: Any, otherwise: Side, first: int, path: Path) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Ids, and which of them are images; plain numbers are `otherwise`."""
    from pyarrow import compute

    image, caption = (compute.starts_with(column, f"{side}:").to_numpy() for side in ("image", "caption"))
    plain = compute.replace_substring_regex(column, "^(image|caption):", "")
    return numbers(plain, first, path), (image | ~caption) if otherwise == "image" else image


def numbers(column: Any, first: int, path: Path) -> Ids:
    """A column of text as int64. Raises InputError with the row of the first that is none."""
    import pyarrow as pa

    try:
        found: Ids = column.cast(pa.int64()).to_numpy()
        return found
    except (pa.ArrowInvalid, ValueError):
        row, value = next(((row, value) for row, value in enumerate(column.to_pylist())
                           if not re.fullmatch(r"-?\d{1,18}", value or "")), (0, column[0].as_py()))
        raise InputError(f"{path}: row {first + row}: {(value or '')[:40]!a} is no id; expected whole numbers, or "
                         "image:12 and caption:55") from None


def _grades(table: pa.Table, first: int, path: Path) -> Floats:
    import pyarrow as pa

    if "grade" not in table.column_names:
        return np.ones(len(table))
    try:
        grade: Floats = table["grade"].cast(pa.float64()).to_numpy()
        wrong = np.flatnonzero(~np.isfinite(grade))
        if not len(wrong):
            return grade
        row = int(wrong[0])
    except (pa.ArrowInvalid, ValueError):
        row = next((row for row, value in enumerate(table["grade"].to_pylist()) if not _is_number(value)), 0)
    raise InputError(f"{path}: row {first + row}: the grade {(table['grade'][row].as_py() or '')[:40]!a} is no "
                     "finite number")


def _is_number(text: str | None) -> bool:
    try:
        return bool(np.isfinite(float(text or "")))
    except ValueError:
        return False


def _joined(parts: list[_Pairs]) -> _Pairs:
    if not parts:
        return _Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    joined = _Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    parts.clear()
    return joined


def _positives(path: Path, pairs: _Pairs, by_image: bool, collection: Collection) -> Positives:
    """What is right in one direction. Raises InputError for a pair that is judged twice."""
    queries, candidates = collection.shape if by_image else collection.shape[::-1]
    key = pairs.query.astype(np.int64) * candidates + pairs.candidate
    order = np.argsort(key, kind="stable")
    key, grade = key[order], pairs.grade[order]
    del pairs, order
    if (twice := np.flatnonzero(key[1:] == key[:-1])).size:
        query, candidate = divmod(int(key[twice[0]]), candidates)
        image, caption = (query, candidate) if by_image else (candidate, query)
        raise InputError(f"{path}: image {collection.image_ids[image]} and caption {collection.caption_ids[caption]} "
                         f"are judged twice, and {len(twice) - 1} more pairs; leave one of each")
    kept = grade > 0
    grade = grade[kept]
    return Positives.of_pairs(key[kept] // candidates, key[kept] % candidates, queries,
                              None if (grade == 1).all() else grade)

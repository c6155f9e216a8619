"""Files of judgements and runs as tables of text, read piece by piece, and the ids in them."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.evaluation.retrieval import Collection, Floats, Ids, Marks, Relevance, Side
from pipeline.evaluation.statistics.intervals import Languages
from pipeline.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import pyarrow as pa

PIECE, LONGEST_LINE = 16_000_000, 100_000  # bytes
BOM = b"\xef\xbb\xbf"
BLANKS = bytes.maketrans(b"\t\r\f\v", b"    ")


def tables(path: Path, names: Sequence[str], header: Callable[[bytes], list[str]] | None = None
           ) -> "Iterator[tuple[pa.Table, int]]":
    """The rows as text, piece by piece, each with the number of its first row, from 1."""
    columns: list[str] | None = None
    comma, first = False, 1
    for piece in _pieces(path):
        if columns is None:
            head, _, body = piece.partition(b"\n")
            comma = header is not None and b"," in head
            columns = header(head) if comma and header else list(names)
            piece = body if comma else piece.removeprefix(BOM)
        if not comma:  # one blank between columns, and none around them
            piece = piece.translate(BLANKS)
            while b"  " in piece:
                piece = piece.replace(b"  ", b" ")
            piece = piece.replace(b" \n", b"\n").replace(b"\n ", b"\n").lstrip(b" ")
        if piece.strip():
            table = _parsed(piece, columns, "," if comma else " ", f"{path}: from row {first} on")
            yield table, first
            first += len(table)
    if columns is None:
        raise InputError(f"{path}: is empty, expected columns {' '.join(names)}")


def _pieces(path: Path) -> Iterator[bytes]:
    """The file in pieces of whole lines."""
    with refusing(OSError, lambda error: f"cannot read {path}: {error.strerror or error}"), path.open("rb") as file:
        rest = b""
        while piece := file.read(PIECE):
            lines, newline, rest = (rest + piece).rpartition(b"\n")
            if newline:
                yield lines + newline
            if len(rest) > LONGEST_LINE:
                raise InputError(f"{path}: holds a line of more than {LONGEST_LINE} bytes: it is no table")
        if rest.strip():
            yield rest + b"\n"


def _parsed(piece: bytes, names: list[str], delimiter: str, where: str) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import csv

    try:
        return csv.read_csv(pa.BufferReader(piece), csv.ReadOptions(column_names=names),
                            csv.ParseOptions(delimiter=delimiter, quote_char='"' if delimiter == "," else False),
                            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())))
    except pa.ArrowInvalid as error:
        said = ascii(str(error).splitlines()[0])[1:-1][:150]
        raise InputError(f"{where}: {said}; expected {' '.join(names)}") from None


def sides(column: Any, otherwise: Side, first: int, path: Path) -> tuple[Ids, Marks]:
    """The ids of a column, int64 [n], and which of them are images, bool [n]."""
    from pyarrow import compute

    image, caption = (compute.starts_with(column, f"{side}:").to_numpy() for side in ("image", "caption"))
    if image.any() or caption.any():
        column = compute.replace_substring_regex(column, "^(image|caption):", "")
    return numbers(column, first, path), (image | ~caption) if otherwise == "image" else image


def pairs(table: "pa.Table", first: int, path: Path) -> tuple[Ids, Ids, Marks]:
    """The ids of a table's images and captions, int64 [n] each, and in which rows the image is the query, bool [n].

    A plain number in the column of queries is a caption, in that of documents an image.
    """
    if "image" in table.column_names:
        image, caption = (numbers(table[name], first, path) for name in ("image", "caption"))
        return image, caption, np.zeros(len(table), bool)
    query, asks = sides(table["query"], "caption", first, path)
    document, answers = sides(table["document"], "image", first, path)
    if (wrong := np.flatnonzero(asks == answers)).size:
        kind = "an image" if asks[wrong[0]] else "a caption"
        raise InputError(f"{path}: row {first + wrong[0]} pairs {kind} with {kind}; name a caption and an image")
    return np.where(asks, query, document), np.where(asks, document, query), asks


def numbers(column: Any, first: int, path: Path) -> Ids:
    """Read a column of text as whole numbers, int64 [n]."""
    import pyarrow as pa

    try:
        found: Ids = column.cast(pa.int64()).to_numpy()
        return found
    except (pa.ArrowInvalid, ValueError):
        row, value = next(((row, value) for row, value in enumerate(column.to_pylist())
                           if not re.fullmatch(r"-?\d{1,18}", value or "")), (0, column[0].as_py()))
        raise InputError(f"{path}: row {first + row}: {(value or '')[:40]!a} is no id; expected whole numbers, or "
                         "image:12 and caption:55") from None


def finite(table: "pa.Table", name: str, first: int, path: Path) -> Floats:
    """Read a column of text as numbers, float64 [n]."""
    import pyarrow as pa

    try:
        values: Floats = table[name].cast(pa.float64()).to_numpy()
        wrong = np.flatnonzero(~np.isfinite(values))
        if not len(wrong):
            return values
        row = int(wrong[0])
    except (pa.ArrowInvalid, ValueError):
        row = next((row for row, value in enumerate(table[name].to_pylist()) if not _is_finite(value)), 0)
    raise InputError(f"{path}: row {first + row}: the {name} {(table[name][row].as_py() or '')[:40]!a} is not finite")


def _is_finite(text: str | None) -> bool:
    try:
        return bool(np.isfinite(float(text or "")))
    except ValueError:
        return False


def same_text(collection: Collection, languages: Languages | None = None) -> tuple[Ids, Relevance]:
    """Merge captions with the same text: the columns that stay, int64 [T] ascending, and their relevance, [I, T]."""
    if collection.captions is None:
        raise InputError("captions are compared by their text, which is not known: name the --manifest")
    number: dict[tuple[str, str], int] = {}
    of = [""] * len(collection.captions) if languages is None else languages.tolist()
    text = np.array([number.setdefault((language, caption.strip()), len(number))
                     for language, caption in zip(of, collection.captions, strict=True)], np.int64)
    kept = np.unique(text, return_index=True)[1]
    known = np.flatnonzero(collection.caption_image >= 0)
    pairs = np.unique(np.stack([text[known], collection.caption_image[known]]), axis=1)
    shape = len(collection.image_ids), len(kept)
    return kept, Relevance.of_pairs(pairs[1], pairs[0], shape, owner=collection.caption_image[kept])

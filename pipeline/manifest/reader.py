"""The interface of readers of annotations, and what they share."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.files import long_json, parsing, remote
from pipeline.manifest.table import AT_ONCE
from pipeline.parts.errors import refusing

if TYPE_CHECKING:
    import pandas as pd

PART = 1 << 20  # bytes of a file that are read at once


@dataclass(frozen=True)
class Reader:
    """One format of annotations.

    Attributes:
        title: What the format is, for help and messages.
        recognises: Whether a file or folder looks like this format. It may read the file's beginning.
        read: Reads a file or folder into a row for each caption: image_id, file, caption_id, caption; split, if the
            annotations have splits; language, if captions are in several languages; role_graph, if they have role
            graphs; kind, if they say that the files are videos; start and end, in seconds, if these are cut into
            clips.
        names_every_image: Whether an image of the folder that the annotations do not name is a mistake.
    """

    title: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path], pd.DataFrame]
    names_every_image: bool = False


def not_utf8(path: Path) -> AbstractContextManager[None]:
    """Refuse bytes that are no text."""
    return refusing(UnicodeDecodeError,
                    lambda error: f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8")


def parts_of(path: Path) -> Iterator[str]:
    """The contents of a text file, part by part."""
    decode, before = codecs.getincrementaldecoder("utf-8-sig")().decode, 0
    with (refusing((FileNotFoundError, NotADirectoryError), f"{path}: no such annotation file"),
          refusing(IsADirectoryError, f"{path}: is a folder, expected an annotation file"), not_utf8(path),
          io.BytesIO(remote.read_bytes(path)) if remote.address(path) else path.open("rb") as file):
        for content in chain(iter(partial(file.read, PART), b""), [b""]):
            try:
                yield decode(content, final=not content)
            except UnicodeDecodeError as error:
                error.start += before + len(content) - len(error.object)  # which may begin in the part before
                raise
            before += len(content)


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file with their ends, which may be any."""
    ends, rest = io.IncrementalNewlineDecoder(None, translate=True), ""
    for part in chain(parts_of(path), [None]):
        *lines, rest = (rest + ends.decode(part or "", final=part is None)).split("\n")
        yield from (f"{line}\n" for line in lines)
    yield rest


def text_of(path: Path) -> str:
    """The contents of a text file."""
    return "".join(parts_of(path))


def json_of(path: Path) -> Any:
    """Read a JSON file of annotations."""
    text = text_of(path)
    with _json(path):
        return parsing.from_json(text)


def members_of(path: Path, *lists: str) -> Iterator[tuple[str, Any]]:
    """Read a JSON file of annotations by members, or lists in it by elements, see `long_json.members`."""
    with _json(path):
        yield from long_json.members(parts_of(path), *lists)


def _json(path: Path) -> AbstractContextManager[None]:
    return refusing(ValueError, lambda error: f"{path}: is not JSON: {error}")


def expecting(place: object, layout: str) -> AbstractContextManager[None]:
    """Raise an InputError if the block cannot read annotations in one layout."""
    return refusing((KeyError, TypeError, AttributeError, ValueError), lambda error: f"{place}: not {layout} "
                    f"({type(error).__name__}: {error})")


def table_of(images: Iterable[tuple[int, str, str | None, Iterable[str]]]) -> pd.DataFrame:
    """Make a row for each caption of images, given by their id, file, split and captions; captions are numbered."""
    rows = ((number, file, split, caption) for number, file, split, captions in images for caption in captions)
    table = table_of_rows(rows, ["image_id", "file", "split", "caption"])
    return table.assign(caption_id=range(len(table)))


def table_of_rows(rows: Iterable[tuple[object, ...]], columns: Sequence[str]) -> pd.DataFrame:
    """Make a table of rows, of which at most `AT_ONCE` are Python objects at a time."""
    import pandas as pd

    left = iter(rows)
    parts = [pd.DataFrame(list(islice(left, AT_ONCE)), columns=list(columns))]
    while part := list(islice(left, AT_ONCE)):  # a part without rows would have columns of other types
        parts.append(pd.DataFrame(part, columns=list(columns)))
    return pd.concat(parts, ignore_index=True)

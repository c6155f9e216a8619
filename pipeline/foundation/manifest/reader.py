"""The interface of readers of annotations, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.foundation.files import long_json, parsing
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest.columns import AT_ONCE
from pipeline.foundation.manifest.text_file import TextFile, text_of
from pipeline.foundation.parts.errors import refusing

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Source:
    """Annotations that are to be read."""

    path: Path  # The file or folder
    left_out: LeftOut = field(default_factory=LeftOut)  # Receives what cannot be used
    # Called with one line that says what the annotations are taken for, before they are read.
    say: Callable[[str], object] = lambda line: None
    split_by_name: bool = (
        True  # Whether a single file's name may say its split, such as coco_karpathy_val.json
    )


@dataclass(frozen=True)
class Reader:
    """One format of annotations."""

    title: str  # What the format is, for help and messages
    # Whether a file or folder looks like this format. It may read the file's beginning.
    recognises: Callable[[Path], bool]
    # Reads annotations into a row for each caption: image_id, file ("" for a caption that belongs
    # to no image), caption_id, caption ("" in the row of an image that has none; both are
    # candidates and no queries); split, if the annotations have splits; language, if captions are
    # in several languages; further inputs of captions, if they have such; kind, if they say that
    # the files are videos; start and end, in seconds, if these are cut into clips.
    read: Callable[[Source], pd.DataFrame]
    # Whether an image of the folder that the annotations do not name is left out as an odd one.
    names_every_image: bool = False


def json_of(path: Path) -> Any:
    """Read a JSON file of annotations."""
    text = text_of(path)
    with _json(path):
        return parsing.from_json(text)


def members_of(file: TextFile, *lists: str) -> Iterator[tuple[str, Any]]:
    """Read a JSON file of annotations by members, or lists in it by elements, see
    `long_json.members`.
    """
    with _json(file.path):
        yield from long_json.members(file.parts(), *lists)


def _json(path: Path) -> AbstractContextManager[None]:
    return refusing(ValueError, lambda error: f"{path}: not readable as JSON: {error}")


def expecting(place: object, layout: str) -> AbstractContextManager[None]:
    """Raise an InputError if the block cannot read annotations in one layout."""

    def message(error: BaseException) -> str:
        fault = str(error)
        if isinstance(error, KeyError):
            fault = f"{error} is missing"
        return f"{place}: not {layout}; {fault}"

    return refusing((KeyError, TypeError, AttributeError, ValueError), message)


def table_of(images: Iterable[tuple[int, str, str | None, Iterable[str]]]) -> pd.DataFrame:
    """Make a row for each caption of images, given by their id, file, split and captions; captions
    are numbered.
    """
    rows = (
        (number, file, split, caption)
        for number, file, split, captions in images
        for caption in captions
    )
    table = table_of_rows(rows, ["image_id", "file", "split", "caption"])
    return table.assign(caption_id=range(len(table)))


def table_of_rows(rows: Iterable[tuple[object, ...]], columns: Sequence[str]) -> pd.DataFrame:
    """Make a table of rows, of which at most `AT_ONCE` are Python objects at a time."""
    import pandas as pd

    names = list(columns)
    remaining = iter(rows)
    part = list(islice(remaining, AT_ONCE))
    tables = [pd.DataFrame(part, columns=names)]
    # Another part without rows would have columns of other types.
    while len(part) == AT_ONCE:
        part = list(islice(remaining, AT_ONCE))
        if part:
            tables.append(pd.DataFrame(part, columns=names))
    return pd.concat(tables, ignore_index=True)

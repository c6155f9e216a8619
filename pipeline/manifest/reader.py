"""What every reader of annotations offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.files import parsing, remote
from pipeline.parts.errors import refusing

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reader:
    """One format of annotations.

    Attributes:
        title: What the format is, for help and messages.
        recognises: Whether a file or folder looks like this format. It may read the file's beginning.
        read: From a file or folder to a row a caption: image_id, file, caption_id, caption; split, where the
            annotations have splits; language, where captions are in several languages; role_graph, where they have
            role graphs; kind, where they say that the files are videos; start and end, in seconds, where these are cut
            into clips.
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


def text_of(path: Path) -> str:
    """The contents of a text file."""
    with (refusing((FileNotFoundError, NotADirectoryError), f"{path}: no such annotation file"),
          refusing(IsADirectoryError, f"{path}: is a folder, expected an annotation file"),
          not_utf8(path)):
        return (remote.read_bytes(path) if remote.address(path) else path.read_bytes()).decode("utf-8-sig")


def json_of(path: Path) -> Any:
    """Read a JSON file of annotations."""
    text = text_of(path)
    with refusing(ValueError, lambda error: f"{path}: is not JSON: {error}"):
        return parsing.from_json(text)


def expecting(place: object, layout: str) -> AbstractContextManager[None]:
    """Refuse annotations from which a reader of one layout cannot take what it needs."""
    return refusing((KeyError, TypeError, AttributeError, ValueError), lambda error: f"{place}: not {layout} "
                    f"({type(error).__name__}: {error})")


def table_of(images: Iterable[tuple[int, str, str | None, Iterable[str]]]) -> pd.DataFrame:
    """Make a row for each caption of images, given by their id, file, split and captions; captions are numbered."""
    import pandas as pd

    rows = [(number, file, split, caption) for number, file, split, captions in images for caption in captions]
    table = pd.DataFrame(rows, columns=["image_id", "file", "split", "caption"])
    return table.assign(caption_id=range(len(table)))

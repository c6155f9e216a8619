"""Names of images in annotations, and the files of the folder that they mean.

A name may differ from the file's in blanks around it, a `./` before it, backslashes, capitals, the
Unicode form of its letters, a missing suffix, or the folder's own path, or its end, before it. It
may be COCO's number of the image.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from pipeline.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from pipeline.files.image_names import number

# What macOS and Windows put into folders and archives.
COMPANIONS = ("._", ".DS_Store", "Thumbs.db", "desktop.ini")
MOST = 200_000  # files among which a similar name is looked for


def is_companion(file: str) -> bool:
    """Whether a file is one that macOS or Windows added."""
    parts = PurePosixPath(file).parts
    return "__MACOSX" in parts or parts[-1].startswith(COMPANIONS)


def plain(name: str, folder: Path | None = None) -> str:
    """A name without blanks around it, with / between its parts, and below the folder if it is that
    one's full path.
    """
    path = PurePosixPath(name.strip().replace("\\", "/"))
    if (
        folder is not None
        and path.is_absolute()
        and path.is_relative_to(folder.absolute().as_posix())
    ):
        path = path.relative_to(folder.absolute().as_posix())
    return path.as_posix()


def _key(name: str) -> str:
    return normalize("NFC", name).casefold()


class Folder:
    """The files of a folder, found by names that are spelled otherwise."""

    def __init__(self, path: Path) -> None:
        self.files = [file for file in listed(path) if not is_companion(file)]
        self._by_key: dict[str, list[str]] = {}
        self._by_number: dict[str, list[str]] = {}
        for file in self.files:
            # Where a Windows archive was unpacked, a backslash may be a part of a file's name.
            stem, suffix = os.path.splitext(file.replace("\\", "/"))
            self._by_key.setdefault(_key(stem + suffix), []).append(file)
            if suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES:
                self._by_key.setdefault(_key(stem), []).append(file)
                for digits in number(PurePosixPath(stem).name):
                    self._by_number.setdefault(digits, []).append(file)

    def find(self, names: Iterable[str], folder: Path) -> dict[str, str]:
        """Find files by name; names of none, or of several, are left out."""
        matches = {name: self._of(plain(name, folder), folder) for name in names}
        return {name: files[0] for name, files in matches.items() if len(files) == 1}

    def _of(self, name: str, folder: Path) -> list[str]:
        """The files that a name may mean; images/a.jpg in a folder `images` also means a.jpg."""
        parts, above = PurePosixPath(name).parts, folder.absolute().parts
        lengths = [
            0,
            *(length for length in range(1, len(parts)) if parts[:length] == above[-length:]),
        ]
        below = ("/".join(parts[length:]) for length in lengths)
        return next(
            (files for file in below if (files := self._by_key.get(_key(file)))), None
        ) or self._by_number.get(name.lstrip("0"), [])

    def meant(self, name: str) -> str:
        """Say which file may be meant; "" if none is near."""
        base = PurePosixPath(plain(name)).name
        same = [file for file in self.files if PurePosixPath(file).name == base]
        near = same or (
            get_close_matches(plain(name), self.files, 1, 0.8) if len(self.files) < MOST else []
        )
        return f"; did you mean {near[0]}?" if near else ""


def listed(path: Path) -> Iterator[str]:
    """The files below a folder, by their paths below it."""
    for place, _, names in os.walk(path):
        below = "" if (folder := Path(place)) == path else f"{folder.relative_to(path).as_posix()}/"
        yield from (below + name for name in names)


def unnamed(
    path: Path, named: Collection[str], suffixes: Collection[str]
) -> tuple[list[str], list[str]]:
    """Images of a folder that annotations do not name, and files that macOS or Windows added."""
    files = [file for file in listed(path) if file not in named]
    images = [
        file
        for file in files
        if os.path.splitext(file)[1].lower() in suffixes and not is_companion(file)
    ]
    return sorted(images), sorted(filter(is_companion, files))

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

from pipeline.foundation.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from pipeline.foundation.files.image_names import number

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
    image_path = PurePosixPath(name.strip().replace("\\", "/"))
    if folder is not None and image_path.is_absolute():
        images_folder = folder.absolute().as_posix()
        if image_path.is_relative_to(images_folder):
            image_path = image_path.relative_to(images_folder)
    return image_path.as_posix()


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
        parts = PurePosixPath(name).parts
        above = folder.absolute().parts
        for length in range(max(1, len(parts))):
            if length and parts[:length] != above[-length:]:
                continue
            below = "/".join(parts[length:])
            files = self._by_key.get(_key(below))
            if files:
                return files
        return self._by_number.get(name.lstrip("0"), [])

    def meant(self, name: str) -> str:
        """Say which file may be meant; "" if none is near."""
        image_name = plain(name)
        base_name = PurePosixPath(image_name).name
        near_files = [file for file in self.files if PurePosixPath(file).name == base_name]
        if not near_files and len(self.files) < MOST:
            near_files = get_close_matches(image_name, self.files, 1, 0.8)
        if not near_files:
            return ""
        return f"; did you mean {near_files[0]}?"


def listed(path: Path) -> Iterator[str]:
    """The files below a folder, by their paths below it."""
    for place, _, file_names in os.walk(path):
        folder = Path(place)
        folder_below = ""
        if folder != path:
            folder_below = f"{folder.relative_to(path).as_posix()}/"
        for file_name in file_names:
            yield folder_below + file_name


def unnamed(
    path: Path, named: Collection[str], suffixes: Collection[str]
) -> tuple[list[str], list[str]]:
    """Images of a folder that annotations do not name, and files that macOS or Windows added."""
    images = []
    companions = []
    for file in listed(path):
        if file in named:
            continue
        if is_companion(file):
            companions.append(file)
        elif os.path.splitext(file)[1].lower() in suffixes:
            images.append(file)
    return sorted(images), sorted(companions)

"""Find the file of each image or clip that annotations name: its name in the folder, and its
size.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pipeline.foundation.files import containers, remote, unfetched
from pipeline.foundation.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES, Kind
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest.columns import NO_FILE
from pipeline.foundation.manifest.image_names import Folder, plain, unnamed
from pipeline.foundation.parts.errors import InputError, counted, refusing

if TYPE_CHECKING:
    import pandas as pd

LARGEST_POINTER = 1024  # bytes of a pointer to a file that was not fetched
ORDINARY = re.compile(r"(?:[^/.\\\0][^/\\\0]*/)*[^/.\\\0][^/\\\0]*")
"""Paths below a folder without a name that begins with a dot. They are safe without the slower
checks."""


def find(
    table: pd.DataFrame,
    folder: Path | None,
    kind: Kind,
    left_out: LeftOut,
    say: Callable[[str], object],
    source: Path,
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Find the file of each name: the rows that have one, with the files' names, and each file's
    size.
    """
    image_names = table["file"].unique().tolist()
    file_of = {name: name for name in image_names}
    for name in image_names:
        if not ORDINARY.fullmatch(name):
            file_of[name] = plain(name, folder)
            _check_inside(file_of[name], source)
    files = [*dict.fromkeys(file_of.values())]
    if folder is None:
        return _renamed(table, file_of), dict.fromkeys(files, NO_FILE)
    if kind == "video":
        _check_plain(folder, files)
    sizes = _sizes(folder, files)
    waiting = _unfetched(folder, sizes)
    sizes |= dict.fromkeys(waiting, -1)
    absent = [name for name, file in file_of.items() if sizes[file] < 0]
    unknown = [name for name in absent if file_of[name] not in waiting]
    if unknown and not remote.address(folder):
        spelled = Folder(folder)
        file_of |= spelled.find(unknown, folder)
        files = [file_of[name] for name in unknown]
        sizes |= _sizes(folder, files)
        absent = [name for name in absent if sizes[file_of[name]] < 0]
    changed = [name for name, file in file_of.items() if name != file and sizes[file] >= 0]
    if changed:
        images = counted(len(changed), kind)
        name = changed[0]
        say(
            f"note: names of {images} are spelled differently from their files, whose spelling is used, "
            f"such as {file_of[name]} for {name!r}"
        )
    if waiting and len(absent) == len(image_names):
        file, stand_in = next(iter(waiting.items()))
        raise InputError(
            f"{folder / file}: is {stand_in}; so are {len(waiting)} of {len(image_names)} {kind}s"
        )
    if absent:
        hint = ""
        if unknown and not remote.address(folder):
            hint = spelled.meant(unknown[0])
        if len(absent) == len(image_names):
            raise InputError(
                f"{folder / absent[0]}: no such {kind}, though {source.name} names it; {len(absent)} of "
                f"{len(image_names)} {kind}s that it names are not in the folder{hint}"
            )
        captions = table["file"].value_counts()
        for name in absent:
            count = int(captions[name])
            file = file_of[name]
            if file in waiting:
                image = f"{folder / name}: {waiting[file]}"
                left_out.add(f"{kind} not fetched", image, count=count)
            else:
                left_out.add(f"{kind} missing", f"{folder / name}{hint}", count=count)
                hint = ""
        table = table[~table["file"].isin(absent)].reset_index(drop=True)
        file_of = {name: file for name, file in file_of.items() if sizes[file] >= 0}
    return _renamed(table, file_of), {file: sizes[file] for file in file_of.values()}


def _renamed(table: pd.DataFrame, file_of: dict[str, str]) -> pd.DataFrame:
    """Replace names by files. Names of one file are one image."""
    if all(name == file for name, file in file_of.items()):
        return table
    several = len({*file_of.values()}) < len(file_of)
    table = table.assign(file=table["file"].map(file_of))
    if several:
        images = table.groupby("file", sort=False)
        table["image_id"] = images["image_id"].transform("first")
        order = images.ngroup().argsort(kind="stable")
        table = table.iloc[order].reset_index(drop=True)
    return table


def note_unnamed(
    folder: Path, named: set[str], kind: Kind, left_out: LeftOut, say: Callable[[str], object]
) -> None:
    """Count images of the folder that the annotations do not name."""
    suffixes = IMAGE_SUFFIXES
    if kind == "video":
        suffixes = VIDEO_SUFFIXES
    images, companions = unnamed(folder, named, suffixes)
    sizes = {file: _size_or_none(folder, file) for file in images}
    waiting = _unfetched(folder, sizes)
    for file in images:
        if file in waiting:  # the annotations may name it
            continue
        # Captions of a part are ordinary.
        left_out.add(f"{kind} without a caption", f"{folder / file}", apart=True)
    if companions:
        files = counted(len(companions), "file")
        say(f"note: ignored {files} that macOS or Windows added, such as {companions[0]}")


def _check_inside(file: str, source: Path) -> None:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\0" in file:
        raise InputError(f"{source}: the path {file!r} leaves the image folder")


def _check_plain(folder: Path, files: list[str]) -> None:
    odd: object = remote.address(folder)
    for file in files:
        if not odd and containers.inside(folder / file):
            odd = folder / file
    if odd:
        raise InputError(
            f"{odd}: clips are decoded from plain files of this machine; copy or unpack them"
        )


def _sizes(folder: Path, files: list[str]) -> dict[str, int]:
    with refusing(OSError, str):
        sizes = containers.sizes(folder, files)
    plain_files = [file for file in files if file not in sizes]
    return sizes | {file: _size(folder, file) for file in plain_files}


def _size_or_none(folder: Path, file: str) -> int:
    """A file's size in bytes; -1 if it is unknown."""
    try:
        return os.stat(folder / file).st_size
    except OSError:
        return -1


def _unfetched(folder: Path, sizes: dict[str, int]) -> dict[str, str]:
    """The files of a folder whose contents were not fetched, by name, and what each is instead: a
    broken link, or a pointer of a few bytes.
    """
    if remote.address(folder):
        return {}
    stand_ins = {}
    for file, size in sizes.items():
        if size > LARGEST_POINTER or containers.inside(folder / file) is not None:
            continue
        stand_in = unfetched.stand_in(folder / file)
        if stand_in:
            stand_ins[file] = stand_in
    return stand_ins


def _size(folder: Path, file: str) -> int:
    image_path = f"{folder}/{file}"
    # Folders may be links, those are the user's own; a linked file that leads out is refused.
    is_inside = True
    try:
        file_status = os.lstat(image_path)
        if stat.S_ISLNK(file_status.st_mode):
            file_status = os.stat(image_path)
            is_inside = is_of_folder(Path(image_path).resolve(), folder.resolve())
    # RuntimeError: a link that leads in a circle, before Python 3.13.
    except (OSError, RuntimeError):
        return -1
    if not is_inside:
        raise InputError(
            f"{image_path}: is a link that leaves the image folder; name its target, or copy the folder with "
            "what its links name (cp -rL)"
        )
    if stat.S_ISREG(file_status.st_mode):
        return file_status.st_size
    return -1


def is_of_folder(target: Path, folder: Path) -> bool:
    """Whether a link's target is in a folder, or git-annex has it for the repository around the
    folder.
    """
    if target.is_relative_to(folder):
        return True
    repositories = (folder, *folder.parents)
    annexes = [repository / ".git" / "annex" / "objects" for repository in repositories]
    return any(target.is_relative_to(annex) for annex in annexes)

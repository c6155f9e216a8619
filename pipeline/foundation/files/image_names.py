"""Which image a name in another tool's file means: by path, by file name with or without suffix, by
COCO's number.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

# COCO's number: `42`, `COCO_val2014_000000000042`, `000000000042`. A name with a suffix is one if
# it is COCO's own form of twelve digits: COCO_val2014_000000000042.jpg and 000000000042.jpg are one
# image, photo 42.jpg of Flickr another.
NUMBERED = re.compile(r"(?:COCO_[a-z]+\d{4}_)?(?:(\d{1,18})|(\d{12})\.jpg)")


def unshared(
    files: Sequence[str], names_of: Callable[[PurePosixPath], Iterable[str]]
) -> dict[str, int]:
    """Name -> row of the file; names that two files share are left out."""
    rows: dict[str, int | None] = {}
    for row, file in enumerate(files):
        for name in names_of(PurePosixPath(file)):
            rows[name] = row if rows.get(name, row) == row else None
    return {name: row for name, row in rows.items() if row is not None}


def by_name(files: Sequence[str]) -> tuple[dict[str, int], Callable[[str], Iterable[str]]]:
    """Match names with files. Returns name -> row, and a function from a name to the names to look
    up.
    """
    return unshared(files, _spellings), _looked_up


def _spellings(path: PurePosixPath) -> Iterable[str]:
    """What a file may be called: with or without folder and suffix."""
    return (str(path), path.with_suffix("").as_posix(), path.name, path.stem)


def _looked_up(text: str) -> Iterable[str]:
    """The names under which a name is looked up: with its folder, then without."""
    name = plain(text)
    return (name, PurePosixPath(name).name)


def by_number(files: Sequence[str]) -> tuple[dict[str, int], Callable[[str], Iterable[str]]]:
    """Match COCO's numbers with those in files' names, see `by_name`."""
    return unshared(files, lambda path: number(path.stem)), lambda text: number(plain(text))


def plain(text: str) -> str:
    r"""A name as manifests write it: / for Windows' \, without ./ and blanks around it."""
    return PurePosixPath(text.strip().replace("\\", "/")).as_posix()


def number(text: str) -> tuple[str, ...]:
    """The number in a COCO file's name, () for another name."""
    match = NUMBERED.fullmatch(PurePosixPath(text).name)
    return (str(int(match[1] or match[2])),) if match else ()

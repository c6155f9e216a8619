"""Recognise files whose contents were not fetched: pointers of Git LFS or git-annex, and broken
links.
"""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from pipeline.foundation.files import regular
from pipeline.foundation.parts.errors import InputError

# First bytes -> what the file is, and what to do.
POINTERS = {
    b"version https://git-lfs": "a pointer of Git LFS; fetch the file itself with git lfs pull",
    b"/annex/objects/": "a pointer of git-annex; fetch the file itself with git annex get",
}


def refuse(paths: Iterable[Path]) -> None:
    """Refuse files of a model that were not fetched, and what is no regular file."""
    for path in paths:
        what = named(path)
        if what:
            raise InputError(f"{path}: is {what}")


def named(path: Path) -> str:
    """Say why a path holds no contents, and what to do; "" for a file that does."""
    if not os.path.lexists(path):
        return "missing; copy the whole folder again"
    if not os.path.exists(path):
        return _link(path)
    try:
        with regular.opened(path) as file:
            return pointer(file.read(64))
    except OSError as error:
        return f"no file that can be read ({error.strerror or error})"


def stand_in(path: Path) -> str:
    """Say what a file is whose contents were not fetched, and what to do; "" for any other file,
    if there is none, and for a link to itself.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            return ""
    except OSError as error:
        if error.errno == errno.ELOOP or not os.path.lexists(path):
            return ""
    return named(path)


def pointer(content: bytes) -> str:
    """Say which kind of pointer a file's first bytes are, and what to do; "" for any other file."""
    return next((what for first, what in POINTERS.items() if content.startswith(first)), "")


def _link(path: Path) -> str:
    target = os.readlink(path)
    if ".git/annex/" in target:
        return "a link of git-annex to a file that is not here; fetch it with git annex get"
    if "/blobs/" in target:
        return f"a link to {target}, which the hub's cache lost; download the model again"
    return (
        f"a link to {target}, which is not there; copy the folder with what its links name (cp -rL)"
    )

"""Places that a result is written to: a new one or that of an earlier result of its kind; a pipe or
device; what a link leads to. Nothing else is touched.
"""

import errno
import os
import re
import stat
import time
from pathlib import Path
from typing import BinaryIO

from pipeline.foundation.parts.errors import InputError

# This process's own descriptors, as the system names them: /dev/stdout leads to /proc/self/fd/1.
DESCRIPTOR = re.compile(r"/(?:dev|proc/(?P<process>self|thread-self|\d+))/fd/(?P<number>\d+)")
LINKS = 40  # that lead from one to another, as many as Linux follows
SECONDS = 10.0  # for which a pipe waits for its reader
# What a folder holds -> names by which an earlier one is recognised, finished or not. Any other
# folder must be empty.
MARKS = {
    "head": ("record.json", "record.json.partial", "best.safetensors"),
    "feature store": ("ledger", "features"),
    "exported head": ("export.json",),
    "store of embeddings": ("image_embeddings",),
}
REFUSED = {stat.S_IFBLK: "a disk", stat.S_IFSOCK: "a socket"}


def is_stream(place: Path) -> bool:
    """Whether what a place is, or leads to, is a pipe or a device.

    Raises:
        InputError: If it is a disk or a socket, which nothing is written to.
    """
    if _descriptor(place) is not None:
        return True
    try:
        kind = stat.S_IFMT(place.stat().st_mode)
    except OSError:  # a missing file
        return False
    if kind in REFUSED:
        raise InputError(f"{place}: is {REFUSED[kind]}; choose another place")
    return kind in (stat.S_IFIFO, stat.S_IFCHR)


def opened(place: Path) -> BinaryIO:
    """Open a pipe or device for writing; a pipe that nobody reads is waited for a while, and then
    refused.
    """
    descriptor = _descriptor(place)
    if descriptor is not None:
        return open(place, "wb", opener=lambda *_: os.dup(descriptor))
    until = time.monotonic() + SECONDS
    while True:
        try:
            number = os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise InputError(
                    f"{place}: nobody reads this pipe; start its reader first"
                ) from None
        time.sleep(0.05)
    os.set_blocking(number, True)
    return open(place, "wb", opener=lambda *_: number)


def behind_links(place: Path) -> Path:
    """Find what is replaced at a place: it, or where it is a symbolic link what that leads to, a
    file or folder that need not exist.

    Raises:
        InputError: If a file there is read-only, as those of DVC's cache and git-annex are, or the
            folder that a link leads to is missing.
    """
    if not place.is_symlink():
        if _is_read_only(place):
            raise InputError(
                f"{place}: is read-only; make it writable (`chmod u+w`, `dvc unprotect`), or choose "
                "another place"
            )
        return place
    target = Path(os.path.realpath(place))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(place))
    if not target.parent.is_dir():
        raise InputError(
            f"{place}: is a link to {target}, whose folder is missing; remove the link"
        )
    if _is_read_only(target):
        raise InputError(
            f"{place}: is a link to {target}, which is read-only; make the link a file of its own "
            "(`dvc unprotect`, `git annex unlock`), or remove it"
        )
    return target


def _is_read_only(place: Path) -> bool:
    """Whether a place is a file that nobody may write, by its mode: root may write every file."""
    try:
        mode = place.stat().st_mode
    except OSError:  # a missing file
        return False
    return stat.S_ISREG(mode) and not mode & 0o222


def nearest_folder(place: Path) -> Path:
    """Find the innermost folder above a place that exists, in which further ones can be made.

    Raises:
        InputError: If a file is in the way, or a link that leads nowhere.
    """
    above = next(each for each in place.absolute().parents if os.path.lexists(each))
    if above.is_dir():
        return above
    what = "a link that leads nowhere" if above.is_symlink() else "a file"
    raise InputError(f"{place}: {above} is {what}, and no folder can be made there")


def _descriptor(place: Path) -> int | None:
    """The number of this process's open file that a place leads to; None for any other place."""
    # Opened by its name, the file that a shell redirects to would be begun again.
    path = os.path.abspath(place)
    for _ in range(LINKS):
        match = DESCRIPTOR.fullmatch(path)
        if match and match["process"] in (None, "self", "thread-self", str(os.getpid())):
            return int(match["number"])
        try:
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        except OSError:  # no link
            return None
    return None


def refuse_occupied(place: Path, kind: str | None = None) -> None:
    """Check that a result can be written to a place, and would replace nothing but an earlier
    result.
    """
    if is_stream(place):
        return
    place = behind_links(place)
    above = nearest_folder(place)
    # A finished folder is left as it is, and needs no permission.
    if not place.is_dir() and not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{place}: {above} cannot be written; choose another place")
    if kind is not None and place.is_dir():
        names = sorted(os.listdir(place))
        if names and not {*names} & {*MARKS[kind]}:
            raise InputError(
                f"{place}: exists, holds {names[0]} and is no {kind}; choose another --out"
            )

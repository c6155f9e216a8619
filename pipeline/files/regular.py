"""Open regular files alone. A pipe instead of a file would be waited for, and a device has no
end.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path


class NoRegularFile(OSError):
    """A pipe, a device, a socket or a folder was named where a file is read."""


@contextmanager
def opened(path: Path | str) -> Iterator[BufferedReader]:
    """Open a regular file for reading; OSError for a special file."""
    with open(path, "rb", opener=_opener) as file:
        yield file


def content(path: Path) -> bytes:
    """Read a regular file, see `opened`."""
    with opened(path) as file:
        return file.read()


def text(path: Path) -> str:
    """Read a regular file of text in UTF-8, see `opened`."""
    return content(path).decode("utf-8")


def require(path: Path | str) -> None:
    """Check a file before a library opens it by its name, see `opened`."""
    os.close(_opener(str(path), os.O_RDONLY))


def _opener(path: str, flags: int) -> int:
    number = os.open(
        path, flags | os.O_NONBLOCK | os.O_CLOEXEC
    )  # without it, opening a pipe waits for a writer
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise NoRegularFile(errno.EINVAL, "is no regular file", path)
    return number

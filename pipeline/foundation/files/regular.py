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

# What opening a device says that leads nowhere, such as /dev/tty without a terminal.
NO_DEVICE = (errno.ENXIO, errno.ENODEV)


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
    """Open a file, without waiting for the writer of a pipe."""
    try:
        number = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in NO_DEVICE:
            raise NoRegularFile(errno.EINVAL, "is no regular file", path) from None
        raise
    if not _has_an_end(number):
        os.close(number)
        raise NoRegularFile(errno.EINVAL, "is no regular file", path)
    return number


def _has_an_end(number: int) -> bool:
    """Whether an open file is regular, and none of the kernel's that wait for what comes next."""
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_size > 0:
        return stat.S_ISREG(status.st_mode)
    try:
        os.read(number, 1)
    except BlockingIOError:
        return False
    except OSError:  # which is said when the file is read
        return True
    try:
        os.lseek(number, 0, os.SEEK_SET)
    except OSError:  # what was read is gone
        return False
    return True

"""Open regular files alone. A pipe instead of a file would be waited for, and a device has no
end. And what to do with text that is not in UTF-8.
"""

import errno
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

# What opening a device says that leads nowhere, such as /dev/tty without a terminal.
NO_DEVICE = (errno.ENXIO, errno.ENODEV)
# Bytes that no text has.
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


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


def unlike_utf8(path: Path) -> str:
    """Say that a text is of another encoding than UTF-8, and how it is converted."""
    return f"is no text in UTF-8, perhaps in Windows-1252 (Latin-1); {_converted(path, 'WINDOWS-1252')}"


def in_utf16(path: Path, start: bytes) -> str:
    """Say that a text is in UTF-16, by its first bytes; "" for any other file."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"is text in UTF-16; {_converted(path, 'UTF-16')}"
    even = start[: len(start) // 2 * 2]
    halves = {"UTF-16LE": (even[::2], even[1::2]), "UTF-16BE": (even[1::2], even[::2])}
    for order, (characters, zeros) in halves.items():
        if characters and not any(zeros) and not CONTROL.search(characters):
            return f"is text in UTF-16; {_converted(path, order)}"
    return ""


def _converted(path: Path, encoding: str) -> str:
    name = shlex.quote(str(path))
    return f"save it in UTF-8, such as by `iconv -f {encoding} -t UTF-8 {name} > utf8{path.suffix}`"

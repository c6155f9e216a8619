"""Locks between processes, on files that are removed when they are free: at once, or in turn."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


def at_once(lock: Path) -> IO[str]:
    """Lock a file at once. Raises BlockingIOError if another process holds it."""
    while True:
        file = open(lock, "a", opener=opener)  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_open(lock, file.fileno()):  # else its owner has removed it meanwhile
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def opener(path: str, flags: int) -> int:
    """Open no link, which may lead to a file of value, and wait for no pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def remove(lock: Path, folders: Iterable[Path]) -> None:
    """Remove a lock's file, and folders that were made for it and are empty."""
    with suppress(OSError):
        lock.unlink()
        for folder in folders:
            folder.rmdir()


@contextmanager
def in_turn(partial: Path) -> Iterator[int]:
    """Create a file, empty and locked, after another process has finished with it: the mode of a
    new file.
    """
    while True:
        try:
            earlier = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            pass
        except OSError:  # a link, or what only another user may read
            partial.unlink(missing_ok=True)
        else:
            with os.fdopen(earlier, "rb"):
                _wait_for(earlier)
                if _is_open(partial, earlier):
                    partial.unlink()
        try:
            file = partial.open("xb")
        except FileExistsError:
            continue
        with file:
            _wait_for(file.fileno())
            if _is_open(partial, file.fileno()):
                try:
                    yield stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                except BaseException:
                    partial.unlink(missing_ok=True)
                    raise
                return


def _wait_for(descriptor: int) -> None:
    """Lock an open file. Some file systems have no locks; there, processes must not write one file
    at the same time.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
            raise


def _is_open(path: Path, descriptor: int) -> bool:
    """Whether a path still names an open file."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False

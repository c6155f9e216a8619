"""One writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.files.atomic import naming
from pipeline.parts.errors import InputError

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a file or folder for writing until the block ends.

    The lock is a file beside it, .NAME.lock. The file stays; the lock on it ends with the process, also when that is
    killed.

    Where neither the lock's file nor the path can be written, nothing is held: there is nothing that two could write.

    Args:
        path: What is written; it need not exist.

    Raises:
        InputError: At once if another process holds it, or if the path has no name.
        OSError: As the block raises it; on a full disk it names a file, or else `path`.
    """
    path = path.resolve()  # one lock, however it is named
    if not path.name:
        raise InputError(f"{path}: nothing can be written there; choose another --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = (path.parent / f".{path.name}.lock").open("w")
    except OSError as error:
        if error.errno not in READ_ONLY or not path.exists() or os.access(path, os.W_OK):
            raise
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{path}: another process is writing to it; wait for it to end") from None
        with naming(path):
            yield

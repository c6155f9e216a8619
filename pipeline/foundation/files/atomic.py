"""Files and folders that appear complete or not at all, written by one process at a time."""

import errno
import json
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pipeline.foundation.files import locks, streams
from pipeline.foundation.parts.errors import InputError, refusing

# What writing raises where a file or folder cannot be written; what is written only to save time is
# then left out.
NOT_WRITTEN = (OSError, InputError)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Endings of folders beside a finished one: what replaces it, or what it has replaced.
SET_ASIDE = (".creating", ".successor", ".former", ".removing")


@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[Path]:
    """Write a file that replaces `path` when the block ends without an error; yields PATH.partial,
    an empty file.

    Where `path` is a link, what it leads to is replaced. A pipe or device receives the bytes.
    """
    # If anything is raised, also by Ctrl-C, the partial file is removed and an earlier file stays
    # as it was. Processes that write one file at the same time do it one after another. An OSError
    # names `path`. durable: bytes and name are on disk when the block has ended, also after a power
    # cut; False for files that are made again if they are damaged.
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    writing = _renaming(path, durable)
    if streams.is_stream(path):
        writing = _sending(path)
    try:
        with writing as partial:
            yield partial
    except OSError as error:
        # Libraries word a full disk otherwise, and name no file.
        is_refused = error.errno in READ_ONLY and str(error.filename).endswith(".partial")
        if error.errno in NO_ROOM or is_refused:
            raise _of(error, path) from None
        raise


@contextmanager
def _renaming(path: Path, durable: bool) -> Iterator[Path]:
    """Write a file beside `path`, which then takes its name."""
    path = streams.behind_links(path)
    streams.nearest_folder(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with locks.in_turn(partial) as of_a_new_file:
        yield partial
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else of_a_new_file
        partial.chmod(mode)  # safetensors replaces the file by one that only its owner can read
        if durable:
            sync(partial)
        partial.replace(path)
        if durable:
            sync(path.parent)


@contextmanager
def _sending(path: Path) -> Iterator[Path]:
    """Write a temporary file, which a pipe or device then receives."""
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder, f"{path.name}.partial")
        partial.touch()
        yield partial
        with (
            refusing(BrokenPipeError, f"{path}: its reader has ended; nothing more can be written"),
            streams.opened(path) as stream,
            partial.open("rb") as file,
        ):
            shutil.copyfileobj(file, stream)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add `path` to an error of a full disk that names no file."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM and error.filename is None:
            raise _of(error, path) from None
        raise


def _of(error: OSError, path: Path) -> OSError:
    """The same error, of another path."""
    return OSError(error.errno, os.strerror(error.errno or errno.ENOSPC), os.fspath(path))


@contextmanager
def creating(folder: Path) -> Iterator[Path]:
    """Write a folder that replaces `folder` when the block ends without an error; yields an empty
    FOLDER.creating. Where `folder` is a link, the folder that it leads to is replaced.
    """
    # If anything is raised, also by Ctrl-C, the partial folder is removed and an earlier one stays
    # as it was. What a killed process left is removed by the next call, and an earlier folder that
    # was set aside is put back. Meanwhile the folder is held as by `exclusive`, unless this thread
    # holds it already.
    folder = streams.behind_links(folder)
    making = folder.with_name(folder.name + ".creating")
    streams.nearest_folder(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(folder))
    with nullcontext() if folder.resolve() in _held.paths else exclusive(folder):
        put_back(folder)
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        try:
            yield making
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        take_place(making, folder)


def take_place(successor: Path, folder: Path) -> None:
    """Replace a folder by a complete one; the old folder, if there is one, is deleted."""
    folder = streams.behind_links(folder)
    put_back(folder)
    if folder.exists():
        folder.rename(_set_aside(folder)[0])
    successor.rename(folder)
    put_back(folder)


def put_back(folder: Path) -> None:
    """Finish a `take_place` that was interrupted: delete the old folder if the new one exists, else
    put it back.
    """
    folder = streams.behind_links(folder)
    former, leaving = _set_aside(folder)
    shutil.rmtree(leaving, ignore_errors=True)
    if former.exists():
        former.rename(
            leaving if folder.exists() else folder
        )  # renaming is immediate, deleting takes a while
    shutil.rmtree(leaving, ignore_errors=True)


def _set_aside(folder: Path) -> tuple[Path, Path]:
    """The names of an old folder: while it is being replaced, and while it is being deleted."""
    return folder.with_name(folder.name + ".former"), folder.with_name(folder.name + ".removing")


def write_bytes(path: Path, content: bytes, durable: bool = True) -> None:
    """Write a file, as `replacing` does."""
    with replacing(path, durable) as partial:
        partial.write_bytes(content)


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Write a text file in UTF-8 with its line ends unchanged, as `replacing` does."""
    write_bytes(path, text.encode(), durable)


def write_json(path: Path, value: Any, durable: bool = True) -> None:
    """Write JSON with a line for each value, texts as they are, as `replacing` does."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False), durable)


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's names, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# One writer at a time.
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


ZEROS = bytes(1 << 20)


class _Held(threading.local):
    """The paths that a thread holds."""

    def __init__(self) -> None:
        self.paths = set[Path]()


_held = _Held()


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a path, a file or folder that need not exist, for writing until the block ends.

    The lock is on a file beside it, .NAME.lock, and ends with the process, also when that is
    killed. Where nothing can be written there is none. An OSError of a full disk names a file.

    Raises:
        InputError: At once if another process holds it, or if the path has no name.
    """
    path = path.resolve()  # the same lock for every way to write the path
    if not path.name:
        raise InputError(f"{path}: nothing can be written there; choose another --out")
    streams.nearest_folder(path)
    lock = path.with_name(f".{path.name}.lock")
    made = [folder for folder in path.parents if not folder.exists()]  # the innermost first
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with refusing(
            BlockingIOError, f"{path}: another process is writing to it; wait for it to end"
        ):
            file = locks.at_once(lock)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        if not path.exists() or os.access(path, os.W_OK):
            raise _of(error, path) from None
        yield
        return
    with file:
        _held.paths.add(path)
        try:
            with naming(path):
                yield
        finally:
            _held.paths.discard(path)
            locks.remove(lock, made)


def reserve(path: Path, size: int) -> None:
    """Make a file of so many zero bytes, all of which have their place on the disk: writing into a
    memory map of a file with holes ends the process where the disk is full.

    Raises:
        OSError: With the name of the file, if there is no room.
    """
    with naming(path), path.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            for first in range(0, size, len(ZEROS)):
                file.write(ZEROS[: size - first])

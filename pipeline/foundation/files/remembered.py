"""Digests of large files, remembered as long as a file is unchanged.

Digesting a manifest of a million captions takes seconds, too long for every search. A digest is
therefore kept in a small file below the root, with the digested file's size, inode and times of its
last change (of its bytes, and of its metadata, which no user can set back). Where one of these
differs the digest is computed again, as git does with its index. This is for commands that ask
often and only compare; `pipeline trace` always computes digests from the bytes.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from pipeline.foundation.files import atomic, parsing
from pipeline.foundation.files.digest import sha256

# Nanoseconds after a change in which a second one may leave the times as they are: file systems'
# clocks are coarse.
SETTLED = 2 * 10**9


class Remembered:
    """The digests of files, kept in a JSON file. If that is missing or damaged, all are
    computed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, file: Path) -> Callable[[str, Callable[[], str]], str]:
        """Prepare to digest a file, before it is read: (name, compute) -> digest, computed only if
        unknown.
        """
        return partial(self._digest, file, str(file.resolve()), state_of(file))

    def _digest(
        self, file: Path, key: str, state: list[int] | None, name: str, compute: Callable[[], str]
    ) -> str:
        known = self._known(key, state)
        if name in known and state == state_of(
            file
        ):  # else it may have been replaced before it was opened
            return str(known[name])
        computed = compute()
        if has_settled(file, state):
            entry = {"state": state, **self._known(key, state), name: computed}
            with suppress(
                *atomic.NOT_WRITTEN
            ):  # a root that is read-only, or full: digests are computed again
                self.path.parent.mkdir(exist_ok=True)
                entries = (parsing.json_object(self.path) or {}) | {key: entry}
                atomic.write_text(self.path, json.dumps(entries, indent=1), durable=False)
        return computed

    def of_files(self, files: Iterable[Path]) -> Iterator[str]:
        """SHA-256 of several files, in order."""
        return (self.of(file)("sha256", partial(sha256, file)) for file in files)

    def _known(self, key: str, state: list[int] | None) -> dict[str, object]:
        entry = (parsing.json_object(self.path) or {}).get(key)
        return (
            entry
            if isinstance(entry, dict) and state is not None and entry.get("state") == state
            else {}
        )


def sha256_of_unchanged(file: Path) -> str:
    """SHA-256 of a file, computed from its bytes once a process as long as it is unchanged."""
    state = state_of(file)
    return _of_state(file.resolve(), *(state or ())) if has_settled(file, state) else sha256(file)


@cache
def _of_state(file: Path, *state: int) -> str:
    return sha256(file)


def states_of(paths: Iterable[Path]) -> str | None:
    """SHA-256 of the names and states of files, and of all files below folders, without reading
    them.
    """
    # None if one is missing, or changed so recently that its times may not show another change
    # (`SETTLED`).
    whole = hashlib.sha256()
    newest = 0
    try:
        for place in paths:
            for file, entry in _below(os.fspath(place), set()):
                state = tuple(_state(entry))
                whole.update(f"{file}\0{state}\0".encode(errors="surrogateescape"))
                newest = max(newest, *state[2:])
    except OSError:
        return None
    return whole.hexdigest() if newest + SETTLED < time.time_ns() else None


def _below(place: str, above: set[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result]]:
    """Files in order of their names; a linked folder that leads back above is left out."""
    state = os.stat(place)
    if not stat.S_ISDIR(state.st_mode):
        yield place, state
        return
    here = (state.st_dev, state.st_ino)
    if here in above:
        return
    with os.scandir(place) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir():
            yield from _below(entry.path, {*above, here})
        else:
            yield entry.path, entry.stat()


def has_settled(file: Path, state: list[int] | None) -> bool:
    """Whether a file has the state that it had before, and got it so long ago that a later change
    is seen.
    """
    return (
        state is not None and max(state[2:]) + SETTLED < time.time_ns() and state == state_of(file)
    )


def state_of(file: Path | str) -> list[int] | None:
    """A file's size, inode, and times of its last change in nanoseconds, of bytes and of metadata;
    None if missing.
    """
    try:
        return _state(os.stat(file))
    except OSError:
        return None


def _state(entry: os.stat_result) -> list[int]:
    return [entry.st_size, entry.st_ino, entry.st_mtime_ns, entry.st_ctime_ns]

"""The files of hits that `evaluate --hits` writes of systems."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.foundation.files import streams
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import hits_file, opening
from pipeline.judge.systems.scores.layout import is_store
from stages.measure import MeasuredPool
from stages.progress import say

LONGEST_STEM = 240  # bytes of a file's name, with room for what is written beside it


def files(folder: Path, systems: Iterable[tuple[str, str]]) -> list[Path]:
    """Name a file SYSTEM.npz in a folder for each system, before anything is measured.

    Args:
        folder: The folder.
        systems: What each system is called, and where it is, for messages.

    Returns:
        The files.

    Raises:
        InputError: For a folder that is a store, for a name that no file can have, for two systems
            of one file, and for a place where no file can be written.
    """
    if is_store(folder):
        raise InputError(f"--hits {folder}: is a store of scores; name another folder")
    place_of: dict[str, str] = {}
    named = []
    for name, place in systems:
        file = folder / f"{_stem(name)}.npz"
        same = file.name.casefold()  # for file systems that do not tell A from a
        if same in place_of:
            raise InputError(
                f"--hits: {place_of[same]} and {place} would both be {file}; give them names, "
                "TITLE=FILE, or folders of their own"
            )
        place_of[same] = place
        named.append(file)
    for file in named:
        streams.refuse_occupied(file)
    return named


def _stem(name: str) -> str:
    """A system's name as that of a file: letters, digits and . _ + - alone."""
    stem = re.sub(r"[^\w.+-]+", "-", name).strip("-.")
    if not stem or len(os.fsencode(stem)) > LONGEST_STEM:
        raise InputError(
            f"--hits: {name[:60]!r} cannot be a file's name; give the system another one, TITLE=FILE"
        )
    return stem


def write(path: Path, pool: MeasuredPool, dataset: str, scores: tuple[str, Path] | None) -> None:
    """Write the ranks of a pool, by the first protocol by which it was measured.

    Args:
        path: The file.
        pool: The pool.
        dataset: The data set's name; "" for none.
        scores: Its files as the user names them, and the folder that they are in; None for a model.

    Raises:
        InputError: As `hits_file.write`.
    """
    digest = ""
    if scores is not None:
        digest = opening.digest_of(*scores)
    hits_file.write(path, pool.by_protocol[0].ranked, dataset, digest)
    if not pool.pool.has_ids:
        say(
            f"{path}: has no ids, so it is compared in this order alone; give --manifest to write ids, by which "
            "systems are aligned"
        )

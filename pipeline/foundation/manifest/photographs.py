"""The checksums of a manifest's photographs or clips, read again only where a file changed.

A manifest with checksums changes whenever a photograph does. What is made of photographs as they
are, without stored features, has a `reference` to them. A file on this machine keeps the checksums
with the state of each file (size, inode, times of its last change); if it is missing or damaged,
all photographs are read.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyarrow import parquet

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.files import blake, containers, remote
from pipeline.foundation.files.atomic import NOT_WRITTEN, replacing
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.files.remembered import SETTLED, state_of
from pipeline.foundation.manifest.columns import NO_FILE, PHOTOGRAPH, arranged
from pipeline.foundation.manifest.table import Manifest
from pipeline.foundation.parts.errors import InputError

STATE = ["size", "inode", "written", "changed"]
UNKNOWN = -1  # in the place of a state
TOGETHER = 4096  # files at once
TASK = 64  # files that a thread takes at once
LARGEST = 2**63 - 1


def with_checksums(
    manifest: Manifest, known: Path, on_images: Callable[[int], object] = lambda count: None
) -> Manifest:
    """The manifest with the checksum of each photograph or clip in the column `PHOTOGRAPH`, where
    files are here.

    known: where checksums are kept. on_images: called with the number of images looked at since the
        last call.
    """
    images = manifest.images
    folder = manifest.images_folder
    not_looked_at = images["bytes"] == NO_FILE
    if remote.address(folder) or not_looked_at.any():
        return manifest
    rows = np.arange(len(images))
    checksums = _current(manifest, folder, rows, known, on_images)
    checksum_of = dict(zip(images["image_id"], checksums, strict=True))
    column = manifest.table["image_id"].map(checksum_of).fillna("")
    table = manifest.table.assign(**{PHOTOGRAPH: column})
    return replace(manifest, source=arranged(table))


def reference(
    manifest: Manifest, rows: np.ndarray | None = None, folder: Path | None = None
) -> Reference:
    """Refer to photographs as their files are now; for those in an object store, to its address.

    rows: int64 [B], rows of `images`; None for all. folder: where the files are; None for the
        manifest's folder.
    """
    if folder is None:
        folder = manifest.images_folder
    address = remote.address(folder)
    if address:
        return Reference(kind="photographs", name=manifest.dataset, identity=digest(address))
    if rows is None:
        rows = np.arange(len(manifest.images))
    rows = np.unique(rows)
    known = _kept_in(manifest, folder)
    checksums = _current(manifest, folder, rows, known)
    missing = rows[checksums == ""].tolist()
    if missing:
        image = manifest.images["file"][missing[0]]
        raise InputError(
            f"{folder / image}: no such image; replace it, or leave the image out of the manifest"
        )
    identity = digest(checksums.tolist())
    return Reference(kind="photographs", name=manifest.dataset, identity=identity)


def _kept_in(manifest: Manifest, folder: Path) -> Path | None:
    """The file that keeps the checksums of photographs in a folder; None where nothing is kept."""
    cache = manifest.cache.folder
    if cache is None:
        return None
    if folder == manifest.images_folder:
        return cache / "photographs"
    other_folder = str(folder.absolute())
    return cache / f"photographs-{digest(other_folder)[:8]}"


def _current(
    manifest: Manifest,
    folder: Path,
    rows: np.ndarray,
    known: Path | None,
    on_images: Callable[[int], object] = lambda count: None,
) -> npt.NDArray[np.object_]:
    """The checksums of the photographs of rows, int64 [B], "" for one that is missing; known: where
    they are kept.
    """
    files = manifest.images["file"]
    names = _names(manifest)
    before, checksums = _read(known, names)
    states = before.copy()
    with ThreadPoolExecutor() as threads:  # hashing lets go of Python's lock
        for first in range(0, len(rows), TOGETHER):
            images = rows[first : first + TOGETHER]
            states[images] = [_state(f"{folder}/{file}") for file in files.iloc[images]]
            is_changed = (states[images] != before[images]).any(axis=1)
            changed = images[is_changed]
            photographs = manifest.gallery(folder, changed.tolist())
            starts = range(0, len(photographs), TASK)
            tasks = [photographs[start : start + TASK] for start in starts]
            checksums_of_tasks = threads.map(_checksums, tasks)
            checksums[changed] = [*chain.from_iterable(checksums_of_tasks)]
            on_images(len(images))
    if known is not None and not np.array_equal(states, before):
        _keep(known, names, states, checksums)
    return checksums[rows]


def _names(manifest: Manifest) -> pd.Series:
    """The photographs' names where checksums are kept; of a clip, also its start and end."""
    images = manifest.images
    if manifest.kind == "image":
        return images["file"]
    start = images["start"].astype(str)
    end = images["end"].astype(str)
    return images["file"] + " " + start + " " + end


def _keep(known: Path, names: pd.Series, states: np.ndarray, checksums: np.ndarray) -> None:
    """Keep states and checksums, but no state of a file that may change within the clock's tick."""
    last_change = states[:, 2:].max(axis=1)
    may_change = last_change + SETTLED > time.time_ns()
    states[may_change] = UNKNOWN
    table = pd.DataFrame(states, columns=STATE).assign(name=names, checksum=checksums)
    # The root may be read-only, or full.
    with suppress(*NOT_WRITTEN), replacing(known, durable=False) as partial:
        table.to_parquet(partial, index=False)


def _read(
    known: Path | None, names: pd.Series
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """The states and checksums that were kept, int64 [I, 4] and str [I]; UNKNOWN and "" for other
    files.
    """
    states = np.full((len(names), len(STATE)), UNKNOWN)
    checksums = np.full(len(names), "", object)
    if known is None:
        return states, checksums
    try:
        table = parquet.ParquetFile(known).read().to_pandas()
        table = table.drop_duplicates("name").set_index("name")
        row_of_name = table.index.get_indexer(pd.Index(names))
        is_known = row_of_name >= 0
        known_rows = row_of_name[is_known]
        states[is_known] = table[STATE].to_numpy(np.int64)[known_rows]
        checksums[is_known] = table["checksum"].to_numpy(object)[known_rows]
    except (OSError, ValueError, TypeError, KeyError):
        states[:] = UNKNOWN
    checksums[states[:, 0] == UNKNOWN] = ""
    return states, checksums


def _checksums(files: list[GalleryFile]) -> list[str]:
    return [blake.if_there(file) for file in files]


def _state(file: str) -> list[int]:
    """Of an image in a tar or in Parquet, the state of that."""
    within = containers.inside(file)
    if within is None:
        state = state_of(file)
    else:
        container, *_ = within
        state = state_of(container)
    if state is None:
        return [UNKNOWN] * len(STATE)
    return [number & LARGEST for number in state]

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
    if remote.address(manifest.images_folder) or (images["bytes"] == NO_FILE).any():
        return manifest
    checksums = _current(manifest, manifest.images_folder, np.arange(len(images)), known, on_images)
    of_image = dict(zip(images["image_id"], checksums, strict=True))
    table = manifest.table.assign(
        **{PHOTOGRAPH: manifest.table["image_id"].map(of_image).fillna("")}
    )
    return replace(manifest, source=arranged(table))


def reference(
    manifest: Manifest, rows: np.ndarray | None = None, folder: Path | None = None
) -> Reference:
    """Refer to photographs as their files are now; for those in an object store, to its address.

    rows: int64 [B], rows of `images`; None for all. folder: where the files are; None for the
        manifest's folder.
    """
    folder, cached_in = folder or manifest.images_folder, manifest.cache.folder
    identity = digest(remote.address(folder))
    if not remote.address(folder):
        rows = np.arange(len(manifest.images)) if rows is None else np.unique(rows)
        elsewhere = (
            "" if folder == manifest.images_folder else f"-{digest(str(folder.absolute()))[:8]}"
        )
        checksums = _current(
            manifest, folder, rows, cached_in and cached_in / f"photographs{elsewhere}"
        )
        if missing := rows[checksums == ""].tolist():
            raise InputError(
                f"{folder / manifest.images['file'][missing[0]]}: no such image; replace it, or leave the "
                "image out of the manifest"
            )
        identity = digest(checksums.tolist())
    return Reference(kind="photographs", name=manifest.dataset, identity=identity)


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
    images = manifest.images
    names = (
        images["file"]
        if manifest.kind == "image"
        else images["file"] + " " + images["start"].astype(str) + " " + images["end"].astype(str)
    )
    before, checksums = _read(known, names)
    states = before.copy()
    with ThreadPoolExecutor() as threads:  # hashing lets go of Python's lock
        for first in range(0, len(rows), TOGETHER):
            here = rows[first : first + TOGETHER]
            states[here] = [_state(f"{folder}/{file}") for file in images["file"].iloc[here]]
            changed = here[(states[here] != before[here]).any(axis=1)]
            read = manifest.gallery(folder, changed.tolist())
            parts = threads.map(
                _checksums, [read[start : start + TASK] for start in range(0, len(read), TASK)]
            )
            checksums[changed] = [*chain.from_iterable(parts)]
            on_images(len(here))
    if known is not None and not np.array_equal(states, before):
        states[states[:, 2:].max(axis=1) + SETTLED > time.time_ns()] = UNKNOWN
        with (
            suppress(*NOT_WRITTEN),
            replacing(known, durable=False) as partial,
        ):  # a root that is read-only, or full
            pd.DataFrame(states, columns=STATE).assign(name=names, checksum=checksums).to_parquet(
                partial, index=False
            )
    return checksums[rows]


def _read(
    known: Path | None, names: pd.Series
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """The states and checksums that were kept, int64 [I, 4] and str [I]; UNKNOWN and "" for other
    files.
    """
    states, checksums = np.full((len(names), len(STATE)), UNKNOWN), np.full(len(names), "", object)
    if known is None:
        return states, checksums
    try:
        table = (
            parquet.ParquetFile(known).read().to_pandas().drop_duplicates("name").set_index("name")
        )
        row_of_name = table.index.get_indexer(pd.Index(names))
        is_known = row_of_name >= 0
        states[is_known] = table[STATE].to_numpy(np.int64)[row_of_name[is_known]]
        checksums[is_known] = table["checksum"].to_numpy(object)[row_of_name[is_known]]
    except (OSError, ValueError, TypeError, KeyError):
        states[:] = UNKNOWN
    checksums[states[:, 0] == UNKNOWN] = ""
    return states, checksums


def _checksums(files: list[GalleryFile]) -> list[str]:
    return [blake.if_there(file) for file in files]


def _state(file: str) -> list[int]:
    """Of an image in a tar or in Parquet, the state of that."""
    within = containers.inside(file)
    state = state_of(file if within is None else within[0])
    return [UNKNOWN] * len(STATE) if state is None else [number & LARGEST for number in state]

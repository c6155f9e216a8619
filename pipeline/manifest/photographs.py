"""The checksums of a manifest's photographs or clips, read again only where a file changed.

A manifest with checksums changes whenever a photograph does, so what is made of photographs depends on the manifest
alone. A file on this machine keeps the checksums with the state of each file (size, inode, times of its last change);
if it is missing or damaged, all photographs are read.
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

from pipeline.files import blake, containers, remote
from pipeline.files.atomic import replacing
from pipeline.files.gallery_file import GalleryFile
from pipeline.files.remembered import SETTLED, state_of
from pipeline.manifest.columns import NO_FILE, PHOTOGRAPH, arranged
from pipeline.manifest.table import Manifest

STATE = ["size", "inode", "written", "changed"]
UNKNOWN = -1  # in the place of a state
TOGETHER = 4096  # files at once
TASK = 64  # files that a thread takes at once
LARGEST = 2**63 - 1


def with_checksums(manifest: Manifest, known: Path, on_images: Callable[[int], object] = lambda count: None
                   ) -> Manifest:
    """The manifest with the checksum of each photograph or clip in the column `PHOTOGRAPH`.

    Unchanged if it has no image files, or if they are in an object store, from which they would have to be downloaded.

    known: where checksums are kept. on_images: called with the number of images that were looked at since the last
    call.
    """
    images = manifest.images
    if remote.address(manifest.images_folder) or (images["bytes"] == NO_FILE).any():
        return manifest
    names = images["file"] if manifest.kind == "image" \
        else images["file"] + " " + images["start"].astype(str) + " " + images["end"].astype(str)
    before, checksums = _read(known, names)
    states, folder = np.empty_like(before), str(manifest.images_folder)
    with ThreadPoolExecutor() as threads:  # hashing lets go of Python's lock
        for first in range(0, len(names), TOGETHER):
            here = slice(first, min(first + TOGETHER, len(names)))
            states[here] = [_state(f"{folder}/{file}") for file in images["file"].iloc[here]]
            changed = first + np.flatnonzero((states[here] != before[here]).any(axis=1))
            read = manifest.gallery(rows=changed.tolist())
            parts = threads.map(_checksums, [read[start:start + TASK] for start in range(0, len(read), TASK)])
            checksums[changed] = [*chain.from_iterable(parts)]
            on_images(here.stop - first)
    if not np.array_equal(states, before):
        states[states[:, 2:].max(axis=1) + SETTLED > time.time_ns()] = UNKNOWN
        with suppress(OSError), replacing(known, durable=False) as partial:  # a root that is read-only, or full
            pd.DataFrame(states, columns=STATE).assign(name=names, checksum=checksums).to_parquet(partial, index=False)
    of_image = dict(zip(images["image_id"], checksums, strict=True))
    table = manifest.table.assign(**{PHOTOGRAPH: manifest.table["image_id"].map(of_image).fillna("")})
    return replace(manifest, source=arranged(table))


def _read(known: Path, names: pd.Series) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """The states and checksums that were kept, int64 [I, 4] and str [I]; UNKNOWN and "" for other files."""
    states, checksums = np.full((len(names), len(STATE)), UNKNOWN), np.full(len(names), "", object)
    try:
        table = pd.read_parquet(known).drop_duplicates("name").set_index("name")
        row_of_name = table.index.get_indexer(pd.Index(names))
        is_known = row_of_name >= 0
        states[is_known] = table[STATE].to_numpy(np.int64)[row_of_name[is_known]]
        checksums[is_known] = table["checksum"].to_numpy(object)[row_of_name[is_known]]
    except (OSError, ValueError, TypeError, KeyError):
        states[:] = UNKNOWN
    return states, checksums


def _checksums(files: list[GalleryFile]) -> list[str]:
    return [blake.if_there(file) or "" for file in files]


def _state(file: str) -> list[int]:
    """Of an image in a tar or in Parquet, the state of that."""
    within = containers.inside(file)
    state = state_of(file if within is None else within[0])
    return [UNKNOWN] * len(STATE) if state is None else [number & LARGEST for number in state]

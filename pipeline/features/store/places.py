"""The rows of images in a store, found by id or by photograph. No other module decides which row is an image's."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline.features.store.layout import UNUSED, StoreLayout

ABSENT = -1  # the row of an image that is not in the store


def ids(store: Path) -> np.ndarray:
    """Read the image id of each row: int64 [I]."""
    import zarr

    array = zarr.open_group(store, mode="r", zarr_format=3)["image_ids"]
    assert isinstance(array, zarr.Array)
    return np.asarray(array[:])


def in_use(layout: StoreLayout, image_ids: np.ndarray) -> np.ndarray:
    """List the rows that are some image's: int64 [M], ascending. `image_ids` is int64 [I], the id of each row."""
    rows = layout.used()
    return rows[image_ids[rows] != UNUSED]


def find(layout: StoreLayout, image_ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Find images by id: int64 [M], the row of each; ABSENT where it has none.

    `image_ids` is int64 [I], the id of each row. `wanted` is int64 [M], ids.
    """
    rows = in_use(layout, image_ids)
    if not len(rows):
        return np.full(len(wanted), ABSENT)
    rows = rows[np.argsort(image_ids[rows], kind="stable")]
    sorted_ids = image_ids[rows]
    place = np.minimum(np.searchsorted(sorted_ids, wanted), len(rows) - 1)
    return np.where(sorted_ids[place] == wanted, rows[place], ABSENT)


def of_photographs(recorded: Mapping[int, str], wanted: Sequence[str]) -> np.ndarray:
    """Find images by the checksums of their photographs, "" for one that is not known.

    It gives int64 [M], the row of each; ABSENT where no row was made from its photograph.
    """
    row_of = {checksum: row for row, checksum in recorded.items() if checksum}
    return np.array([row_of.get(checksum, ABSENT) for checksum in wanted], np.int64)

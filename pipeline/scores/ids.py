"""The ids stored beside scores and vectors, read completely or refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids

if TYPE_CHECKING:
    import zarr

IDS = ("image_ids", "caption_ids", "caption_image")


def read(path: Path, group: zarr.Group) -> list[Ids]:
    """Read the arrays of `IDS`."""
    return [_one(path / name, group[name]) for name in IDS]


def _one(path: Path, array: zarr.Array | zarr.Group) -> Ids:
    import zarr

    from pipeline.retrieval.zarr_pieces import refuse_missing, said

    if not isinstance(array, zarr.Array):
        raise KeyError(path.name)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{path}: expected a line of integers, received {array.dtype} {list(array.shape)}; make the "
                         "store again")
    try:
        refuse_missing(array, f"ids {path.name}")
        return np.asarray(array[:]).astype(np.int64, copy=False)
    except InputError:
        raise
    except Exception as error:  # codecs raise many kinds on bytes that they did not write
        raise InputError(f"{path}: is damaged or cut short ({said(error)}); make the store again") from None

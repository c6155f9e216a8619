"""Similarities on disk: the matrix, whose rows and columns they are, and what made them.

    NAME.zarr/
      zarr.json       attributes: made_from (see README, "From a number back to its features")
      similarity/     [I, C] float32, images x captions
      image_ids/      [I] int64
      caption_ids/    [C] int64
      caption_image/  [C] int64, each caption's image as a row of the matrix
      image_embeddings/, caption_embeddings/   [I, d], [C, d] float32, unit vectors; of single heads alone
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from pipeline.errors import InputError

ROWS = 256  # images in a chunk


@dataclass(frozen=True)
class SimilarityStore:
    """A similarity store, open for reading. similarity: a zarr array [I, C]; the ids are in memory."""

    path: Path
    similarity: zarr.Array
    image_ids: np.ndarray
    caption_ids: np.ndarray
    caption_image: np.ndarray
    made_from: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> SimilarityStore:
        """Raises InputError where there is none, or its parts do not fit together."""
        try:
            group = zarr.open_group(path, mode="r", zarr_format=3)
            ids = [np.asarray(_array(group, name)[:]) for name in ("image_ids", "caption_ids", "caption_image")]
            similarity, made_from = _array(group, "similarity"), dict(group.attrs["made_from"])  # type: ignore[arg-type]
        except (FileNotFoundError, KeyError, ValueError, TypeError):
            raise InputError(f"{path}: no similarity store there; make it with `pipeline score` or "
                             "`pipeline ensemble`") from None
        if similarity.shape != (len(ids[0]), len(ids[1])) or len(ids[2]) != len(ids[1]):
            raise InputError(f"{path}: a matrix of {similarity.shape} with {len(ids[0])} image and {len(ids[1])} "
                             "caption ids; score again")
        return cls(path, similarity, ids[0], ids[1], ids[2], made_from)


def _array(group: zarr.Group, name: str) -> zarr.Array:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise KeyError(name)
    return array


def save(path: Path, blocks: Iterable[np.ndarray], image_ids: np.ndarray, caption_ids: np.ndarray,
         caption_image: np.ndarray, made_from: Mapping[str, Any], **embeddings: np.ndarray) -> None:
    """Write a store; it appears whole or not at all, and replaces an older one.

    blocks: the matrix's rows in order, float32 [rows, C] each, ROWS rows but for the last; a stream, so that the
    matrix is never held whole.
    """
    making = path.with_name(path.name + ".creating")
    shutil.rmtree(making, ignore_errors=True)
    making.parent.mkdir(parents=True, exist_ok=True)
    group = zarr.create_group(making, zarr_format=3, attributes={"made_from": dict(made_from)})
    shape = (len(image_ids), len(caption_ids))
    matrix = group.create_array("similarity", shape=shape, dtype="float32", chunks=(min(ROWS, shape[0]), shape[1]),
                                compressors=None, filters=None, fill_value=float("nan"))
    row = 0
    for block in blocks:
        matrix[row:row + len(block)] = block
        row += len(block)
    if row != shape[0]:
        raise ValueError(f"blocks: expected {shape[0]} rows, got {row}")
    named = {"image_ids": image_ids, "caption_ids": caption_ids, "caption_image": caption_image, **embeddings}
    for name, values in named.items():
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=values.shape,
                                   compressors=None, filters=None)
        array[:] = values
    shutil.rmtree(path, ignore_errors=True)
    making.rename(path)

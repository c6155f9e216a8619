"""Similarity stores: written whole, read with their ids, replaced in one step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline import similarity_store
from pipeline.errors import InputError
from pipeline.similarity_store import ROWS, SimilarityStore


def save(path: Path, images: int, scale: float = 1.0) -> np.ndarray:
    matrix = (np.arange(images * 3, dtype=np.float32) * scale).reshape(images, 3)
    blocks = (matrix[row:row + ROWS] for row in range(0, images, ROWS))
    similarity_store.save(path, blocks, np.arange(images), np.arange(3), np.zeros(3, np.int64), {"seed": 0},
                          image_embeddings=np.ones((images, 2), np.float32))
    return matrix


def test_round_trip_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s.zarr"
    for scale in (1.0, 2.0):
        matrix = save(path, 2 * ROWS + 5, scale)
        store = SimilarityStore.open(path)
        assert np.array_equal(store.similarity[:], matrix)
        assert store.image_ids.tolist() == list(range(2 * ROWS + 5))
        assert store.made_from == {"seed": 0}
    assert [entry.name for entry in path.parent.iterdir()] == ["s.zarr"]


def test_a_stream_that_ends_early_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 9 rows, got 4"):
        similarity_store.save(tmp_path / "s.zarr", [np.zeros((4, 3), np.float32)], np.arange(9), np.arange(3),
                              np.zeros(3, np.int64), {})
    assert not (tmp_path / "s.zarr").exists()


def test_what_is_not_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no similarity store there"):
        SimilarityStore.open(tmp_path / "nowhere.zarr")
    (tmp_path / "zarr.json").write_text("{}")
    with pytest.raises(InputError, match="no similarity store there"):
        SimilarityStore.open(tmp_path)

"""Where similarities may come from: arrays of any layout, .npy files, zarr arrays, selections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from pipeline.errors import InputError
from pipeline.retrieval import Selection, as_similarity, evaluate

OWNER = np.arange(60) % 20


@pytest.fixture
def scores() -> Any:
    return np.random.default_rng(0).random((20, 60)).astype(np.float32)


def test_layout_and_byte_order_change_nothing(scores: np.ndarray) -> None:
    expected = evaluate(scores, OWNER).as_dict()
    frozen = scores.copy()
    frozen.setflags(write=False)
    for same in (
        np.asfortranarray(scores),
        scores.astype(">f4"),
        frozen,
        scores[::-1][::-1],
        scores.astype("f8"),
    ):
        assert evaluate(same, OWNER).as_dict() == expected


def test_npy_files_are_mapped_and_left_as_they_are(tmp_path: Path, scores: np.ndarray) -> None:
    path = tmp_path / "scores.npy"
    np.save(path, scores)
    before = path.read_bytes()
    assert (
        evaluate(path, OWNER).as_dict()
        == evaluate(str(path), OWNER).as_dict()
        == evaluate(scores, OWNER).as_dict()
    )
    assert path.read_bytes() == before


def test_pickles_archives_and_absent_files_are_refused(tmp_path: Path, scores: np.ndarray) -> None:
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", scores)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    (tmp_path / "text.npy").write_text("no matrix")
    (tmp_path / "empty").mkdir()
    for name in ("pickled.npy", "archive.npy", "text.npy", "absent.npy", "absent", "empty"):
        with pytest.raises(InputError, match=name):
            evaluate(tmp_path / name, OWNER)


@pytest.mark.parametrize("megabytes", [64, 1e-3])
@pytest.mark.parametrize("shards", [None, (14, 16)])
def test_zarr_arrays_are_read_by_chunk(
    tmp_path: Path, scores: np.ndarray, megabytes: float, shards: Any
) -> None:
    array = zarr.create_array(tmp_path / "s.zarr", shape=(20, 60), dtype="f2", chunks=(7, 16), shards=shards)
    array[:] = scores
    expected = evaluate(scores.astype(np.float16), OWNER).as_dict()
    assert evaluate(array, OWNER, block_megabytes=megabytes).as_dict() == expected
    assert evaluate(tmp_path / "s.zarr", OWNER, block_megabytes=megabytes).as_dict() == expected


def test_zarr_arrays_with_missing_chunks_are_refused(tmp_path: Path, scores: np.ndarray) -> None:
    array = zarr.create_array(tmp_path / "s.zarr", shape=(20, 60), dtype="f4", chunks=(10, 60))
    array[:10] = scores[:10]
    with pytest.raises(InputError, match="1 of its 2 stored pieces"):
        evaluate(array, OWNER)


def test_a_selection_reads_only_its_rows_and_columns(scores: np.ndarray) -> None:
    generator = np.random.default_rng(1)
    images, captions = generator.permutation(20)[:8], generator.permutation(60)[:30]
    owner = generator.integers(0, 8, 30)
    scores[np.setdiff1d(np.arange(20), images)] = np.nan
    chosen = Selection(as_similarity(scores), images, captions)  # type: ignore[arg-type]
    expected = evaluate(scores[np.ix_(images, captions)], owner).as_dict()
    for megabytes in (64, 1e-4):
        assert evaluate(chosen, owner, block_megabytes=megabytes).as_dict() == expected

"""Where similarities may come from: arrays of any layout, .npy files, zarr arrays, selections."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
import zarr

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Similarity, as_similarity
from pipeline.foundation.evaluation.retrieval.similarity import Selection
from pipeline.foundation.parts.errors import InputError

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


@pytest.mark.specification
def test_pickles_archives_and_absent_files_are_refused(tmp_path: Path, scores: np.ndarray) -> None:
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", scores)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    (tmp_path / "text.npy").write_text("no matrix")
    np.save(tmp_path / "cut.npy", scores)
    with (tmp_path / "cut.npy").open("r+b") as file:
        file.truncate(1000)
    (tmp_path / "empty").mkdir()
    for name in (
        "pickled.npy",
        "archive.npy",
        "text.npy",
        "cut.npy",
        "absent.npy",
        "absent",
        "empty",
    ):
        with pytest.raises(InputError, match=name) as reported:
            evaluate(tmp_path / name, OWNER)
        assert "allow_pickle" not in str(reported.value)


LARGER_THAN_MEMORY = """
import resource, sys
import numpy as np
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, as_similarity, select
_, limit = resource.getrlimit(resource.RLIMIT_DATA)
held = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (held + 200_000_000, limit))  # of private memory, as copies on write are
scores = select(as_similarity(sys.argv[1]), np.arange(49_000, 49_400), np.arange(246_000, 250_000))
vectors = Embeddings(sys.argv[2], sys.argv[2])
print(evaluate(scores, np.arange(4000) // 10)["i2t", "R@10"], vectors.block(slice(0, 2), slice(5, 8)).sum().item())
"""


def sparse(path: Path, shape: tuple[int, int]) -> str:
    """A `.npy` file of zeros that takes no room on the disk."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        file.truncate(file.tell() + 4 * shape[0] * shape[1])
    return str(path)


@pytest.mark.slow
def test_files_larger_than_the_memory_are_ranked(tmp_path: Path) -> None:
    """A map that may be written to counts as private memory, all of it; one that is read alone does
    not.
    """
    files = [
        sparse(tmp_path / "scores.npy", (50_000, 250_000)),
        sparse(tmp_path / "vectors.npy", (1_000_000, 64)),
    ]
    ran = subprocess.run(
        [sys.executable, "-c", LARGER_THAN_MEMORY, *files], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    # Everything is tied: 10 right ones of 4,000 are among the first 10 by chance.
    assert [float(number) for number in ran.stdout.split()] == pytest.approx([2.4748, 0], abs=1e-4)


def test_a_matrix_object_is_read_as_the_array_that_it_is(scores: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy advises against it
        matrix = np.matrix(scores)
    assert evaluate(matrix, OWNER).as_dict() == evaluate(scores, OWNER).as_dict()
    half = np.ma.masked_array(scores, mask=False)
    assert evaluate(half, OWNER).as_dict() == evaluate(scores, OWNER).as_dict()


@pytest.mark.parametrize(
    "take", [lambda given: evaluate(given, OWNER), lambda given: Embeddings(given, given)]
)
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda scores: np.ma.masked_array(scores, mask=scores > 0.9),
            "values of the array are masked",
        ),
        (scipy.sparse.csr_matrix, r"csr_matrix.*toarray"),
        (scipy.sparse.coo_array, r"coo_array.*toarray"),
        (
            lambda scores: torch.from_numpy(scores).to_sparse(),
            r"layout torch.sparse_coo: give its .to_dense\(\)",
        ),
        (list, "list"),
    ],
)
def test_arrays_that_hide_or_leave_out_values_are_refused(
    scores: np.ndarray, take: Any, make: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        take(make(scores))


@pytest.mark.parametrize("megabytes", [64, 1e-3])
@pytest.mark.parametrize("shards", [None, (14, 16)])
def test_zarr_arrays_are_read_by_chunk(
    tmp_path: Path, scores: np.ndarray, megabytes: float, shards: Any
) -> None:
    array = zarr.create_array(
        tmp_path / "s.zarr", shape=(20, 60), dtype="f2", chunks=(7, 16), shards=shards
    )
    array[:] = scores
    expected = evaluate(scores.astype(np.float16), OWNER).as_dict()
    assert evaluate(array, OWNER, block_megabytes=megabytes).as_dict() == expected
    assert evaluate(tmp_path / "s.zarr", OWNER, block_megabytes=megabytes).as_dict() == expected


SHARDED = {"shape": (20, 60), "dtype": "f4", "chunks": (5, 30), "shards": (10, 60)}
PLAIN = {"shape": (20, 60), "dtype": "f4", "chunks": (10, 30), "compressors": None, "filters": None}
PACKED = {"shape": (20, 60), "dtype": "f4", "chunks": (10, 30)}


@pytest.mark.parametrize("megabytes", [64, 1e-3])
def test_plain_chunks_are_read_in_any_part(
    tmp_path: Path, scores: np.ndarray, megabytes: float
) -> None:
    array = zarr.create_array(tmp_path / "s.zarr", **{**PLAIN, "chunks": (7, 16)})
    array[:] = scores
    assert (
        evaluate(array, OWNER, block_megabytes=megabytes).as_dict()
        == evaluate(scores, OWNER).as_dict()
    )
    source, generator = as_similarity(array), np.random.default_rng(0)
    rows, columns = generator.permutation(20)[:9], generator.permutation(60)[:31]
    assert isinstance(source, Similarity)
    for images, captions in (
        (slice(3, 17), slice(0, 60)),
        (rows, slice(5, 40)),
        (slice(2, 19), columns),
        (slice(8, 9), slice(17, 20)),
    ):
        assert np.array_equal(source.block(images, captions), scores[images, captions])
    assert np.array_equal(source.block(rows, columns), scores[np.ix_(rows, columns)])


def test_a_half_written_shard_is_refused_with_its_place(tmp_path: Path, scores: np.ndarray) -> None:
    array = zarr.create_array(tmp_path / "s.zarr", **SHARDED)
    array[:15] = scores[:15]
    message = r"s.zarr/c/1/0: lacks 2 of its 4 chunks, the first at \[15, 0\]"
    for source in (array, tmp_path / "s.zarr"):
        with pytest.raises(InputError, match=message):
            evaluate(source, OWNER)
    array[15:] = scores[15:]
    assert evaluate(array, OWNER).as_dict() == evaluate(scores, OWNER).as_dict()


def test_the_index_of_a_shard_may_stand_before_its_chunks(
    tmp_path: Path, scores: np.ndarray
) -> None:
    for place in ("start", "end"):
        shards = {"shape": SHARDED["shards"], "index_location": place}
        array = zarr.create_array(tmp_path / f"{place}.zarr", **{**SHARDED, "shards": shards})
        array[:15] = scores[:15]
        with pytest.raises(InputError, match=r"c/1/0: lacks 2 of its 4 chunks"):
            as_similarity(array)
        array[15:] = scores[15:]
        source = as_similarity(array)
        assert isinstance(source, Similarity)
        assert np.array_equal(source.block(slice(0, 20), slice(0, 60)), scores.astype(np.float32))


def test_a_chunk_across_the_edge_of_the_array_must_be_there(
    tmp_path: Path, scores: np.ndarray
) -> None:
    for name, shape, written, place in (
        ("rows", (18, 60), (slice(0, 15), slice(0, 60)), r"1/0: lacks 2 of its 4 .* \[15, 0\]"),
        ("columns", (20, 50), (slice(0, 20), slice(0, 30)), r"0/0: lacks 2 of its 4 .* \[0, 30\]"),
    ):
        array = zarr.create_array(tmp_path / f"{name}.zarr", **{**SHARDED, "shape": shape})
        array[written] = scores[written]
        with pytest.raises(InputError, match=rf"{name}.zarr/c/{place}"):
            as_similarity(array)


def test_chunks_of_a_shard_beyond_the_edge_may_be_missing(
    tmp_path: Path, scores: np.ndarray
) -> None:
    array = zarr.create_array(tmp_path / "s.zarr", **{**SHARDED, "shards": (15, 90)})
    array[:] = scores
    assert evaluate(array, OWNER).as_dict() == evaluate(scores, OWNER).as_dict()


@pytest.mark.specification
@pytest.mark.parametrize("kind", [SHARDED, PLAIN, PACKED])
@pytest.mark.parametrize("harm", ["overwritten", "cut short", "empty"])
def test_a_damaged_piece_is_refused_with_its_place(
    tmp_path: Path, scores: np.ndarray, kind: Any, harm: str
) -> None:
    array = zarr.create_array(tmp_path / "s.zarr", **kind)
    array[:] = scores
    piece = tmp_path / "s.zarr" / "c" / "1" / "0"
    raw = piece.read_bytes()
    harmed = {"overwritten": b"\xff" * len(raw), "cut short": raw[: len(raw) // 2], "empty": b""}[
        harm
    ]
    piece.write_bytes(harmed)
    with pytest.raises(
        InputError, match=r"s.zarr/c/1/0: |row 1\d \(image\), column \d+ \(caption\) is nan"
    ) as raised:
        evaluate(tmp_path / "s.zarr", OWNER)
    assert "\n" not in str(raised.value)


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

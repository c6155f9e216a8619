"""Similarity stores: written whole and in bounded chunks, read with their ids, replaced in one
step.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import pytest
import saved
import zarr

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.layout import COLUMNS, ROWS
from pipeline.judge.systems.scores.system import System

FACTS = invented_facts.of_head()


def save(path: Path, matrix: np.ndarray, *others: np.ndarray, **options: Any) -> None:
    images, captions = matrix.shape
    saved.save(
        path,
        [Matrix(each) for each in (matrix, *others)],
        np.arange(images),
        np.arange(captions) + 100,
        np.arange(captions) % images,
        FACTS,
        **options,
    )


def numbered(images: int, captions: int = 3) -> np.ndarray:
    return np.arange(images * captions, dtype=np.float32).reshape(images, captions)


@pytest.mark.slow
def test_round_trip_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s.zarr"
    for scale in (1, 2):
        save(path, numbered(2 * ROWS + 5) * scale)
        store = System.open(path)
        assert np.array_equal(store.similarity[:], numbered(2 * ROWS + 5) * scale)
        assert store.image_ids.tolist() == list(range(2 * ROWS + 5))
        assert store.caption_ids.tolist() == [100, 101, 102]
        assert store.made_from == FACTS
        assert store.check() is store
        assert {step.verdict for step in store.store.verify()} == {"matches"}
    assert [entry.name for entry in path.parent.iterdir()] == ["s.zarr"]


class Watched(Matrix):
    """A source that notes the largest block that was asked of it."""

    largest = 0

    def block(self, images: Any, captions: Any) -> np.ndarray:
        block = super().block(images, captions)
        self.largest = max(self.largest, block.size)
        return block


@pytest.mark.slow
def test_chunks_are_bounded_on_both_axes_and_streamed(tmp_path: Path) -> None:
    source = Watched(numbered(ROWS + 3, 2 * COLUMNS + 1))
    reported: list[int] = []
    saved.save(
        tmp_path / "s.zarr",
        [source],
        np.arange(ROWS + 3),
        np.arange(2 * COLUMNS + 1),
        np.zeros(2 * COLUMNS + 1, np.int64),
        FACTS,
        progress=reported.append,
    )
    store = System.open(tmp_path / "s.zarr")
    assert store.similarity.chunks == (ROWS, COLUMNS)
    assert source.largest == ROWS * COLUMNS
    assert reported == [ROWS, ROWS + 3]
    assert np.array_equal(store.similarity[:], source.values)


@pytest.mark.slow
def test_embeddings_are_read_back_by_memory_map(tmp_path: Path) -> None:
    vectors = {
        "image_embeddings": np.zeros((4, 2), np.float32),
        "caption_embeddings": np.ones((8, 2), np.float32),
    }
    save(tmp_path / "s.zarr", numbered(4, 8), **vectors)
    embeddings = System.open(tmp_path / "s.zarr").embeddings()
    assert isinstance(embeddings.captions, np.memmap)
    assert np.array_equal(
        embeddings.images, vectors["image_embeddings"]
    )  # all zeros, and written all the same
    assert np.array_equal(embeddings.captions, vectors["caption_embeddings"])
    save(tmp_path / "t.zarr", numbered(4, 8))
    with pytest.raises(InputError, match="holds no embeddings"):
        System.open(tmp_path / "t.zarr").embeddings()


@pytest.mark.slow
def test_equal_vectors_have_equal_similarities_wherever_they_stand(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    images = generator.standard_normal((ROWS + 40, 96)).astype(np.float32)
    captions = generator.standard_normal((COLUMNS + 60, 96)).astype(np.float32)
    images[-40:], captions[-60:] = images[:40], captions[:60]
    product = Embeddings(images, captions, double=True)
    saved.save(
        tmp_path / "s.zarr",
        [product],
        np.arange(len(images)),
        np.arange(len(captions)),
        np.zeros(len(captions), np.int64),
        FACTS,
    )
    matrix = System.open(tmp_path / "s.zarr").similarity[:]
    assert np.array_equal(matrix[-40:], matrix[:40])
    assert np.array_equal(matrix[:, -60:], matrix[:, :60])


@pytest.mark.slow
def test_an_ensemble_by_query_keeps_its_members_and_is_fused_when_read(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    first, second = (rng.random((12, 24)).astype(np.float32) for _ in range(2))
    save(tmp_path / "s.zarr", first, second, fusion={"method": "rank", "weights": [0.25, 0.75]})
    store = System.open(tmp_path / "s.zarr")
    members = [
        System.of(str(each), each, None, np.arange(12), np.arange(24)) for each in (first, second)
    ]
    rules = retrieval.Protocol("thirds", folds=3)
    owner = np.arange(24) // 2
    expected = evaluate(fuse(members, "rank", [1, 3]).scores, owner, rules)
    assert evaluate(store.scores, owner, rules).as_dict() == expected.as_dict()
    with pytest.raises(InputError, match=r"by rank .* has no one matrix"):
        _ = store.similarity


def test_what_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    fusion = {"method": "rank", "weights": [0.5, 0.5]}
    for sizes, each in (((4,), None), ((9, 4), fusion)):
        with pytest.raises(InputError, match=r"a matrix of \(4, 3\) for 9 image and 3 caption ids"):
            saved.save(
                tmp_path / "s.zarr",
                [Matrix(numbered(size)) for size in sizes],
                np.arange(9),
                np.arange(3),
                np.zeros(3, np.int64),
                FACTS,
                fusion=each,
            )
        assert not (tmp_path / "s.zarr").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    with pytest.raises(
        InputError, match=r"holds notes\.txt and no record\.json, and so is not scores"
    ):
        save(tmp_path / "mine", numbered(4))
    assert (tmp_path / "mine" / "notes.txt").exists()


def test_what_is_not_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no similarity store there"):
        System.open(tmp_path / "nowhere.zarr")
    (tmp_path / "zarr.json").write_text("{}")
    with pytest.raises(InputError, match=r"no record\.json, so what made it is unknown"):
        System.open(tmp_path)
    save(tmp_path / "s.zarr", numbered(4), numbered(4), fusion={"method": "zscore", "weights": [1]})
    with pytest.raises(
        InputError, match="2 matrices do not fit its fusion 'zscore' with 1 weights"
    ):
        System.open(tmp_path / "s.zarr")
    group = zarr.open_group(tmp_path / "s.zarr", mode="r+")
    group.create_array("image_ids", shape=(5,), dtype="int64", overwrite=True)[:] = np.arange(5)
    with pytest.raises(InputError, match="5 image and 3 caption ids"):
        System.open(tmp_path / "s.zarr")


@pytest.mark.parametrize("opened", [System.open, System.open_vectors])
@pytest.mark.parametrize("name", ["image_ids", "caption_ids", "caption_image"])
@pytest.mark.parametrize("harm", ["cut short", "lost"])
def test_damaged_ids_are_refused_with_their_place(
    tmp_path: Path, opened: Any, name: str, harm: str
) -> None:
    vectors = {
        "image_embeddings": np.ones((4, 2), np.float32),
        "caption_embeddings": np.ones((8, 2), np.float32),
    }
    save(tmp_path / "s.zarr", numbered(4, 8), **vectors)
    chunk = tmp_path / "s.zarr" / name / "c" / "0"
    if harm == "lost":
        chunk.unlink()
    else:
        chunk.write_bytes(chunk.read_bytes()[:-3])
    with pytest.raises(InputError, match=re.escape(str(chunk))):
        opened(tmp_path / "s.zarr")


def test_vectors_that_are_cut_short_are_refused_with_their_place(tmp_path: Path) -> None:
    vectors = {
        "image_embeddings": np.ones((4, 2), np.float32),
        "caption_embeddings": np.ones((8, 2), np.float32),
    }
    save(tmp_path / "s.zarr", numbered(4, 8), **vectors)
    chunk = tmp_path / "s.zarr" / "caption_embeddings" / "c" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    with pytest.raises(InputError, match=re.escape(f"{chunk}: 61 bytes instead of 64")):
        System.open(tmp_path / "s.zarr").embeddings()


def test_captions_of_images_that_the_store_does_not_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    save(path, numbered(4))
    group = zarr.open_group(path, mode="r+")
    for rows, said in (([0, 3, 4], "0 to 4"), ([-2, 0, 3], "-2 to 3")):
        group["caption_image"][:] = rows
        expected = f"caption_image holds rows {said}, expected 0 to 3, or -1 for no image"
        with pytest.raises(InputError, match=expected):
            System.open(path)


def test_facts_that_no_system_has_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "s.zarr", numbered(4))
    saved.sealed_anew(tmp_path / "s.zarr", lambda facts: facts.update(unheard="of"))
    with pytest.raises(InputError, match="facts that are not a system's"):
        System.open(tmp_path / "s.zarr")


def test_what_a_killed_run_left_is_no_store(tmp_path: Path) -> None:
    save(tmp_path / "s.zarr", numbered(4))
    left = tmp_path / "s.zarr.successor"
    shutil.copytree(tmp_path / "s.zarr", left)
    saved.changed(left, finished=False, contents={})
    with pytest.raises(InputError, match=r"s\.zarr\.successor: is not finished"):
        System.open(left)

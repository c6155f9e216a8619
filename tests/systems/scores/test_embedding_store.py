"""Embedding stores: written piece by piece, whole or not at all, read by memory map."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import invented_facts
import numpy as np
import pytest
import saved
from full_disk import no_file_larger_than

from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.system import System

MADE = invented_facts.of_head(dataset="a", checkpoint="c")


@pytest.mark.slow
def test_round_trip_in_pieces(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "deep" / "e.zarr"
    ids, caption_ids, owner = np.array([7, 3]), np.array([5, 6, 9]), np.array([0, 0, 1])
    vectors = rng.standard_normal((3, 4)).astype(np.float32)
    for _ in range(2):  # the second replaces the first
        with saved.writing_vectors(path, [Collection(ids, caption_ids, owner)], 4, MADE) as (
            images,
            captions,
        ):
            images[:] = 0
            captions[:2], captions[2:] = vectors[:2], vectors[2:]
    store = System.open_vectors(path)
    assert (store.image_ids.tolist(), store.caption_ids.tolist()) == ([7, 3], [5, 6, 9])
    assert (store.caption_image.tolist(), store.checkpoints) == ([0, 0, 1], ["c"])
    assert store.made_from == MADE
    assert {step.verdict for step in store.store.verify()} == {"matches"}
    embeddings = store.embeddings()
    assert isinstance(embeddings.images, np.memmap)
    assert np.array_equal(embeddings.captions, vectors)
    assert not embeddings.images.any()
    assert [entry.name for entry in path.parent.iterdir()] == ["e.zarr"]


def test_what_is_cut_off_leaves_nothing(tmp_path: Path) -> None:
    one = [Collection(*np.zeros((3, 1), np.int64))]
    with pytest.raises(KeyboardInterrupt), saved.writing_vectors(tmp_path / "e.zarr", one, 4, MADE):
        raise KeyboardInterrupt
    with pytest.raises(InputError, match="no embeddings there"):
        System.open_vectors(tmp_path / "e.zarr")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    with (
        pytest.raises(InputError, match=r"no record\.json, and so is not vectors"),
        saved.writing_vectors(tmp_path / "mine", one, 4, MADE),
    ):
        pass


def embedded(path: Path, image_ids: list[int], checkpoint: str = "c") -> System:
    ids, generator = np.array(image_ids), np.random.default_rng(0)
    split = Collection(ids, 10 * ids, np.arange(len(ids)))
    made = invented_facts.of_head(dataset=path.stem, checkpoint=checkpoint)
    with saved.writing_vectors(path, [split], 4, made) as sides:
        for side in sides:
            side[:] = generator.normal(size=side.shape)
    return System.open_vectors(path)


@pytest.mark.parametrize("changed", [*layout.IDS, "image_embeddings"])
def test_vectors_whose_ids_were_changed_are_refused(tmp_path: Path, changed: str) -> None:
    store = embedded(tmp_path / "a.zarr", [3, 5])
    chunk = next(file for file in (store.path / changed / "c").rglob("*") if file.is_file())
    chunk.write_bytes(chunk.read_bytes()[::-1])
    with pytest.raises(InputError, match=f"a.zarr/{changed}: has changed since it was written"):
        store.vectors("image")


@pytest.mark.slow
def test_no_image_is_in_a_pool_twice(tmp_path: Path) -> None:
    pool = embedded(tmp_path / "a.zarr", [3, 5])
    others = [
        embedded(tmp_path / name / f"{dataset}.zarr", ids)
        for name, dataset, ids in (("other ids", "a", [7, 9]), ("another data set", "b", [3, 5]))
    ]
    assert pool.among(others).shape == (6, 6)
    for wrong in ([embedded(tmp_path / "again" / "a.zarr", [5, 7])], [others[0], others[0]]):
        with pytest.raises(InputError, match="of its images are in the pool already, "):
            pool.among(wrong)
    with pytest.raises(InputError, match="holds the vectors of another head"):
        pool.among([embedded(tmp_path / "by another head.zarr", [7], "d")])


def test_a_full_disk_is_said_before_a_map_of_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing into a map would end the process; also where no space can be reserved."""
    many = [Collection(np.arange(300), np.arange(300), np.arange(300))]

    def failing(number: int) -> Callable[..., None]:
        def reserve(*_: int) -> None:
            raise OSError(number, os.strerror(number))

        return reserve

    for number, expected in ((errno.ENOSPC, "No space left"), (errno.EOPNOTSUPP, "too large")):
        monkeypatch.setattr(os, "posix_fallocate", failing(number))
        with (
            no_file_larger_than(100_000),
            pytest.raises(OSError, match=expected) as raised,
            saved.writing_vectors(tmp_path / "e.zarr", many, 512, MADE) as (images, _captions),
        ):
            images.fill(1)
        assert "image_embeddings" in str(raised.value.filename)
    with saved.writing_vectors(tmp_path / "e.zarr", many, 4, MADE) as (images, captions):
        assert images.shape == captions.shape == (300, 4)

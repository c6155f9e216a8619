"""Scores that were computed elsewhere: their files by name, and what is known of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import foreign
import numpy as np

from pipeline.judge.systems import given
from pipeline.judge.systems.requests import AddRequest

REQUEST = AddRequest(name="mine", split="test", title="Mine", scores="v", files={"v": "d"})


def test_a_files_name_may_hold_what_parts_two_names(tmp_path: Path) -> None:
    """`a:b` is a file of that name where there is one, else an image side and a caption side."""
    for name in ("one", "two", "run:best"):
        (tmp_path / name).write_text(name)
    for scores, files in (
        ("one", ["one"]),
        ("one:two", ["one", "two"]),
        ("run:best", ["run:best"]),
    ):
        digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in files}
        assert given.named(scores, tmp_path) == (scores, digests), scores


def test_systems_of_one_title_are_told_apart_and_say_what_the_data_set_lacks() -> None:
    manifest = replace(foreign.manifest(8, captions=2), left_out={"no caption": 2})
    mine = given.facts(REQUEST, manifest)
    other = given.facts(REQUEST.model_copy(update={"name": "other"}), manifest)
    renamed = given.facts(REQUEST.model_copy(update={"title": "A title"}), manifest)
    assert mine.checkpoints == renamed.checkpoints
    assert mine.checkpoints != other.checkpoints
    assert mine.lacks == {"no caption": 2}
    assert (mine.dataset, mine.split, mine.heads) == ("coco", "test", ["mine"])


def test_vectors_are_divided_by_their_lengths_where_the_request_says_so(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    manifest = foreign.manifest(8, captions=2)
    manifest.save(tmp_path / "coco.parquet")
    test = manifest.split("test")
    images, captions = rng.normal(size=(2, 4)), rng.normal(size=(4, 4))
    np.save(tmp_path / "i.npy", images)
    np.save(tmp_path / "c.npy", captions)
    lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(captions, axis=1)
    for normalise, expected in ((False, 1), (True, lengths)):
        request = REQUEST.model_copy(update={"scores": "i.npy:c.npy", "normalise": normalise})
        system = given.read(request, tmp_path, tmp_path / "coco.parquet")
        scores = system.scores.block(slice(0, 2), slice(0, 4))  # type: ignore[union-attr]
        np.testing.assert_allclose(scores, images @ captions.T / expected, rtol=1e-5)
        assert system.image_ids.tolist() == test.image_ids.tolist()

"""A head works from its folder alone: without the manifest and the features that it was trained
on.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import forged
import numpy as np
import pytest
from PIL import Image

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make import training
from pipeline.make.features.store import FeatureStore


@pytest.fixture
def copied(trained_head: Path, tmp_path: Path) -> Path:
    """The head's folder, with nothing beside it."""
    shutil.copytree(trained_head, tmp_path / "elsewhere" / "mine")
    return tmp_path / "elsewhere" / "mine"


def other_data(scenes: Manifest) -> Manifest:
    """The same photographs under another name, with other captions."""
    table = scenes.table.assign(caption=[f"{caption} again" for caption in scenes.table["caption"]])
    return Manifest(table, "other", scenes.images_folder)


def test_captions_need_the_folder_alone(trained_head: Path, copied: Path) -> None:
    captions = ["a red house", "two blue cars by the sea"]
    here, there = (
        training.Head.open(folder).embed_captions(captions) for folder in (trained_head, copied)
    )
    assert here.shape[0] == 2
    np.testing.assert_array_equal(here, there)
    np.testing.assert_allclose(np.linalg.norm(there, axis=1), 1, atol=1e-6)


def test_images_of_another_data_set_are_embedded(
    copied: Path, scenes: Manifest, store: FeatureStore
) -> None:
    head = training.Head.open(copied)
    source = head.images(other_data(scenes), store.path)
    assert (
        head.embed_images(source, np.array([3, 1])).tolist()
        == head.embed_images(source)[[3, 1]].tolist()
    )


def test_a_photograph_in_no_store_has_the_vector_of_its_stored_features(
    copied: Path, scenes: Manifest, store: FeatureStore
) -> None:
    head = training.Head.open(copied)
    with Image.open(scenes.images_folder / scenes.images["file"].iloc[2]) as image:
        (again,) = head.embed_photographs([image.convert("RGB")], head.new_images())
    (stored,) = head.embed_images(head.images(scenes, store.path), np.array([2]))
    np.testing.assert_allclose(again, stored, atol=1e-3)


def test_features_that_were_made_otherwise_are_refused(
    copied: Path, scenes: Manifest, store: FeatureStore
) -> None:
    forged.artefact(
        copied, lambda content: content["facts"]["items"]["made"].update(precision="bf16")
    )
    with pytest.raises(
        InputError, match="its precision is 'fp32', the head was trained with 'bf16'"
    ):
        training.Head.open(copied).images(other_data(scenes), store.path)
    forged.artefact(copied, lambda content: content["facts"]["items"].pop("made"))
    with pytest.raises(InputError, match="not a head of this version"):
        training.Head.open(copied).images(other_data(scenes), store.path)


def test_its_own_data_set_must_be_the_one_it_was_trained_on(
    copied: Path, scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    changed = Manifest(other_data(scenes).table, "sample", scenes.images_folder)
    with pytest.raises(InputError, match="was trained with another manifest of sample"):
        training.Head.open(copied).images(changed, store.path)


DEEP: dict[str, Any] = {}
for _ in range(300):
    DEEP = {"deeper": DEEP}
SIZES = {
    "width": ("facts", "width"),
    "joint space": ("request", "training", "dimension"),
    "words": ("request", "training", "word_dimension"),
    "items of an image": ("facts", "items", "items"),
    "dimension of items": ("facts", "items", "dimension"),
}


@pytest.mark.parametrize("place", SIZES.values(), ids=[*SIZES])
def test_sizes_that_no_head_has_are_refused(copied: Path, place: tuple[str, ...]) -> None:
    record = (copied / "record.json").read_text()
    for size in (-1, 0, True, 5.0, "8", DEEP):
        (copied / "record.json").write_text(record)
        forged_size(copied, place, size)
        with pytest.raises(InputError, match=r"not a head of this version|record\.json: damaged"):
            training.Head.open(copied)


@pytest.mark.parametrize("size", [10**9, 10**30])
def test_a_network_larger_than_its_file_takes_no_memory(copied: Path, size: int) -> None:
    record = (copied / "record.json").read_text()
    for place in [*SIZES.values()][:3]:
        (copied / "record.json").write_text(record)
        forged_size(copied, place, size)
        with pytest.raises(InputError, match="does not fit the head's settings"):
            training.Head.open(copied)


def forged_size(head: Path, place: tuple[str, ...], size: object) -> None:
    """Change a size in a head's record."""
    *above, last = place

    def change(content: dict[str, Any]) -> None:
        for key in above:
            content = content[key]
        content[last] = size

    forged.artefact(head, change)

"""Noisy correspondences: captions that are paired with other images, and what is recorded of
them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Noise
from pipeline.make import training
from pipeline.make.training import loop, sampling
from pipeline.make.training.sampling import subset

OWN = np.arange(400).repeat(5)


@pytest.mark.specification
@pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
def test_a_share_of_the_captions_exchange_their_images(share: float) -> None:
    pairs = sampling.drawn(OWN, share, 0)
    assert np.array_equal(np.sort(pairs), OWN)  # as many captions an image as before
    assert share - 0.02 < (pairs != OWN).mean() <= share
    assert np.array_equal(pairs, sampling.drawn(OWN, share, 0))
    assert not np.array_equal(pairs, sampling.drawn(OWN, share, 1))
    untouched = sampling.drawn(OWN, share + 0.1, 0) == OWN
    assert (
        pairs[untouched] == OWN[untouched]
    ).mean() > 0.98  # a smaller share lies within a larger one


def test_each_seed_mismatches_other_captions() -> None:
    """Captions that two seeds choose are as many as two independent choices have in common."""
    for share in (0.2, 0.6):
        one, other = (sampling.drawn(OWN, share, seed) != OWN for seed in (0, 1))
        assert (one & other).mean() == pytest.approx(share**2, abs=0.03)


def test_an_index_file_is_read_as_the_released_codes_write_it(
    scenes: Manifest, tmp_path: Path
) -> None:
    split, path = scenes.split("train"), tmp_path / "index.npy"
    images, captions = len(split.image_ids), len(split.captions)
    exchanged = np.roll(np.arange(images), 1)
    for index in (exchanged, exchanged[split.caption_image]):
        np.save(path, index)
        found = sampling.mismatch(split, Noise(share=0.99, index=str(path)))
        assert np.array_equal(found.caption_image, exchanged[split.caption_image])
        assert found.captions.tolist() == split.captions.tolist()
    for wrong, said in (
        (exchanged[:-1], rf"\[{captions}\].*\[{images}\].*got int64 \[{images - 1}\]"),
        (exchanged + 1, f"from 0 to {images - 1}, got 1 to {images}"),
        (exchanged - 1, f"from 0 to {images - 1}, got -1 to {images - 2}"),
        (np.arange(images), "gives 0.0% of the captions another image"),
        (exchanged.astype(float), "integers"),
        (np.array([{}]), "not readable as an array"),
    ):
        np.save(path, wrong, allow_pickle=True)
        with pytest.raises(InputError, match=said):
            sampling.mismatch(split, Noise(share=0.99, index=str(path)))
    with pytest.raises(ValueError, match="no seed draws them"):
        Noise(share=0.2, index="x", seed=1)


def test_noise_is_among_the_images_that_are_trained_on(
    job: training.TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First some images are chosen, then a share of their captions exchange images."""
    trained: list[Split] = []
    monkeypatch.setattr(
        loop, "_epochs", lambda job, course, *others: trained.append(course.data.train)
    )
    some = job.training.model_copy(update={"images": 8})
    training.train(
        replace(
            job, training=some, recipe=job.recipe.model_copy(update={"noise": Noise(share=0.5)})
        )
    )
    own = subset(job.manifest.split("train"), 8, some.subset_seed)
    assert trained[0].image_ids.tolist() == own.image_ids.tolist()
    assert trained[0].captions.tolist() == own.captions.tolist()
    assert np.array_equal(trained[0].caption_image, sampling.drawn(own.caption_image, 0.5, 0))


def test_a_head_records_its_noise_and_without_noise_nothing_changes(
    job: training.TrainingJob, tmp_path: Path
) -> None:
    job = replace(job, training=job.training.model_copy(update={"epochs": 1, "steps": 2}))
    split = job.manifest.split("train")
    assert sampling.mismatch(split, None) is split
    training.train(job)
    index = tmp_path / "index.npy"
    np.save(index, sampling.drawn(split.caption_image, 0.4, 0))
    noisy = {
        name: replace(
            job, folder=tmp_path / name, recipe=job.recipe.model_copy(update={"noise": setting})
        )
        for name, setting in (
            ("drawn", Noise(share=0.4)),
            ("read", Noise(share=0.4, index=str(index))),
        )
    }
    for each in noisy.values():
        training.train(each)
    said = {
        name: json.loads((tmp_path / name / "record.json").read_text())["request"]["recipe"]
        for name in ("head", "drawn", "read")
    }
    assert "noise" not in said["head"]
    assert said["drawn"]["noise"] == {"share": 0.4}
    assert said["read"] == noisy["read"].request.recorded()["recipe"]
    assert len(said["read"]["noise"]["index"]) == 64
    weights = {name: (tmp_path / name / "best.safetensors").read_bytes()[1000:] for name in said}
    assert weights["drawn"] == weights["read"] != weights["head"]
    with pytest.raises(InputError, match="noise was"):
        training.train(replace(job, folder=tmp_path / "drawn"))
    index.unlink()
    with pytest.raises(InputError, match="No such file"):
        training.train(noisy["read"])

"""Heads that are there: left, refused, made whole or trained anew, and never on other features than
they say.
"""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import forged
import numpy as np
import pytest
from folders import tree

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe, Training
from pipeline.make import training
from pipeline.make.features.store import FeatureStore, StoreError, ledger, shard_file
from pipeline.make.training import HeadArtefact, TrainRequest, checkpoint
from pipeline.make.training.inputs import trained_rows


@pytest.fixture
def job(job: training.TrainingJob) -> training.TrainingJob:
    """A head of one epoch."""
    return replace(job, training=job.training.model_copy(update={"epochs": 1, "decay_epoch": 1}))


@pytest.fixture
def finished_job(job: training.TrainingJob, trained_head: Path) -> training.TrainingJob:
    """The job whose head is there: a copy, which a test may change."""
    shutil.copytree(trained_head, job.folder)
    return job


@pytest.mark.specification
def test_a_finished_head_is_left_as_it_is_and_another_refused(
    finished_job: training.TrainingJob,
) -> None:
    job = finished_job
    before = tree(job.folder)
    assert training.train(job).epochs == 1
    assert tree(job.folder) == before
    other = replace(job, recipe=job.recipe.model_copy(update={"learning_rate": 0.001}))
    with pytest.raises(InputError, match=r"recipe\.learning_rate was 0\.0005, is 0\.001"):
        training.train(other)
    assert tree(job.folder) == before
    training.train(replace(other, if_changed="redo"))
    assert HeadArtefact.open(job.folder).request.recipe.learning_rate == 0.001


def test_where_it_was_trained_is_no_part_of_a_head(
    job: training.TrainingJob, scenes: Manifest, store: FeatureStore
) -> None:
    training.train(replace(job, training=job.training.model_copy(update={"pieces": 2})))
    before = tree(job.folder)
    elsewhere = job.training.model_copy(update={"device": "cuda", "processes": 4})
    # it is finished: nothing is to be done there
    assert training.train(replace(job, training=elsewhere)).epochs == 1
    assert tree(job.folder) == before
    (machine,) = HeadArtefact.open(job.folder).record.machines
    assert machine.items() >= {"device": "cpu", "pieces": 2, "processes": 1}.items()
    forged.artefact(
        job.folder, lambda content: content["machines"][0].update(device="cuda")
    )  # as from another machine
    training.Head.open(job.folder)
    for device in ("nowhere", "meta"):
        with pytest.raises(InputError, match=f"device '{device}' is not available"):
            training.Head.open(job.folder, device)
        with pytest.raises(InputError, match=f"device '{device}' is not available"):
            training.train(
                replace(
                    job,
                    training=job.training.model_copy(update={"device": device, "epochs": 4}),
                    folder=job.folder / device,
                )
            )
    with pytest.raises(InputError, match="device 'nowhere' is not available"):
        training.launch(2, "nowhere")


def test_a_head_is_made_of_the_features_of_train_and_val(scenes: Manifest) -> None:
    """By val its epoch was chosen; images without features are not read."""
    with_features = np.arange(len(scenes.images)) % 3 > 0
    rows = trained_rows(scenes, with_features).tolist()
    splits = scenes.images["split"].tolist()
    assert {"train", "val", "test"} <= {*splits}
    assert rows == [row for row, split in enumerate(splits) if row % 3 and split != "test"]


def test_seeds_differ(job: training.TrainingJob, trained_head: Path) -> None:
    training.train(replace(job, seed=1))
    best, other = (folder / "best.safetensors" for folder in (trained_head, job.folder))
    assert best.read_bytes() != other.read_bytes()


def test_divergence_is_said(job: training.TrainingJob) -> None:
    wild = replace(
        job, recipe=job.recipe.model_copy(update={"learning_rate": 1e38, "gradient_clip": 1e38})
    )
    with pytest.raises(InputError, match=r"nan|NaN|finite"):
        training.train(wild)


def test_heads_that_do_not_belong_are_refused(
    finished_job: training.TrainingJob, scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    job = finished_job
    with pytest.raises(InputError, match="no head there"):
        training.Head.open(job.folder.with_name("none"))
    tuned = tmp_path / "encoders/sample/lora-clip-s0"
    shutil.copytree(job.folder, tuned)
    forged.artefact(tuned, lambda record: record.update(kind="tuned encoder"))
    for folder in (tmp_path / "heads/sample" / tuned.name, tuned):
        with pytest.raises(InputError, match=f"write tuned:{re.escape(str(tuned))}$"):
            training.Head.open(folder)
    shorter = Manifest(scenes.table.iloc[5:], "sample", scenes.images_folder)
    with pytest.raises(InputError, match="another manifest"):
        training.Head.open(job.folder).images(shorter, store.path)
    words = job.folder / "text" / "vocabulary.json"
    text = words.read_text()
    words.write_text(text.replace("]", ', "newword"]'))
    with pytest.raises(InputError, match=r"vocabulary\.json: changed after it was written"):
        training.Head.open(job.folder)
    forged.artefact(job.folder)
    with pytest.raises(InputError, match="not the vocabulary"):
        training.Head.open(job.folder)
    words.write_text(text)
    (job.folder / "best.safetensors").write_bytes(b"nonsense")
    forged.artefact(job.folder)
    with pytest.raises(InputError, match="not a readable checkpoint"):
        training.Head.open(job.folder)


def test_other_first_vectors_make_another_head_and_a_trained_one_does_without_their_file(
    finished_job: training.TrainingJob, tmp_path: Path
) -> None:
    job = finished_job
    drawn = checkpoint.load_tensors(job.folder / "best.safetensors")[0]
    file = tmp_path / "glove.txt"
    file.write_text(
        "".join(f"{word} {' '.join(['0.5'] * 8)}\n" for word in ("a", "red", "on")),
        encoding="utf-8",
    )
    begun = replace(job, training=job.training.model_copy(update={"word_vectors": str(file)}))
    with pytest.raises(InputError, match=r"words\.word_vectors was nothing, is"):
        training.train(begun)
    training.train(replace(begun, if_changed="redo"))
    learned = checkpoint.load_tensors(job.folder / "best.safetensors")[0]
    assert not learned["text.embedding.weight"].equal(drawn["text.embedding.weight"])
    file.unlink()
    training.Head.open(job.folder)


def test_a_changed_file_of_first_vectors_is_seen_before_anything_is_loaded(
    job: training.TrainingJob, scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    file, manifest = tmp_path / "glove.txt", tmp_path / "scenes.parquet"
    scenes.save(manifest)
    sizes = job.training.model_copy(update={"word_vectors": str(file)})
    with pytest.raises(
        InputError, match=r"glove\.txt: no such file; training\.NAME\.word_vectors names it"
    ):
        TrainRequest.of("vse_pp", "region", "bigru", 0, job.recipe, sizes)
    asked = []
    for value in ("0.5", "0.25", "0.5"):
        file.write_text(f"a {value}\n", encoding="utf-8")
        request = TrainRequest.of("vse_pp", "region", "bigru", 0, job.recipe, sizes)
        asked.append(request.recorded())
        references = training.inputs.of_files(request, "sample", manifest, store.path, {})
        assert references is not None
        assert references.keys() == {"manifest", "features"}
    assert asked[0] == asked[2] != asked[1]


def test_what_a_head_is_made_from_is_known_without_loading_it(
    job: training.TrainingJob, scenes: Manifest, tmp_path: Path
) -> None:
    scenes.save(tmp_path / "scenes.parquet")
    loaded = job.made_from(job.learn(job.manifest.split("train").captions))
    assert isinstance(job.request, TrainRequest)
    by_files = training.inputs.of_files(
        job.request, "sample", tmp_path / "scenes.parquet", job.source.path, {}
    )
    assert by_files == loaded


@pytest.mark.parametrize(
    "lost", ["best.safetensors", "last.safetensors", "history.csv", "record.json"]
)
def test_training_is_not_thrown_away_unasked(finished_job: training.TrainingJob, lost: str) -> None:
    job = finished_job
    (job.folder / lost).unlink()
    before = tree(job.folder)
    expected = (
        "holds best.safetensors and no record.json"
        if lost == "record.json"
        else f"has lost {lost}; --if"
    )
    with pytest.raises(InputError, match=expected):
        training.train(job)
    assert tree(job.folder) == before


@pytest.mark.parametrize("lost", ["best.safetensors", "text", "text/vocabulary.json"])
def test_what_is_lost_of_a_head_is_made_again(
    finished_job: training.TrainingJob, lost: str
) -> None:
    job = finished_job
    before = tree(job.folder)
    shutil.rmtree(job.folder / lost) if lost == "text" else (job.folder / lost).unlink()
    with pytest.raises(InputError, match="train"):
        training.Head.open(job.folder)
    training.train(replace(job, if_changed="redo"))
    assert tree(job.folder) == before


def test_a_checkpoint_that_lacks_weights_is_refused(job: training.TrainingJob) -> None:
    job = replace(job, training=job.training.model_copy(update={"epochs": 2}))

    def cut(epoch: int, step: int, log: object) -> None:
        if epoch == 2:
            raise Cut

    with pytest.raises(Cut):
        training.train(job, on_step=cut)
    tensors, metadata = checkpoint.load_tensors(job.folder / "last.safetensors")
    for gone in ("model.image_pooling.W_tok", "optimizer.0.exp_avg"):
        checkpoint.save_tensors(
            job.folder / "last.safetensors",
            {name: value for name, value in tensors.items() if name != gone},
            metadata,
        )
        with pytest.raises(InputError, match="does not hold all of the head; delete the folder"):
            training.train(job)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused_though_the_record_names_them(
    finished_job: training.TrainingJob, value: float
) -> None:
    job = finished_job
    file = job.folder / "best.safetensors"
    tensors, metadata = checkpoint.load_tensors(file)
    name = max(tensors, key=lambda each: tensors[each].numel())
    tensors[name].view(-1)[-1] = value
    checkpoint.save_tensors(file, tensors, metadata)
    records.describe(job.folder, file.name)
    message = f"best.safetensors: its tensor {name} holds values that are not finite"
    with pytest.raises(InputError, match=re.escape(message)):
        training.Head.open(job.folder)


class Cut(Exception):
    """Stands for a killed process."""


def test_an_unfinished_head_is_refused(job: training.TrainingJob) -> None:
    job = replace(job, training=job.training.model_copy(update={"epochs": 2}))

    def cut(epoch: int, step: int, log: object) -> None:
        if epoch == 2:
            raise Cut

    with pytest.raises(Cut):
        training.train(job, on_step=cut)
    with pytest.raises(InputError, match="not finished"):
        training.Head.open(job.folder)


@pytest.fixture
def copied(job: training.TrainingJob, tmp_path: Path) -> training.TrainingJob:
    """The job with a store of its own, whose bytes may be changed."""
    shutil.copytree(job.source.path, tmp_path / "region.zarr")
    return replace(job, source=FeatureStore(tmp_path / "region.zarr"))


def change(job: training.TrainingJob, array: str, in_ledger: bool = False) -> Path:
    """Change a bit of an array of the first shard; in_ledger: also what the ledger says of it."""
    dimensions = len(job.source.layout.arrays()[array][0]) + 1  # type: ignore[attr-defined]
    file = ledger.shard_file(job.source.path, array, 0, dimensions)
    content = bytearray(file.read_bytes())
    content[1] ^= 1
    file.write_bytes(content)
    entry = ledger.read(job.source.path, 0)
    assert entry is not None
    if in_ledger:
        there = shard_file.read(job.source.path, job.source.layout, 0)  # type: ignore[attr-defined]
        ledger.write(
            job.source.path, replace(entry, checksums=there.checksums, values=there.values)
        )
    return file


@pytest.mark.parametrize("array", ["features", "counts"])
def test_features_whose_bytes_changed_are_not_trained_on(
    copied: training.TrainingJob, array: str
) -> None:
    file = change(copied, array)
    with pytest.raises(StoreError, match="its bytes have changed since they were written") as error:
        training.train(copied)
    assert str(file) in str(error.value)
    assert not (copied.folder / "last.safetensors").exists()


def test_a_head_on_other_bytes_of_the_same_features_is_another(
    copied: training.TrainingJob, trained_head: Path
) -> None:
    shutil.copytree(trained_head, copied.folder)
    change(copied, "features", in_ledger=True)
    now = replace(
        copied, source=FeatureStore(copied.source.path)
    )  # a job knows its source's bytes once
    assert now.source.identity == copied.source.identity
    with pytest.raises(InputError, match="its features region is another"):
        training.train(now)
    best = (now.folder / "best.safetensors").read_bytes()
    training.train(replace(now, if_changed="redo"))
    assert (now.folder / "best.safetensors").read_bytes() != best


class LaterTraining(Training):
    """Training with a setting that was added later."""

    shuffle: bool = True


class LaterRecipe(Recipe):
    """A recipe with a setting that was added later."""

    temperature: float = 1.0


def test_a_setting_of_training_and_of_recipes_added_later_leaves_heads(
    finished_job: training.TrainingJob,
) -> None:
    job = finished_job
    before = tree(job.folder)
    sizes, recipe = job.training.model_dump(), job.recipe.model_dump()
    later = replace(job, training=LaterTraining(**sizes), recipe=LaterRecipe(**recipe))
    assert training.train(later).epochs == 1
    assert tree(job.folder) == before
    for other, key in (
        (replace(later, training=LaterTraining(**sizes, shuffle=False)), r"training\.shuffle"),
        (replace(later, recipe=LaterRecipe(**recipe, temperature=2.0)), r"recipe\.temperature"),
    ):
        with pytest.raises(InputError, match=f"{key} was nothing"):
            training.train(other)

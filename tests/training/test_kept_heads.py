"""Heads that are there: left, refused, made whole or trained anew, and never on other features than they say."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import forged
import pytest
from folders import tree

from pipeline import training
from pipeline.features.store import FeatureStore, StoreError, ledger, shard_file
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.settings import Recipe, Training
from pipeline.training import checkpoint
from pipeline.training.request import TrainingRequest


def test_a_finished_head_is_left_as_it_is_and_another_refused(job: training.TrainingJob) -> None:
    training.train(job)
    before = tree(job.folder)
    assert training.train(job).epochs == 3
    assert tree(job.folder) == before
    other = replace(job, recipe=job.recipe.model_copy(update={"learning_rate": 0.001}))
    with pytest.raises(InputError, match=r"trained with other settings \(recipe_settings\)"):
        training.train(other)
    assert tree(job.folder) == before
    training.train(replace(other, if_changed="redo"))
    assert json.loads((job.folder / "head.json").read_text())["recipe_settings"]["learning_rate"] == 0.001


def test_where_it_was_trained_is_no_part_of_a_head(
        job: training.TrainingJob, scenes: Manifest, store: FeatureStore) -> None:
    training.train(replace(job, training=job.training.model_copy(update={"pieces": 2})))
    before = tree(job.folder)
    elsewhere = job.training.model_copy(update={"device": "cuda", "processes": 4})
    assert training.train(replace(job, training=elsewhere)).epochs == 3  # it is finished: nothing is to be done there
    assert tree(job.folder) == before
    described = json.loads((job.folder / "head.json").read_text())
    assert described["aside"].items() >= {"device": "cpu", "pieces": 2, "processes": 1}.items()
    described["aside"]["device"] = "cuda"  # as a head from another machine
    (job.folder / "head.json").write_text(json.dumps(described))
    forged.recorded(job.folder)
    training.Head.open(job.folder)
    for device in ("nowhere", "meta"):
        with pytest.raises(InputError, match=f"device '{device}' is not available"):
            training.Head.open(job.folder, device)
        with pytest.raises(InputError, match=f"device '{device}' is not available"):
            training.train(replace(job, training=job.training.model_copy(update={"device": device, "epochs": 4}),
                                   folder=job.folder / device))
    with pytest.raises(InputError, match="device 'nowhere' is not available"):
        training.launch(2, "nowhere")


def test_seeds_differ(job: training.TrainingJob, tmp_path: Path) -> None:
    training.train(job)
    training.train(replace(job, seed=1, folder=tmp_path / "other"))
    assert (job.folder / "best.safetensors").read_bytes() != (tmp_path / "other" / "best.safetensors").read_bytes()


def test_divergence_is_said(job: training.TrainingJob) -> None:
    wild = replace(job, recipe=job.recipe.model_copy(update={"learning_rate": 1e38, "gradient_clip": 1e38}))
    with pytest.raises(InputError, match=r"nan|NaN|finite"):
        training.train(wild)


def test_heads_that_do_not_belong_are_refused(job: training.TrainingJob, scenes: Manifest, store: FeatureStore) -> None:
    with pytest.raises(InputError, match="no head there"):
        training.Head.open(job.folder)
    training.train(job)
    shorter = Manifest(scenes.table.iloc[5:], "sample", scenes.images_folder)
    with pytest.raises(InputError, match="another manifest"):
        training.Head.open(job.folder).images(shorter, store.path)
    words = job.folder / "text" / "vocabulary.json"
    text = words.read_text()
    words.write_text(text.replace("]", ', "newword"]'))
    with pytest.raises(InputError, match=r"vocabulary\.json: changed after it was written"):
        training.Head.open(job.folder)
    forged.recorded(job.folder)
    with pytest.raises(InputError, match="not the vocabulary"):
        training.Head.open(job.folder)
    words.write_text(text)
    (job.folder / "best.safetensors").write_bytes(b"nonsense")
    forged.recorded(job.folder)
    with pytest.raises(InputError, match="not a readable checkpoint"):
        training.Head.open(job.folder)


def test_other_first_vectors_make_another_head_and_a_trained_one_does_without_their_file(
        job: training.TrainingJob, scenes: Manifest, store: FeatureStore, tmp_path: Path) -> None:
    training.train(job)
    drawn = checkpoint.load_tensors(job.folder / "best.safetensors")[0]
    file = tmp_path / "glove.txt"
    file.write_text("".join(f"{word} {' '.join(['0.5'] * 8)}\n" for word in ("a", "red", "on")), encoding="utf-8")
    begun = replace(job, training=job.training.model_copy(update={"word_vectors": str(file)}))
    with pytest.raises(InputError, match=r"other settings \(vocabulary\)"):
        training.train(begun)
    training.train(replace(begun, if_changed="redo"))
    learned = checkpoint.load_tensors(job.folder / "best.safetensors")[0]
    assert not learned["text.embedding.weight"].equal(drawn["text.embedding.weight"])
    file.unlink()
    training.Head.open(job.folder)


def test_a_changed_file_of_first_vectors_is_seen_before_anything_is_loaded(
        job: training.TrainingJob, scenes: Manifest, store: FeatureStore, tmp_path: Path) -> None:
    file, manifest = tmp_path / "glove.txt", tmp_path / "scenes.parquet"
    scenes.save(manifest)
    request = TrainingRequest(manifest, store.path, ("sample", "region", "bigru", "vse_pp", 0), job.recipe,
                              job.training.model_copy(update={"word_vectors": str(file)}))
    assert request.as_json() is None  # no such file
    said = []
    for value in ("0.5", "0.25", "0.5"):
        file.write_text(f"a {value}\n", encoding="utf-8")
        said.append(request.as_json())
    assert said[0] is not None
    assert said[0] == said[2] != said[1]


@pytest.mark.parametrize("lost", ["best.safetensors", "head.json"])
def test_training_is_not_thrown_away_unasked(job: training.TrainingJob, lost: str) -> None:
    training.train(job)
    (job.folder / lost).unlink()
    before = tree(job.folder)
    with pytest.raises(InputError, match=f"has lost {lost}; put that back, or --if-changed redo"):
        training.train(job)
    assert tree(job.folder) == before


@pytest.mark.parametrize("lost", ["best.safetensors", "head.json", "text", "text/vocabulary.json"])
def test_what_is_lost_of_a_head_is_made_again(job: training.TrainingJob, scenes: Manifest, store: FeatureStore,
                                              lost: str) -> None:
    training.train(job)
    before = tree(job.folder)
    shutil.rmtree(job.folder / lost) if lost == "text" else (job.folder / lost).unlink()
    with pytest.raises(InputError, match="train"):
        training.Head.open(job.folder)
    training.train(replace(job, if_changed="redo"))
    assert tree(job.folder) == before


def test_a_checkpoint_that_lacks_weights_is_refused(job: training.TrainingJob) -> None:
    training.train(job)
    tensors, metadata = checkpoint.load_tensors(job.folder / "last.safetensors")
    metadata["history"] = metadata["history"][:1]
    for gone in ("model.image_pooling.W_tok", "optimizer.0.exp_avg"):
        checkpoint.save_tensors(job.folder / "last.safetensors",
                                {name: value for name, value in tensors.items() if name != gone}, metadata)
        with pytest.raises(InputError, match="does not hold all of the head; delete the folder"):
            training.train(job)


class Cut(Exception):
    """Stands for a killed process."""


def test_an_unfinished_head_is_refused(job: training.TrainingJob, scenes: Manifest, store: FeatureStore) -> None:
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


def change(job: training.TrainingJob, array: str, told: bool = False) -> Path:
    """Change a bit of an array of the first shard, and `told`, what the ledger says of it."""
    dimensions = len(job.source.layout.arrays()[array][0]) + 1  # type: ignore[attr-defined]
    file = ledger.shard_file(job.source.path, array, 0, dimensions)
    content = bytearray(file.read_bytes())
    content[1] ^= 1
    file.write_bytes(content)
    entry = ledger.read(job.source.path, 0)
    assert entry is not None
    if told:
        there = shard_file.read(job.source.path, job.source.layout, 0)  # type: ignore[attr-defined]
        ledger.write(job.source.path, replace(entry, checksums=there.checksums, values=there.values))
    return file


@pytest.mark.parametrize("array", ["features", "counts"])
def test_features_whose_bytes_changed_are_not_trained_on(copied: training.TrainingJob, array: str) -> None:
    file = change(copied, array)
    with pytest.raises(StoreError, match="its bytes have changed since they were written") as error:
        training.train(copied)
    assert str(file) in str(error.value)
    assert not (copied.folder / "last.safetensors").exists()


def test_a_head_on_other_bytes_of_the_same_features_is_another(copied: training.TrainingJob) -> None:
    training.train(copied)
    change(copied, "features", told=True)
    now = replace(copied, source=FeatureStore(copied.source.path))  # a job knows its source's bytes once
    assert now.source.identity == copied.source.identity
    with pytest.raises(InputError, match="trained with other settings \\(the bytes of its features\\)"):
        training.train(now)
    best = (now.folder / "best.safetensors").read_bytes()
    training.train(replace(now, if_changed="redo"))
    assert (now.folder / "best.safetensors").read_bytes() != best


def test_a_head_from_before_bytes_were_recorded_is_left_as_it_is(copied: training.TrainingJob) -> None:
    training.train(copied)
    said = json.loads((copied.folder / "head.json").read_text())
    del said["content"]
    (copied.folder / "head.json").write_text(json.dumps(said))
    change(copied, "features", told=True)
    before = tree(copied.folder)
    training.train(replace(copied, source=FeatureStore(copied.source.path)))
    assert tree(copied.folder) == before


class LaterTraining(Training):
    """Training with a setting that was added later."""

    shuffle: bool = True


class LaterRecipe(Recipe):
    """A recipe with a setting that was added later."""

    temperature: float = 1.0


def test_a_setting_of_training_and_of_recipes_added_later_leaves_heads(job: training.TrainingJob) -> None:
    training.train(job)
    made = (job.folder / "head.json").read_bytes()
    sizes, recipe = job.training.model_dump(), job.recipe.model_dump()
    later = replace(job, training=LaterTraining(**sizes), recipe=LaterRecipe(**recipe))
    assert training.train(later).epochs == json.loads(made)["training"]["epochs"]
    assert (job.folder / "head.json").read_bytes() == made
    for other, key in ((replace(later, training=LaterTraining(**sizes, shuffle=False)), "training"),
                       (replace(later, recipe=LaterRecipe(**recipe, temperature=2.0)), "recipe_settings")):
        with pytest.raises(InputError, match=rf"other settings \({key}\)"):
            training.train(other)

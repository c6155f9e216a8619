"""Training: batches by (seed, epoch, step), exact resumption, selection on val, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from folders import tree

from pipeline import settings, training
from pipeline.compute import half, machine, products
from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.store import FeatureStore, StoreError, ledger
from pipeline.text.base import encode
from pipeline.text.bigru import BiGRUText
from pipeline.text.vocabulary import Vocabulary
from pipeline.training import checkpoint
from pipeline.training.batches import TrainingBatches, drop

SMALL = tuple(f"training.sample.{change}" for change in (
    "dimension=16", "word_dimension=8", "batch_size=16", "epochs=3", "decay_epoch=2", "minimum_count=1"))
SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml", SMALL)


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.Job:
    return training.Job(scenes, store, "region", "bigru", "vse2ad", SETTINGS.recipe("vse2ad"),
                        SETTINGS.training_of("sample"), 0, tmp_path / "head")


def batches(scenes: Manifest, store: FeatureStore, seed: int = 0) -> TrainingBatches:
    split = scenes.split("train")
    return TrainingBatches(store, split, BiGRUText(Vocabulary.of(split.captions)), 16, seed, 0.2, 0.2)


def test_an_epoch_shows_every_caption_once_with_its_own_image(scenes: Manifest, store: FeatureStore) -> None:
    source = batches(scenes, store)
    source.drop_items = source.drop_tokens = 0
    seen: Counter[tuple[int, ...]] = Counter()
    expected: Counter[tuple[int, ...]] = Counter()
    split = scenes.split("train")
    for caption, image in zip(split.captions, split.image_ids[split.caption_image], strict=True):
        expected[int(image), *encode(source.text, [caption])[0]] += 1
    for batch in source.epoch(0):
        for tokens, length, image, items in zip(batch.tokens, batch.lengths, batch.image_ids, batch.items, strict=True):
            seen[int(image), *tokens[:length].tolist()] += 1
            row = int(split.store_rows[split.image_ids.tolist().index(int(image))])
            assert torch.equal(items, torch.from_numpy(store.read(np.array([row]))[0][0]))
    assert seen == expected
    assert sum(seen.values()) == 80


def test_batches_depend_on_seed_epoch_and_step_alone(scenes: Manifest, store: FeatureStore) -> None:
    def all_of(seed: int, epoch: int) -> list[torch.Tensor]:
        return [batch.image_ids for batch in batches(scenes, store, seed).epoch(epoch)]
    one = all_of(0, 1)
    assert all(torch.equal(a, b) for a, b in zip(one, all_of(0, 1), strict=True))
    for other in (all_of(0, 2), all_of(1, 1)):
        assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_what_the_reading_thread_raises_is_raised(scenes: Manifest, store: FeatureStore,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    source = batches(scenes, store)
    monkeypatch.setattr(store, "read", lambda rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(source.epoch(0))


def test_dropped_items_leave_the_others_in_order() -> None:
    items = np.arange(2 * 50).reshape(2, 50, 1).astype(np.float16) + 1
    items[1, 30:] = 0
    chosen = np.random.default_rng(0).random((2, 50)) < 0.2
    out, counts = drop(items, np.array([50, 30]), chosen)
    for row, (kept, count) in enumerate(zip(out[..., 0], counts, strict=True)):
        assert (np.diff(kept[:count]) > 0).all()
        assert set(kept[:count]) <= set(items[row, :, 0])
        assert (kept[count:] == 0).all()
    assert 30 < counts[0] < 50
    assert out.shape[1] == counts.max()
    assert drop(items, np.array([50, 30]), np.zeros((2, 50), bool))[1].tolist() == [50, 30]
    assert drop(items, np.array([50, 30]), np.ones((2, 50), bool))[1].tolist() == [1, 1]


def test_same_image_masks_the_other_captions_of_an_image(scenes: Manifest, store: FeatureStore) -> None:
    batch = next(iter(batches(scenes, store).epoch(0)))
    same = batch.same_image()
    assert same.diagonal().all()
    assert same.sum() > len(same)  # 16 captions of 16 images: some image comes twice
    assert torch.equal(same, same.T)


def test_training_learns_and_selects_on_val(job: training.Job, scenes: Manifest, store: FeatureStore) -> None:
    state = training.train(job)
    assert state.history[-1]["loss"] < state.history[0]["loss"]
    history = pd.read_csv(job.folder / "history.csv")
    assert history["epoch"].tolist() == [0, 1, 2]
    assert history["epochs"].tolist() == [1, 2, 3]
    assert {"loss", "negatives", "align", "uniform", "i2t_r1", "t2i_r10", "rsum"} <= set(history)
    assert state.best == history["rsum"].idxmax()
    steps = pd.read_csv(job.folder / "steps.csv")
    assert steps[["epoch", "step"]].to_numpy().tolist() == [[epoch, step] for epoch in range(3) for step in range(5)]
    assert steps["steps"].tolist() == list(range(1, 16))
    assert {"loss", "negatives", "align", "uniform", "gradient"} <= set(steps)
    for name in ("loss", "negatives", "uniform"):
        np.testing.assert_allclose(steps.groupby("epoch")[name].mean(), history[name], rtol=1e-12)
    head = training.load_head(job.folder, scenes, store)
    _, metadata = checkpoint.load_tensors(job.folder / "best.safetensors")
    assert metadata == {"epoch": state.best}
    images, captions = training.embed(head.model, store, scenes.split("val"), head.text, 3)
    whole = training.embed(head.model, store, scenes.split("val"), head.text, 64)
    np.testing.assert_allclose(images, whole[0], atol=1e-5)
    np.testing.assert_allclose(captions, whole[1], atol=1e-5)
    from pipeline import retrieval
    rsum = retrieval.evaluate(images @ captions.T, scenes.split("val").caption_image).rsum
    assert rsum == pytest.approx(state.history[state.best]["rsum"])


def test_steps_of_another_version_are_not_mixed_in(tmp_path: Path) -> None:
    logs = [{"loss": 2.0, "negatives": 3.0}, {"loss": 1.0, "negatives": 2.0}]
    checkpoint.write_steps(tmp_path, 0, logs)
    checkpoint.write_steps(tmp_path, 1, logs)
    assert pd.read_csv(tmp_path / "steps.csv")["steps"].tolist() == [1, 2, 3, 4]
    (tmp_path / "steps.csv").write_text("epoch,step,loss\n0,0,2.0\n0,1,1.0\n")
    checkpoint.write_steps(tmp_path, 1, logs)
    assert pd.read_csv(tmp_path / "steps.csv")["steps"].tolist() == [3, 4]


class Cut(Exception):
    pass


@pytest.mark.parametrize("moment", [(0, 3), (1, 0), (1, 4), (2, 2)])
def test_cut_anywhere_and_resumed_it_is_bit_identical(job: training.Job, tmp_path: Path,
                                                      moment: tuple[int, int]) -> None:
    whole = replace(job, folder=tmp_path / "whole")
    training.train(whole)

    def cut(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == moment:
            raise Cut

    with pytest.raises(Cut):
        training.train(job, on_step=cut)
    training.train(job)
    assert tree(job.folder) == tree(whole.folder)


def test_head_json_says_which_machines_trained_it(job: training.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == (1, 2):
            raise Cut

    def made_with() -> list[dict[str, object]]:
        described: dict[str, list[dict[str, object]]] = json.loads((job.folder / "head.json").read_text())
        return described["made_with"]

    first = machine.record()
    assert first.keys() == {"torch", "processor", "threads", "products"}
    for _ in range(2):  # going on where one was, it is named once
        with pytest.raises(Cut):
            training.train(job, on_step=cut)
        assert made_with() == [first]
    products.use("onednn")
    training.train(job)
    assert made_with() == [first, first | {"products": "onednn"}]
    products.use("default")
    before = tree(job.folder)
    training.train(job)  # it is finished: this machine has no part in it
    assert tree(job.folder) == before


@pytest.mark.parametrize("kind", ["default", "onednn"])
def test_the_same_seed_gives_the_same_head_whatever_multiplies(job: training.Job, kind: products.Kind,
                                                               tmp_path: Path) -> None:
    products.use(kind)
    again = replace(job, folder=tmp_path / "again")
    training.train(job)
    training.train(again)
    assert tree(job.folder) == tree(again.folder)


def test_half_precision_that_is_slow_here_is_refused_before_anything_is_written(
        job: training.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(job, training=job.training.model_copy(update={"precision": "bf16"}))
    monkeypatch.setattr(half, "slowdown", lambda precision: 499.0)
    with pytest.raises(InputError, match="precision bf16: this CPU multiplies 499 times slower"):
        training.train(short)
    assert not job.folder.exists()
    monkeypatch.setattr(half, "slowdown", lambda precision: 0.5)
    trained = training.train(short)
    monkeypatch.setattr(half, "slowdown", lambda precision: 499.0)
    assert training.train(short) == trained  # it is finished


def test_a_finished_head_is_left_as_it_is_and_another_refused(job: training.Job) -> None:
    training.train(job)
    before = tree(job.folder)
    assert training.train(job).epochs == 3
    assert tree(job.folder) == before
    other = replace(job, recipe=job.recipe.model_copy(update={"learning_rate": 0.001}))
    with pytest.raises(InputError, match=r"trained otherwise \(recipe_settings\)"):
        training.train(other)
    assert tree(job.folder) == before
    training.train(replace(other, if_changed="redo"))
    assert json.loads((job.folder / "head.json").read_text())["recipe_settings"]["learning_rate"] == 0.001


def test_where_it_was_trained_is_no_part_of_a_head(job: training.Job, scenes: Manifest, store: FeatureStore) -> None:
    training.train(replace(job, training=job.training.model_copy(update={"pieces": 2})))
    before = tree(job.folder)
    elsewhere = job.training.model_copy(update={"device": "cuda", "processes": 4})
    assert training.train(replace(job, training=elsewhere)).epochs == 3  # it is finished: nothing is to be done there
    assert tree(job.folder) == before
    described = json.loads((job.folder / "head.json").read_text())
    assert described["aside"].items() >= {"device": "cpu", "pieces": 2, "processes": 1}.items()
    described["aside"]["device"] = "cuda"  # as a head from another machine
    (job.folder / "head.json").write_text(json.dumps(described))
    training.load_head(job.folder, scenes, store, "cpu")
    for device in ("nowhere", "meta"):
        with pytest.raises(InputError, match=f"device '{device}' is not here"):
            training.load_head(job.folder, scenes, store, device)
        with pytest.raises(InputError, match=f"device '{device}' is not here"):
            training.train(replace(job, training=job.training.model_copy(update={"device": device, "epochs": 4}),
                                   folder=job.folder / device))
    with pytest.raises(InputError, match="device 'nowhere' is not here"):
        training.launch(2, "nowhere")


def test_seeds_differ(job: training.Job, tmp_path: Path) -> None:
    training.train(job)
    training.train(replace(job, seed=1, folder=tmp_path / "other"))
    assert (job.folder / "best.safetensors").read_bytes() != (tmp_path / "other" / "best.safetensors").read_bytes()


def test_divergence_is_said(job: training.Job) -> None:
    wild = replace(job, recipe=job.recipe.model_copy(update={"learning_rate": 1e38, "gradient_clip": 1e38}))
    with pytest.raises(InputError, match=r"nan|NaN|finite"):
        training.train(wild)


def test_heads_that_do_not_belong_are_refused(job: training.Job, scenes: Manifest, store: FeatureStore) -> None:
    with pytest.raises(InputError, match="no head there"):
        training.load_head(job.folder, scenes, store)
    training.train(job)
    shorter = Manifest(scenes.table.iloc[5:], "sample", scenes.images_folder)
    with pytest.raises(InputError, match="another manifest"):
        training.load_head(job.folder, shorter, store)
    words = job.folder / "text" / "vocabulary.json"
    text = words.read_text()
    words.write_text(text.replace("]", ', "newword"]'))
    with pytest.raises(InputError, match="not the vocabulary"):
        training.load_head(job.folder, scenes, store)
    words.write_text(text)
    (job.folder / "best.safetensors").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not a readable checkpoint"):
        training.load_head(job.folder, scenes, store)


@pytest.mark.parametrize("lost", ["best.safetensors", "head.json"])
def test_training_is_not_thrown_away_unasked(job: training.Job, lost: str) -> None:
    training.train(job)
    (job.folder / lost).unlink()
    before = tree(job.folder)
    with pytest.raises(InputError, match=f"has lost {lost}; put that back, or --if-changed redo"):
        training.train(job)
    assert tree(job.folder) == before


@pytest.mark.parametrize("lost", ["best.safetensors", "head.json", "text", "text/vocabulary.json"])
def test_what_is_lost_of_a_head_is_made_again(job: training.Job, scenes: Manifest, store: FeatureStore,
                                              lost: str) -> None:
    training.train(job)
    before = tree(job.folder)
    shutil.rmtree(job.folder / lost) if lost == "text" else (job.folder / lost).unlink()
    with pytest.raises(InputError, match="train"):
        training.load_head(job.folder, scenes, store)
    training.train(replace(job, if_changed="redo"))
    assert tree(job.folder) == before


def test_a_checkpoint_that_lacks_weights_is_refused(job: training.Job) -> None:
    training.train(job)
    tensors, metadata = checkpoint.load_tensors(job.folder / "last.safetensors")
    metadata["history"] = metadata["history"][:1]
    for gone in ("model.image_pooling.W_tok", "optimizer.0.exp_avg"):
        checkpoint.save_tensors(job.folder / "last.safetensors",
                                {name: value for name, value in tensors.items() if name != gone}, metadata)
        with pytest.raises(InputError, match="does not hold all of the head; delete the folder"):
            training.train(job)


def test_an_unfinished_head_is_refused(job: training.Job, scenes: Manifest, store: FeatureStore) -> None:
    def cut(epoch: int, step: int, log: object) -> None:
        if epoch == 2:
            raise Cut

    with pytest.raises(Cut):
        training.train(job, on_step=cut)
    with pytest.raises(InputError, match="not finished"):
        training.load_head(job.folder, scenes, store)


@pytest.fixture
def copied(job: training.Job, tmp_path: Path) -> training.Job:
    """The job with a store of its own, whose bytes may be changed."""
    shutil.copytree(job.source.path, tmp_path / "region.zarr")
    return replace(job, source=FeatureStore(tmp_path / "region.zarr"))


def change(job: training.Job, array: str, told: bool = False) -> Path:
    """Change a bit of an array of the first shard, and `told`, what the ledger says of it."""
    dimensions = len(job.source.layout.arrays()[array][0]) + 1  # type: ignore[attr-defined]
    file = ledger.shard_file(job.source.path, array, 0, dimensions)
    content = bytearray(file.read_bytes())
    content[1] ^= 1
    file.write_bytes(content)
    entry = ledger.read(job.source.path, 0)
    assert entry is not None
    if told:
        ledger.write(job.source.path, replace(entry, checksums=entry.checksums | {array: ledger.checksum(file)}))
    return file


@pytest.mark.parametrize("array", ["features", "counts"])
def test_features_whose_bytes_changed_are_not_trained_on(copied: training.Job, array: str) -> None:
    file = change(copied, array)
    with pytest.raises(StoreError, match="its bytes are not those that were written") as error:
        training.train(copied)
    assert str(file) in str(error.value)
    assert not (copied.folder / "last.safetensors").exists()


def test_a_head_on_other_bytes_of_the_same_features_is_another(copied: training.Job) -> None:
    training.train(copied)
    change(copied, "features", told=True)
    now = replace(copied, source=FeatureStore(copied.source.path))  # a job knows its source's bytes once
    assert now.source.identity == copied.source.identity
    with pytest.raises(InputError, match="trained otherwise \\(the bytes of its features\\)"):
        training.train(now)
    best = (now.folder / "best.safetensors").read_bytes()
    training.train(replace(now, if_changed="redo"))
    assert (now.folder / "best.safetensors").read_bytes() != best


def test_a_head_from_before_bytes_were_recorded_is_left_as_it_is(copied: training.Job) -> None:
    training.train(copied)
    said = json.loads((copied.folder / "head.json").read_text())
    del said["content"]
    (copied.folder / "head.json").write_text(json.dumps(said))
    change(copied, "features", told=True)
    before = tree(copied.folder)
    training.train(replace(copied, source=FeatureStore(copied.source.path)))
    assert tree(copied.folder) == before

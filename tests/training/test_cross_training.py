"""Cross-encoders in training: each recipe learns the scenes, goes on where it stopped, and records
what it rests on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from folders import tree
from tiny_bert import tiny_bert

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.recipe import Ance, Pairs
from pipeline.make import heads, text as texts, training
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads.sides import Side
from pipeline.make.training import scoring
from pipeline.make.training.optimizer import TrainingPrecision, set_rate
from pipeline.make.training.pairs import AnceStep, PairBatch, PairStep, near_triplet, nearest
from pipeline.make.training.source import stored
from pipeline.make.training.step import LateStep, TrainingStep
from pipeline.make.training.tasks import Rounds, Tasks

SMALL = ("batch_size=16", "epochs=2", "steps=4", "decay_epoch=1")
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    (
        *(f"training.sample.{change}" for change in SMALL),
        "recipes.emb.learning_rate=0.003",
        "recipes.ce.learning_rate=0.003",
        "recipes.join.learning_rate=0.003",
        "recipes.ce-listwise.learning_rate=0.003",
    ),
)

Make = Callable[..., training.TrainingJob]


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"), layers=1)


@pytest.fixture
def make(scenes: Manifest, store: FeatureStore, bert: Path, tmp_path: Path) -> Make:
    def job(
        recipe: str, sizes: dict[str, Any] | None = None, **changes: Any
    ) -> training.TrainingJob:
        named = SETTINGS.recipe(recipe).model_copy(update=changes)
        return training.TrainingJob(
            scenes,
            stored(store.path, scenes, named),
            "region",
            "bert",
            recipe,
            named,
            SETTINGS.training_of("sample").model_copy(update={"bert": str(bert), **(sizes or {})}),
            0,
            tmp_path / recipe,
        )

    return job


@pytest.mark.parametrize("recipe", ["emb", "ce", "join", "join-ance", "emb-tance", "join-tance"])
def test_a_recipe_goes_on_where_it_stopped(make: Make, recipe: str, tmp_path: Path) -> None:
    job = make(recipe, {"epochs": 2, "steps": 4}, pairs=Pairs(hard=0.5, val_images=4))

    def stop(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == (2, 1):
            raise Stopped

    with pytest.raises(Stopped):
        training.train(job, on_step=stop)
    whole = replace(job, folder=tmp_path / "whole")
    state = training.train(job)
    training.train(whole)
    assert tree(job.folder) == tree(whole.folder)
    assert 0 <= state.history[-1]["RSUM"] <= 600


@pytest.mark.parametrize("task", ["emb", "ce", "ance"])
def test_every_task_learns_the_batch_that_it_sees_again(
    make: Make, scenes: Manifest, task: str
) -> None:
    job = make("join-tance", pairs=Pairs(hard=0.0))
    text = texts.kind("bert").learn([], job.training)
    torch.manual_seed(0)
    model = heads.build(job.recipe, job.feature, job.source.width, text, job.training, None).eval()
    tasks = Tasks.of(job, model, "cpu")
    set_rate(tasks.update.optimizer, 0.001)
    rounds = Rounds(job, scenes.split("train"), text, keep_first=False)
    rounds.find_nearest(model, tasks.update.precision)
    batches = next(iter(rounds.epoch(0)))
    batch = batches[list(tasks.order).index(task)]
    losses = [tasks.steps[task](batch)["loss"] for _ in range(6)]
    assert losses[-1] < losses[0] - 5e-4


def test_joint_training_is_selected_by_the_mean_of_both(make: Make) -> None:
    state = training.train(make("join"))
    row = state.history[0]
    assert row["RSUM"] == pytest.approx((row["emb RSUM"] + row["ce RSUM"]) / 2)
    assert {"ce_loss", "ce_first", "loss", "violations"} <= set(row)


def test_listwise_starts_from_the_embeddings_that_find_its_negatives(
    make: Make, scenes: Manifest
) -> None:
    emb, job = make("emb"), make("ce-listwise", {"epochs": 1})
    job = replace(job, start=emb.folder)
    with pytest.raises(InputError, match="no head there; train it with"):
        training.train(job)
    training.train(emb)
    rates: list[float] = []
    state = training.train(job, on_step=lambda epoch, step, log: rates.append(log["first"]))
    assert len(state.history) == 1
    head = training.HeadArtefact.open(job.folder)
    assert head.record.made_from["start"] == training.HeadArtefact.open(emb.folder).reference
    assert head.facts.scorer == "cross"
    longer = replace(
        job, training=job.training.model_copy(update={"epochs": 1, "steps": 1}), if_changed="redo"
    )
    before = training.Head.open(emb.folder).model
    frozen = replace(longer, recipe=longer.recipe.model_copy(update={"learning_rate": 1e-12}))
    training.train(frozen)
    after = training.Head.open(frozen.folder).model
    for name, weight in before.state_dict().items():
        np.testing.assert_allclose(after.state_dict()[name].numpy(), weight.numpy(), atol=1e-6)
    other = make(
        "ce-listwise", architecture=settings.ArchitectureSettings(name="cross", image_norm=True)
    )
    with pytest.raises(InputError, match="give both recipes the same architecture"):
        training.train(replace(other, start=emb.folder, folder=job.folder / "other"))


def test_a_head_finds_its_negatives_anew_before_every_epoch(
    make: Make, scenes: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    split, rng = scenes.split("train"), np.random.default_rng(0)
    monkeypatch.setattr(
        scoring,
        "embed",
        lambda *given: [  # of a head that has moved on
            rng.normal(size=(len(ids), 4)).astype(np.float32)
            for ids in (split.image_ids, split.caption_ids)
        ],
    )
    job, found = make("ce", pairs=Pairs(hard=1.0, nearest=2)), []
    rounds = Rounds(job, split, texts.kind("bert").learn([], job.training), keep_first=False)
    for _ in range(2):
        rounds.find_nearest(None, TrainingPrecision("fp32", "cpu"))  # type: ignore[arg-type]
        assert rounds.nearest is not None
        found.append(rounds.nearest.images)
    assert not np.array_equal(*found)


def test_another_head_may_find_the_negatives(
    make: Make, scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    retriever = training.TrainingJob(
        scenes,
        store,
        "region",
        "bigru",
        "vse_pp",
        SETTINGS.recipe("vse_pp"),
        SETTINGS.training_of("sample"),
        0,
        tmp_path / "retriever",
    )
    training.train(retriever)
    job = replace(
        make("ce", {"epochs": 1}, pairs=Pairs(hard=1.0, retriever="retriever", val_images=4)),
        retriever=retriever.folder,
    )
    training.train(job)
    assert training.HeadArtefact.open(job.folder).record.made_from["retriever"].name == "retriever"
    with pytest.raises(InputError, match="need a head that reads the stored grid"):
        training.train(replace(job, feature="grid", folder=tmp_path / "grid"))


def test_steps_make_epochs_of_their_own_length(make: Make) -> None:
    seen: list[tuple[int, int]] = []
    training.train(
        make("emb", {"steps": 10}), on_step=lambda epoch, step, log: seen.append((epoch, step))
    )
    assert seen == [(epoch, step) for epoch in (1, 2) for step in range(1, 6)]


def test_boxes_are_part_of_what_it_reads_and_may_be_left_out(make: Make) -> None:
    job = make("emb", {"epochs": 1})
    training.train(job)
    assert training.HeadArtefact.open(job.folder).facts.width == job.source.layout.dimension + 6
    without = make(
        "emb", {"epochs": 1}, architecture=settings.ArchitectureSettings(name="cross", boxes=False)
    )
    with pytest.raises(InputError, match=r"recipe\.architecture\.boxes was nothing, is False"):
        training.train(without)
    training.train(replace(without, folder=job.folder / "other"))


def test_only_an_architecture_that_scores_pairs_is_trained_to(make: Make) -> None:
    job = make("ce", architecture=settings.ArchitectureSettings(name="two_tower"))
    with pytest.raises(InputError, match="architecture two_tower does not score pairs"):
        training.train(job)


def test_a_round_takes_its_tasks_in_turn(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    read: list[Any] = []
    for kind, task in ((TrainingStep, "emb"), (PairStep, "ce"), (AnceStep, "ance")):

        def step(self: Any, batch: Any, task: str = task, before: Any = kind.__call__) -> Any:
            done.append(task)
            read.append(batch)
            return before(self, batch)

        monkeypatch.setattr(kind, "__call__", step)
    state = training.train(make("join-tance", {"epochs": 1}))
    assert done[:8] == ["emb", "ce", "ance", "ce"] * 2
    assert {"loss", "ce_loss", "ance_loss", "ance_violations", "emb RSUM", "ce RSUM"} <= set(
        state.history[0]
    )
    for place, length in enumerate(
        read[0].captions.counts
    ):  # other negatives of the same positives
        own = [read[each].captions.values[place, :length] for each in (0, 1, 3)]
        assert torch.equal(own[0], own[1])
        assert torch.equal(own[0], own[2])
    assert not torch.equal(read[1].captions.values, read[3].captions.values) or not torch.equal(
        read[1].images.values, read[3].images.values
    )


def test_a_round_may_draw_wrong_pairs_twice_without_near_negatives(make: Make) -> None:
    state = training.train(make("join", {"epochs": 1}, tasks=["emb", "ce", "ce"]))
    assert {"loss", "ce_loss"} <= set(state.history[0])


def test_near_negatives_are_of_the_nearest_and_wrong(make: Make, scenes: Manifest) -> None:
    job = make("emb-tance", pairs=Pairs(nearest=3), ance=Ance(batch=4, negatives=2))
    split, text = scenes.split("train"), texts.kind("bert").learn([], job.training)
    rounds = Rounds(job, split, text, False)
    rng = np.random.default_rng(0)
    images, captions = (
        rng.standard_normal((size, 4)) for size in (len(split.image_ids), len(split.captions))
    )
    rounds.nearest = nearest(images, captions, split.caption_image, 3)
    first = next(iter(rounds.epoch(0)))[1]
    assert (first.image.shape, first.caption.shape) == ((4, 3), (4, 3))
    assert (first.image[:, 0] == first.caption[:, 0]).all()
    assert first.image[:, 0].tolist() == [0, 1, 2, 3]
    assert (first.image[:, 1:] >= 4).all()
    assert (first.image[:, 1] != first.image[:, 2]).all()
    store = {
        features.tobytes(): row for row, features in enumerate(job.source.read(split.store_rows)[0])
    }
    rows = [store[np.asarray(items).tobytes()] for items in first.images.values]
    for own, near in enumerate(first.image[:, 1:]):
        assert {rows[each] for each in near} <= {
            int(each) for each in range(len(split.image_ids))
        } - {rows[own]}


def test_the_loss_of_near_negatives_by_hand() -> None:
    right, images, captions = (
        torch.tensor([0.5]),
        torch.tensor([[0.6, 0.1]]),
        torch.tensor([[0.45, 0.5]]),
    )
    assert near_triplet(right, images, captions, 0.1)[:, 0].tolist() == pytest.approx(
        [0.1, (0.05 + 0.1) / 2]
    )


@pytest.mark.parametrize(("recipe", "task"), [("emb-tance", "ance"), ("ce", "ce")])
def test_pieces_of_any_sizes_give_the_same_gradients(make: Make, recipe: str, task: str) -> None:
    found = []
    for pieces in (1, 2, 3):  # of 5; 3 and 2; 2, 2 and 1 pairs
        job = make(recipe, {"pieces": pieces}, ance=Ance(batch=5, negatives=2))
        text = texts.kind("bert").learn([], job.training)
        torch.manual_seed(0)
        model = heads.build(
            job.recipe, job.feature, job.source.width, text, job.training, None
        ).eval()
        step = Tasks.of(job, model, "cpu").steps[task]
        generator = torch.Generator().manual_seed(1)
        batch = PairBatch(
            Side(torch.randn(9, 3, job.source.width, generator=generator), torch.full((9,), 3)),
            Side(torch.randint(5, 20, (9, 4), generator=generator), torch.full((9,), 4)),
            *[torch.tensor([[0, 5, 6], [1, 6, 7], [2, 7, 8], [3, 5, 8], [4, 6, 8]])] * 2,
        )
        log = step(batch)
        found.append(
            (
                log["loss"],
                torch.cat(
                    [
                        weight.grad.flatten()
                        for weight in model.parameters()
                        if weight.grad is not None
                    ]
                ),
            )
        )
    (loss, gradients), *in_pieces = found
    for other_loss, other_gradients in in_pieces:
        assert other_loss == pytest.approx(loss, abs=1e-6)
        torch.testing.assert_close(other_gradients, gradients, atol=1e-5, rtol=1e-3)


def test_ance_goes_with_embeddings(make: Make) -> None:
    with pytest.raises(InputError, match="needs the task emb"):
        settings.load(
            Path(__file__).parents[2] / "params.yaml", ("recipes.ce.tasks=[ance, ce]",)
        ).recipe("ce")
    with pytest.raises(InputError, match="for the architecture cross"):
        training.train(make("vse_pp", tasks=["emb", "ance"]))


@pytest.mark.parametrize("recipe", ["ce", "emb", "late"])
def test_the_features_network_is_not_trained(make: Make, recipe: str) -> None:
    job = make(recipe)
    text = texts.kind("bert").learn([], job.training)
    with pytest.raises(InputError, match="reads stored features; leave out finetune"):
        heads.build(
            job.recipe, job.feature, job.source.width, text, job.training, torch.nn.Linear(2, 2)
        )  # type: ignore[arg-type]


@pytest.mark.parametrize(("pieces", "processes"), [(2, 1), (1, 2)])
def test_late_interaction_compares_whole_batches(pieces: int, processes: int) -> None:
    with pytest.raises(InputError, match=r"set training\.NAME\.pieces and processes to 1"):
        LateStep(
            None,
            SimpleNamespace(processes=SimpleNamespace(count=processes), pieces=pieces),  # type: ignore[arg-type]
            None,
            False,
        )  # type: ignore[arg-type]

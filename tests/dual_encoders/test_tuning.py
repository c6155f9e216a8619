"""Dual encoders trained on, with narrow random towers: what learns, what is kept, and the result as
an encoder.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import forged
import numpy as np
import pytest
import tiny_dual_encoders
import torch
import transformers
from folders import tree
from tuned_encoders import (
    CAPTIONS,
    PICTURES,
    check_adapters_learn,
    check_merged_adapters,
    check_what_changes,
    compared,
    exported,
    gradients,
    job_of,
    train,
    tuning,
)

from pipeline.foundation.artefacts import Record
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders import Usage
from pipeline.make.dual_encoders.tuning.course import TuningCourse
from pipeline.make.dual_encoders.tuning.job import TuningJob
from pipeline.make.dual_encoders.tuning.network import Scaled
from pipeline.make.dual_encoders.tuning.tuned import export
from pipeline.make.dual_encoders.tuning.weights import Weights
from pipeline.make.heads.objectives.base import Objective

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("encoders_read_once")]


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dual_encoders.clip(tmp_path_factory.mktemp("clip") / "tiny-clip")


@pytest.fixture
def job(clip: Path, scenes: Manifest, tmp_path: Path) -> TuningJob:
    return job_of(f"clip:{clip}", scenes, tmp_path)


@pytest.fixture(scope="module")
def trained(clip: Path, scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `job` makes."""
    made = job_of(f"clip:{clip}", scenes, tmp_path_factory.mktemp("trained"))
    train(made)
    return made.folder


@pytest.fixture
def finished_job(job: TuningJob, trained: Path) -> TuningJob:
    """The job whose tuned encoder is there: a copy, which a test may change."""
    shutil.copytree(trained, job.folder)
    return job


@pytest.mark.parametrize("name", ["projections", "blocks", "lora", "all"])
def test_what_is_chosen_changes_and_nothing_else(
    name: str, clip: Path, scenes: Manifest, tmp_path: Path
) -> None:
    check_what_changes(job_of(f"clip:{clip}", scenes, tmp_path, name))


def model_of(kind: str, tmp_path: Path) -> str:
    if kind == "vision_text":
        return f"vision_text:{tiny_dual_encoders.vision_text(tmp_path / kind)}"
    named, write = tiny_dual_encoders.FOLDERS[kind]
    return f"{named}:{write(tmp_path / kind)}"


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_every_adapter_learns_by_the_second_step(
    kind: str, scenes: Manifest, tmp_path: Path
) -> None:
    # q, k, v, out_proj, fc1 and fc2 of each block
    check_adapters_learn(job_of(model_of(kind, tmp_path), scenes, tmp_path, "lora"), 6)


def test_pieces_have_the_gradients_of_the_whole_batch(job: TuningJob) -> None:
    job = replace(job, recipe=tuning("all"))
    whole, pieces = gradients(job, 1), gradients(job, 4)
    assert whole.keys() == pieces.keys()
    assert "logit_scale" in whole
    for name, gradient in whole.items():
        scale = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(
            pieces[name] / scale, gradient / scale, atol=1e-6, rtol=0, msg=name
        )


def test_pieces_with_dropout_have_the_gradients_of_the_same_pieces_in_one_graph(
    job: TuningJob,
) -> None:
    recipe = tuning("lora", "weights.dropout=0.5")
    course = TuningCourse(replace(job, recipe=recipe.model_copy(update={"pieces": 4})), job.open())
    course.model.train()
    with torch.no_grad():  # at their start the adapters add nothing
        for name, weight in course.model.network.named_parameters():
            if ".lora_B" in name:
                weight.normal_(std=0.3, generator=torch.Generator().manual_seed(1))
    batch = next(iter(course.batches.epoch(0)))

    def taken() -> dict[str, torch.Tensor]:
        found = {
            name: weight.grad
            for name, weight in course.model.network.named_parameters()
            if weight.grad is not None
        }
        course.update.optimizer.zero_grad(set_to_none=True)
        return found

    torch.manual_seed(3)
    course.step.gradients(batch)
    replayed = taken()
    for seed, equal in ((3, True), (4, False)):
        torch.manual_seed(seed)
        sides = [
            (course.model.embed_images(piece.images), course.model.embed_captions(piece.captions))
            for piece in batch.split(4)
        ]
        images, captions = (torch.cat(side) for side in zip(*sides, strict=True))
        course.objective(
            images @ captions.T, batch.images.ids[:, None] == batch.images.ids
        ).backward()
        one_graph = taken()
        assert replayed.keys() == one_graph.keys()
        furthest = max(
            float((replayed[name] - gradient).abs().max()) / max(1.0, float(gradient.abs().max()))
            for name, gradient in one_graph.items()
        )  # of gradients above 1 a share: float32 has 7 digits
        assert (furthest < 1e-6) == equal, furthest


@pytest.mark.parametrize("setting", ["fixed", "trained"])
def test_the_scale_is_trained_where_the_setting_says_so(setting: str, job: TuningJob) -> None:
    job = replace(job, recipe=tuning("lora", f"logit_scale={setting}"))
    before = dual_encoders.load(job.model, Usage()).network.logit_scale
    train(job)
    after = dual_encoders.load(f"tuned:{job.folder}", Usage()).network.logit_scale
    assert torch.equal(before, after) == (setting == "fixed")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("triplet", {}),
        ("adopt", {}),
        ("sigmoid", {"temperature": 0.1, "bias": -5.0}),
        ("matryoshka", {"objective": "triplet"}),
    ],
)
def test_other_objectives(name: str, options: dict[str, float], job: TuningJob) -> None:
    changes = [f"objective={ {'name': name, **options} }", "logit_scale=unused", "epochs=1"]
    state = train(replace(job, recipe=tuning("projections", *changes)))
    assert np.isfinite(state.history[0]["loss"])


def test_the_models_scale_is_for_objectives_that_take_any_scale() -> None:
    with pytest.raises(
        InputError, match="needs an objective of infonce or sigmoid with temperature: 1"
    ):
        tuning("projections", "objective={name: adopt}")


def test_both_sides_have_length_1_in_a_loss(job: TuningJob) -> None:
    course = TuningCourse(job, job.open())
    batch = next(iter(course.batches.epoch(0)))
    with torch.no_grad():
        course.model.network.visual_projection.weight *= 3
        course.model.network.text_projection.weight *= 3
        for vectors in (
            course.model.embed_images(batch.images),
            course.model.embed_captions(batch.captions),
        ):
            torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors)))


@pytest.mark.specification
def test_similarities_are_scaled_by_100_at_most_and_shifted_by_the_bias() -> None:
    seen: list[torch.Tensor] = []

    class Plain(Objective):
        def loss(self, similarity: torch.Tensor, negatives: torch.Tensor) -> torch.Tensor:
            seen.append(similarity)
            return similarity.sum()

    similarity, negatives = torch.tensor([[0.5, -0.25]]), torch.zeros(1, 2)
    for scale, bias, expected in (
        (50.0, None, [25, -12.5]),
        (200.0, None, [50, -25]),
        (50.0, -10.0, [15, -22.5]),
    ):
        shift = None if bias is None else torch.nn.Parameter(torch.tensor(bias))
        scaled = Scaled(Plain(), torch.nn.Parameter(torch.tensor(scale).log()), shift)
        scaled.loss(similarity, negatives)
        torch.testing.assert_close(seen.pop().detach(), torch.tensor([expected], dtype=torch.float))


def test_cut_and_resumed_the_weights_are_bit_identical(job: TuningJob, tmp_path: Path) -> None:
    job = replace(job, recipe=tuning("lora", "weights.dropout=0.2"))
    train(job)
    again = replace(job, folder=tmp_path / "again")

    def cut(epoch: int, step: int, log: Any) -> None:
        if (epoch, step) == (2, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(again, on_step=cut)
    with pytest.raises(InputError, match="no finished tuned encoder"):
        dual_encoders.load(f"tuned:{again.folder}", Usage())
    train(again)
    assert tree(again.folder) == tree(job.folder)


def test_its_record_says_what_it_was_made_from_and_again_there_is_nothing_to_do(
    finished_job: TuningJob,
) -> None:
    job = finished_job
    record = Record.model_validate_json((job.folder / "record.json").read_text())
    assert record.made_from.keys() == {"manifest", "base", "photographs"}
    assert record.request["tuning"]["weights"] == {"name": "projections"}
    assert record.facts == {"base": job.model, "trained_on": "sample"}

    def refuse(epoch: int, step: int, log: Any) -> None:
        raise AssertionError

    train(job, on_step=refuse)
    with pytest.raises(InputError, match=r"learning_rate was 0\.01, is 0\.02"):
        train(replace(job, recipe=tuning("projections", "learning_rate=0.02")), on_step=refuse)


@pytest.mark.specification
def test_test_is_never_read(job: TuningJob, scenes: Manifest, tmp_path: Path) -> None:
    folder = tmp_path / "without-test"
    used = scenes.images[scenes.images["split"] != "test"]["file"]
    for name in used:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(scenes.images_folder / name, folder / name)
    assert train(replace(job, images=folder)).epochs == 2


def test_a_copy_finds_its_base_and_refuses_another(
    job: TuningJob, clip: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(clip, tmp_path / "moved")
    job = replace(job, model=f"clip:{moved}", recipe=tuning("lora"))
    train(job)
    captions = ["a red circle", "blue square above"]
    vectors = dual_encoders.load(f"tuned:{job.folder}", Usage()).embed_captions(captions)
    copied = shutil.copytree(job.folder, tmp_path / "copy")
    shutil.rmtree(moved)
    with pytest.raises(InputError, match="needs the model that it was trained from"):
        dual_encoders.load(f"tuned:{copied}", Usage())
    (copied / "base").symlink_to(clip)
    np.testing.assert_array_equal(
        dual_encoders.load(f"tuned:{copied}", Usage()).embed_captions(captions), vectors
    )
    (copied / "base").unlink()
    other = dual_encoders.load(f"clip:{shutil.copytree(clip, copied / 'base')}", Usage())
    other.network.logit_scale.data.add_(1)
    other.network.save_pretrained(copied / "base")
    with pytest.raises(InputError, match="is not the model that"):
        dual_encoders.load(f"tuned:{copied}", Usage())


def test_a_record_that_no_training_wrote_is_refused(finished_job: TuningJob) -> None:
    job = finished_job
    record = (job.folder / "record.json").read_text()
    lora = {"name": "lora", "rank": 10**9}
    for change in (
        lambda content: content["facts"].pop("base"),
        lambda content: content["facts"].update(trained_on=-1),
        lambda content: content["made_from"].pop("base"),
        lambda content: content["request"].pop("encoder"),
        lambda content: content["request"]["tuning"].update(batch_size=-1),
        lambda content: content["request"]["tuning"].update(weights=lora),
    ):
        (job.folder / "record.json").write_text(record)
        forged.artefact(job.folder, change)
        with pytest.raises(InputError, match="not a tuned encoder of this version"):
            dual_encoders.load(f"tuned:{job.folder}", Usage())


def test_a_choice_must_say_which_weights_it_has() -> None:
    class Silent(Weights):
        """A choice that does not say which weights."""

    with pytest.raises(TypeError, match=r"abstract .*_has"):
        Silent()


def test_weights_of_other_names_are_refused(job: TuningJob) -> None:
    """peft loads an adapter onto another model, or a part of one, without a word."""
    course = TuningCourse(replace(job, recipe=tuning("lora")), job.open())
    state = course.model.state_dict()
    with pytest.raises(RuntimeError, match="are others: text_model"):
        course.model.load_state_dict(
            {name: value for name, value in state.items() if "text_model" not in name}
        )
    with pytest.raises(RuntimeError, match="are others: odd"):
        course.model.load_state_dict({**state, "odd": torch.zeros(1)})


@pytest.mark.specification
def test_merged_adapters_give_the_same_vectors(job: TuningJob) -> None:
    check_merged_adapters(replace(job, recipe=tuning("lora")))


@pytest.mark.parametrize("kind", ["clip", "siglip", "siglip2-naflex", "vision_text"])
def test_transformers_opens_what_is_exported(kind: str, scenes: Manifest, tmp_path: Path) -> None:
    folder = tmp_path / "exported"
    encoder = exported(job_of(model_of(kind, tmp_path), scenes, tmp_path, "lora"), folder)
    network: Any = transformers.AutoModel.from_pretrained(folder)
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(
        PICTURES, return_tensors="pt"
    )
    padding: dict[str, Any] = (
        {"padding": "max_length", "max_length": 12} if "siglip" in kind else {"padding": True}
    )
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        CAPTIONS, return_tensors="pt", **padding
    )
    if "siglip" in kind:
        tokens.pop("attention_mask", None)
    compared(encoder, network.get_image_features(**images), network.get_text_features(**tokens))


def test_captions_are_read_in_the_prompt_of_the_training(job: TuningJob, tmp_path: Path) -> None:
    train(replace(job, prompt="green {}"))
    train(again := replace(job, model=f"tuned:{job.folder}", folder=tmp_path / "twice"))
    for folder in (job.folder, again.folder):
        own, asked, plain = (
            dual_encoders.load(f"tuned:{folder}", usage)
            for usage in (Usage(), Usage("green {}"), Usage("{}"))
        )
        assert own.usage.recorded == asked.usage.recorded
        np.testing.assert_array_equal(own.embed_captions(CAPTIONS), asked.embed_captions(CAPTIONS))
        assert np.abs(own.embed_captions(CAPTIONS) - plain.embed_captions(CAPTIONS)).max() > 1e-3
    assert export(job.folder, own.library, tmp_path / "exported") == "green {}"
    assert json.loads((tmp_path / "exported" / "export.json").read_text())["prompt"] == "green {}"


def test_a_tuned_encoder_is_tuned_once_more(finished_job: TuningJob, tmp_path: Path) -> None:
    job = finished_job
    again = replace(
        job, model=f"tuned:{job.folder}", recipe=tuning("lora"), folder=tmp_path / "twice"
    )
    train(again)
    assert dual_encoders.load(f"tuned:{again.folder}", Usage()).embed_captions(
        ["a circle"]
    ).shape == (1, 8)


def test_more_blocks_than_there_are(job: TuningJob) -> None:
    with pytest.raises(
        InputError, match="expected so many blocks in each of two towers, there are 2 in text_model"
    ):
        train(replace(job, recipe=tuning("blocks", "weights.blocks=3")))

"""A training step: the whole batch's gradients, however the batch is cut; precisions."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.parts import ObjectiveSettings
from pipeline.make.heads import objectives
from pipeline.make.heads.sides import Side
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training import optimizer
from pipeline.make.training.batches import Batch
from pipeline.make.training.optimizer import TrainingPrecision, Update
from pipeline.make.training.processes import Processes
from pipeline.make.training.step import TrainingStep

SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    ("training.sample.dimension=16", "training.sample.word_dimension=8"),
)
PAIRS, ITEMS, WIDTH = 12, 5, 6
OPTIONS: dict[str, dict[str, Any]] = {"matryoshka": {"dimensions": [4, 16], "weights": "share"}}
TEXT = BiGRUText(Vocabulary.of("abcdefghijklmno"))
WORDS = len(TEXT.vocabulary)


def batch(dtype: torch.dtype = torch.float64) -> Batch:
    generator = torch.Generator().manual_seed(1)
    counts = torch.randint(1, ITEMS + 1, (PAIRS,), generator=generator)
    return Batch(
        Side(
            torch.randn(PAIRS, ITEMS, WIDTH, generator=generator, dtype=dtype),
            counts,
            torch.arange(PAIRS) // 2,
        ),
        Side(
            torch.randint(1, WORDS, (PAIRS, 7), generator=generator),
            torch.randint(2, 8, (PAIRS,), generator=generator),
        ),
    )


def same_image(data: Batch) -> Tensor:
    ids = data.images.ids
    assert ids is not None
    return ids[:, None] == ids


def step(
    feature: str = "region",
    objective: str = "triplet",
    pieces: int = 1,
    precision: str = "fp32",
    dtype: torch.dtype = torch.float64,
) -> TrainingStep:
    torch.manual_seed(0)
    recipe = SETTINGS.recipe("vse_infty")
    model = TwoTower(feature, WIDTH, TEXT, recipe, SETTINGS.training_of("sample")).to(dtype).train()
    update = Update(
        optimizer.build(model, recipe),
        TrainingPrecision(precision, "cpu"),
        Processes(),
        pieces,
        2.0,
    )
    options = OPTIONS.get(objective, {})
    return TrainingStep(
        model, update, objectives.build(objective, **options), same_image_negatives=False
    )


def gradients(of: TrainingStep) -> dict[str, Tensor]:
    return {
        name: weight.grad for name, weight in of.model.named_parameters() if weight.grad is not None
    }


def same(one: dict[str, Tensor], other: dict[str, Tensor], **tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(
            value, other[name], msg=lambda text, name=name: f"{name}: {text}", **tolerance
        )


def plain(of: TrainingStep, data: Batch) -> tuple[float, dict[str, Tensor]]:
    """The loss and gradients of the whole batch in one graph, as anybody would write it."""
    images = of.model.embed_images(data.images)
    captions = of.model.embed_captions(data.captions)
    loss = of.objective.of_vectors(images, captions, images @ captions.T, same_image(data))
    loss.backward()
    return float(loss.detach()), gradients(of)


@pytest.mark.parametrize("pieces", [1, 2, 5, 12])
@pytest.mark.parametrize("feature", ["region", "grid"])
@pytest.mark.parametrize("objective", ["triplet", "adopt", "infonce", "matryoshka"])
def test_a_batch_in_pieces_has_the_gradients_of_the_whole(
    feature: str, objective: str, pieces: int
) -> None:
    whole, cut = step(feature, objective), step(feature, objective, pieces)
    loss, expected = plain(whole, batch())
    assert cut.gradients(batch())["loss"] == pytest.approx(loss, rel=1e-6)
    # Similarities and their gradients are float32 in a step, so this is where float64 ends.
    same(gradients(cut), expected, rtol=1e-5, atol=1e-6)
    same(dict(cut.model.named_buffers()), dict(whole.model.named_buffers()), rtol=1e-9, atol=1e-9)


@pytest.mark.specification
def test_a_step_is_no_longer_than_its_clipped_gradients() -> None:
    of = step()
    of.update.optimizer, of.update.gradient_clip = (
        torch.optim.SGD(of.model.parameters(), lr=1.0),
        1e-3,
    )
    before = [weight.detach().clone() for weight in of.model.parameters()]
    assert of(batch())["gradient"] > 1e-3
    moved = [
        weight.detach() - old for weight, old in zip(of.model.parameters(), before, strict=True)
    ]
    assert float(torch.cat([change.flatten() for change in moved]).norm()) == pytest.approx(
        1e-3, rel=1e-3
    )


def test_an_update_clips_at_the_norm_of_its_recipe() -> None:
    recipe = SETTINGS.recipe("vse_infty").model_copy(update={"gradient_clip": 0.7})
    made = Update.of(step().model, recipe, SETTINGS.training_of("sample"), Processes(), "cpu")
    assert made.gradient_clip == 0.7


class Dropped(nn.Module):
    """A text encoder with dropout, and one word's vector for every token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16)
        self.dropout = nn.Dropout(0.5)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        out: Tensor = self.dropout(self.embedding(tokens))
        return out


def test_dropout_repeats_its_draws() -> None:
    cut = step("grid", pieces=3)
    cut.model.text = Dropped().double()  # type: ignore[assignment]
    data = batch()
    torch.manual_seed(5)
    embedded = [
        (cut.model.embed_images(piece.images), cut.model.embed_captions(piece.captions))
        for piece in data.split(3)
    ]
    after = torch.rand(1)
    images, captions = (torch.cat(side) for side in zip(*embedded, strict=True))
    cut.objective(images @ captions.T, same_image(data)).backward()
    expected = {name: value.clone() for name, value in gradients(cut).items()}
    cut.model.zero_grad()
    torch.manual_seed(5)
    cut.gradients(data)
    same(gradients(cut), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(torch.rand(1), after)  # embedding again leaves the generator where it was


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_images_and_captions_at_once_give_the_same_bits(
    pieces: int, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = set()

    def seen(method: Any) -> Any:
        def embed(*given: Any) -> Tensor:
            used.add(threading.get_ident())
            return method(*given)

        return embed

    for method in (TwoTower.embed_images, TwoTower.embed_captions):
        monkeypatch.setattr(TwoTower, method.__name__, seen(method))
    before = torch.get_num_threads()
    found: list[Any] = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        one = step(pieces=pieces, precision=precision, dtype=torch.float32)
        log = one(batch(torch.float32))
        found.append((log, gradients(one), one.model.state_dict()))
    torch.set_num_threads(before)
    assert len(used) >= 2
    assert found[0][0] == found[1][0]
    for alone, apart in zip(found[0][1:], found[1][1:], strict=True):
        same(alone, apart, rtol=0, atol=0)


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_is_near_and_its_weights_stay_float32(precision: str, pieces: int) -> None:
    # A smooth objective: rounding may choose another hardest negative.
    mixed = step(objective="infonce", precision=precision, pieces=pieces, dtype=torch.float32)
    exact = step(objective="infonce", dtype=torch.float32)
    log, expected = mixed(batch(torch.float32)), exact(batch(torch.float32))
    for _ in range(
        20
    ):  # fp16 starts with a scale that overflows, 2^16, and halves it until it does not
        if not math.isfinite(log["gradient"]):
            log = mixed(batch(torch.float32))
    assert log["loss"] == pytest.approx(expected["loss"], rel=0.02)
    assert log["loss"] != expected["loss"]
    assert log["gradient"] == pytest.approx(expected["gradient"], rel=0.05)
    assert {weight.dtype for weight in mixed.model.parameters()} == {torch.float32}


def test_fp16_leaves_out_a_step_that_overflows_and_scales_less() -> None:
    half = step(precision="fp16", dtype=torch.float32)
    before = {
        name: value.clone()
        for name, value in half.model.state_dict().items()
        if "embedding" in name
    }
    scale = half.update.precision.scaler.get_scale()
    data = batch(torch.float32)
    log = half(replace(data, images=replace(data.images, values=data.images.values * 1e30)))
    assert not math.isfinite(log["gradient"])
    assert half.update.precision.scaler.get_scale() < scale
    same({name: value for name, value in half.model.state_dict().items() if name in before}, before)


def test_the_log_tells_how_far_pairs_are_apart() -> None:
    one = step()
    images, captions = (
        one.model.embed_images(batch().images),
        one.model.embed_captions(batch().captions),
    )
    similarity = (images @ captions.T).detach()
    off: Any = similarity[~torch.eye(PAIRS, dtype=torch.bool)]
    log = step().gradients(batch())
    assert log["separation"] == pytest.approx(
        float(similarity.diagonal().mean() - off.mean()), abs=1e-5
    )
    assert log["spread"] == pytest.approx(float(similarity.max() - similarity.min()), abs=1e-5)
    assert log["similarity"] == pytest.approx(float(similarity.mean()), abs=1e-5)


def test_sides_with_dropout_or_a_pretrained_part_are_not_apart() -> None:
    plain, dropping, pretrained = (step().model for _ in range(3))
    assert plain.can_run_in_parallel
    dropping.dropout = nn.Dropout(0.2)  # type: ignore[assignment]
    assert not dropping.can_run_in_parallel
    pretrained.backbone = nn.Linear(2, 2)  # type: ignore[assignment]
    assert not pretrained.can_run_in_parallel


def test_prefixes_longer_than_the_vectors_are_refused() -> None:
    of = step()
    wide = {"name": "matryoshka", "dimensions": [8, 17]}
    recipe = SETTINGS.recipe("vse2ad").model_copy(
        update={"objective": ObjectiveSettings.of(**wide)}
    )
    with pytest.raises(InputError, match=r"prefix of 17 numbers, .* have 16; shorten"):
        TrainingStep.of(of.model, of.update, recipe)

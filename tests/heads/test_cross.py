"""The cross-encoder: what it computes, pair by pair, by the library's own parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_bert import tiny_bert
from torch.nn.functional import normalize
from transformers import AutoModel

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make import heads
from pipeline.make.heads.cross import CrossEncoder
from pipeline.make.heads.sides import Side
from pipeline.make.text.bert import BertText
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
WIDTH = 7


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def cross(checkpoint: Path, **options: Any) -> CrossEncoder:
    training = SETTINGS.training_of("sample").model_copy(update={"bert": str(checkpoint)})
    architecture = settings.ArchitectureSettings(name="cross", **options)
    recipe = SETTINGS.recipe("join").model_copy(update={"architecture": architecture})
    torch.manual_seed(1)
    built = heads.build(recipe, "region", WIDTH, BertText.learn([], training), training)
    assert isinstance(built, CrossEncoder)
    return built.eval()


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    torch.manual_seed(2)
    return {
        "tokens": torch.randint(5, 20, (3, 9)),
        "lengths": torch.tensor([9, 4, 6]),
        "items": torch.randn(4, 5, WIDTH),
        "counts": torch.tensor([5, 2, 1, 4]),
        "caption": torch.tensor([0, 2, 1, 1, 0]),
        "image": torch.tensor([3, 0, 2, 1, 1]),
    }


def scored(model: CrossEncoder, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    logits: torch.Tensor = model(
        Side(batch["tokens"], batch["lengths"]),
        Side(batch["items"], batch["counts"]),
        batch["caption"],
        batch["image"],
    )
    return logits


@pytest.mark.slow
def test_a_pairs_cosine_is_of_words_and_items_that_see_each_other(
    checkpoint: Path, batch: dict[str, torch.Tensor]
) -> None:
    model, bert = (
        cross(checkpoint, pair_score="cosine"),
        AutoModel.from_pretrained(checkpoint).eval(),
    )
    found = scored(model, batch)
    for row, (caption, image) in enumerate(zip(batch["caption"], batch["image"], strict=True)):
        length, count = batch["lengths"][caption], batch["counts"][image]
        words = bert.embeddings(input_ids=batch["tokens"][caption, :length][None])
        items = model.bert.img_embedding(batch["items"][image, :count])[None]
        states = bert.encoder(torch.cat([words, items], 1)).last_hidden_state[0]
        cosine = torch.cosine_similarity(states[:length].mean(0), states[length:].mean(0), dim=0)
        torch.testing.assert_close(found[row, 1] - found[row, 0], cosine / 0.05, atol=1e-4, rtol=0)


@pytest.mark.slow
@pytest.mark.specification
@pytest.mark.parametrize("image_norm", [False, True])
def test_a_pair_is_one_sequence_through_berts_own_parts(
    checkpoint: Path, batch: dict[str, torch.Tensor], image_norm: bool
) -> None:
    model, bert = (
        cross(checkpoint, image_norm=image_norm),
        AutoModel.from_pretrained(checkpoint).eval(),
    )
    batch["items"] *= 0.01  # so that the normalisation's epsilon counts
    found = scored(model, batch)
    for row, (caption, image) in enumerate(zip(batch["caption"], batch["image"], strict=True)):
        words = bert.embeddings(
            input_ids=batch["tokens"][caption, : batch["lengths"][caption]][None]
        )
        items = model.bert.img_embedding(batch["items"][image, : batch["counts"][image]])[None]
        if image_norm:
            items = (
                normalize(items - items.mean(-1, keepdim=True), dim=-1) * 4
            )  # the square root of the width
        states = bert.encoder(torch.cat([words, items], 1)).last_hidden_state
        torch.testing.assert_close(
            found[row], model.classifier(bert.pooler(states))[0], atol=1e-5, rtol=0
        )


def test_padding_and_the_rest_of_a_batch_have_no_effect(
    checkpoint: Path, batch: dict[str, torch.Tensor]
) -> None:
    model = cross(checkpoint)
    found, images = scored(model, batch), model.embed_images(Side(batch["items"], batch["counts"]))
    captions = model.embed_captions(Side(batch["tokens"], batch["lengths"]))
    more = {
        **batch,
        "items": torch.cat([batch["items"], torch.full((4, 3, WIDTH), 9.0)], 1),
        "tokens": torch.cat([batch["tokens"], torch.full((3, 2), 8)], 1),
    }
    for image, count in enumerate(batch["counts"]):
        more["items"][image, count:] = 5.0
    torch.testing.assert_close(scored(model, more), found, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        model.embed_images(Side(more["items"], batch["counts"])), images, atol=1e-5, rtol=0
    )
    longer = model.embed_captions(Side(more["tokens"], batch["lengths"]))
    torch.testing.assert_close(longer, captions, atol=1e-5, rtol=0)
    for row in range(5):
        alone = {**batch, "caption": batch["caption"][[row]], "image": batch["image"][[row]]}
        torch.testing.assert_close(scored(model, alone)[0], found[row], atol=1e-5, rtol=0)


def test_each_dropout_changes_scores_in_training_alone(
    checkpoint: Path, batch: dict[str, torch.Tensor]
) -> None:
    model = cross(checkpoint)
    expected = scored(model, batch)
    dropouts = {
        name: part for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout)
    }
    # The embeddings', the items', the classifier's, and three of each layer.
    assert len(dropouts) == 3 + 3 * len(model.bert.encoder.layer)
    assert {part.p for part in dropouts.values()} == {0.1}
    for part in dropouts.values():
        part.p = 0.0
    for name, part in dropouts.items():
        part.p = 0.5
        assert not torch.allclose(scored(model.train(), batch), expected, atol=1e-5), name
        torch.testing.assert_close(scored(model.eval(), batch), expected)
        part.p = 0.0
    torch.testing.assert_close(scored(model.train(), batch), expected)


@pytest.mark.slow
def test_each_side_alone_is_the_mean_of_all_positions(
    checkpoint: Path, batch: dict[str, torch.Tensor]
) -> None:
    model, bert = cross(checkpoint), AutoModel.from_pretrained(checkpoint).eval()
    own = batch["tokens"][1, :4][None]
    states = bert(own).last_hidden_state
    found = model.embed_captions(Side(batch["tokens"], batch["lengths"]))
    torch.testing.assert_close(found[1], normalize(states[0].mean(0), dim=0), atol=1e-5, rtol=0)
    first = bert.embeddings(input_ids=torch.tensor([[2]]))
    sequence = torch.cat([first, model.bert.img_embedding(batch["items"][1, :2])[None]], 1)
    states = bert.encoder(sequence).last_hidden_state
    found = model.embed_images(Side(batch["items"], batch["counts"]))
    torch.testing.assert_close(found[1], normalize(states[0].mean(0), dim=0), atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("score", ["classifier", "cosine"])
def test_regions_and_pieces_beyond_the_limits_are_cut(
    checkpoint: Path, batch: dict[str, torch.Tensor], score: str
) -> None:
    model, whole = (
        cross(checkpoint, regions=3, pieces=5, pair_score=score),
        cross(checkpoint, pair_score=score),
    )
    tokens = batch["tokens"][:, :5].clone()
    tokens[batch["lengths"] > 5, 4] = model.end  # [CLS], the first three pieces, [SEP]
    cut = {
        **batch,
        "tokens": tokens,
        "lengths": batch["lengths"].clamp(max=5),
        "items": batch["items"][:, :3],
        "counts": batch["counts"].clamp(max=3),
    }
    torch.testing.assert_close(scored(model, batch), scored(whole, cut))
    torch.testing.assert_close(
        model.embed_images(Side(batch["items"], batch["counts"])),
        whole.embed_images(Side(cut["items"], cut["counts"])),
    )
    torch.testing.assert_close(
        model.embed_captions(Side(batch["tokens"], batch["lengths"])),
        whole.embed_captions(Side(cut["tokens"], cut["lengths"])),
    )
    assert not torch.allclose(scored(model, batch), scored(whole, batch), atol=1e-4)
    for wrong in ({"regions": 0}, {"pieces": 2}):
        with pytest.raises(
            ValueError, match=f"architecture cross: {next(iter(wrong))}: Input should be greater"
        ):
            cross(checkpoint, **wrong)


@pytest.mark.slow
def test_half_of_the_layers_are_every_second_one(checkpoint: Path) -> None:
    half, whole = cross(checkpoint, layers=[0, 2]), cross(checkpoint)
    assert len(half.bert.encoder.layer) == 2
    for place, layer in enumerate((0, 2)):
        expected = whole.bert.encoder.layer[layer].state_dict()
        torch.testing.assert_close(half.bert.encoder.layer[place].state_dict(), expected)
    for wrong in ([0, 3], [2, 0], [0, 0]):
        with pytest.raises(
            InputError, match="ascending numbers of the checkpoint's layers, 0 to 2, got"
        ):
            cross(checkpoint, layers=wrong)


def test_half_precision_scores_are_float32(
    checkpoint: Path, batch: dict[str, torch.Tensor]
) -> None:
    model = cross(checkpoint)
    with torch.autocast("cpu", torch.bfloat16):
        found, images = (
            scored(model, batch),
            model.embed_images(Side(batch["items"], batch["counts"])),
        )
    assert found.dtype == images.dtype == torch.float32
    torch.testing.assert_close(found, scored(model, batch), atol=0.05, rtol=0)


def test_a_text_without_word_pieces_and_unknown_options_are_refused(checkpoint: Path) -> None:
    recipe, training = SETTINGS.recipe("ce"), SETTINGS.training_of("sample")
    with pytest.raises(InputError, match="train it with --text bert"):
        heads.build(recipe, "region", WIDTH, BiGRUText(Vocabulary.of("ab")), training)
    with pytest.raises(ValueError, match="option of the architecture cross"):
        cross(checkpoint, depth=2)
    with pytest.raises(ValueError, match="unknown architecture 'tri_tower'"):
        settings.ArchitectureSettings(name="tri_tower")

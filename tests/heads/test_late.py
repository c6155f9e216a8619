"""Late interaction: both forms word by word, whatever the padding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.foundation import settings
from pipeline.make import heads
from pipeline.make.heads.late import LateInteraction
from pipeline.make.heads.sides import Side
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary

TEXT = BiGRUText(Vocabulary.of("abcdefghijklmno"))
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml", ("training.sample.dimension=8",)
)


def late(**options: Any) -> LateInteraction:
    torch.manual_seed(0)
    architecture = settings.ArchitectureSettings(name="late", **options)
    recipe = SETTINGS.recipe("late").model_copy(update={"architecture": architecture})
    built = heads.build(recipe, "grid", 6, TEXT, SETTINGS.training_of("sample"))
    assert isinstance(built, LateInteraction)
    return built.eval()


def best(items: np.ndarray, words: np.ndarray) -> float:
    return float(np.mean([max(word @ item for item in items) for word in words]))


def attended(items: np.ndarray, words: np.ndarray) -> float:
    products = np.maximum(words @ items.T, 0)  # [T, N]
    scaled = 9 * products / np.maximum(np.linalg.norm(products, axis=0), 1e-12)
    weights = np.exp(scaled) / np.exp(scaled).sum(1, keepdims=True)
    seen = weights @ items
    return float(
        np.mean(
            [word @ each / np.linalg.norm(each) for word, each in zip(words, seen, strict=True)]
        )
    )


@pytest.mark.specification
@pytest.mark.parametrize(("form", "by_hand"), [("max", best), ("attention", attended)])
def test_similarities_are_those_of_each_pair_alone(form: str, by_hand: Any) -> None:
    model = late(form=form)
    items, counts = torch.randn(3, 5, 6), torch.tensor([5, 1, 3])
    tokens, lengths = torch.randint(5, 18, (4, 7)), torch.tensor([7, 2, 1, 4])
    with torch.inference_mode():
        (own, _), (words, _) = (
            model.image_parts(Side(items, counts)),
            model.caption_parts(Side(tokens, lengths)),
        )
        found = model.similarity((own, counts), (words, lengths))
        expected = [
            [by_hand(own[i, : counts[i]].numpy(), words[c, : lengths[c]].numpy()) for c in range(4)]
            for i in range(3)
        ]
        torch.testing.assert_close(found, torch.tensor(expected), atol=1e-5, rtol=0)
        image, caption = torch.tensor([0, 2, 1, 1]), torch.tensor([3, 0, 1, 2])
        pairs = model.pairs((own[image], counts[image]), (words[caption], lengths[caption]))
        torch.testing.assert_close(pairs, found[image, caption], atol=1e-6, rtol=0)
        longer = (
            torch.cat([items, torch.full((3, 2, 6), 7.0)], 1),
            torch.cat([tokens, tokens[:, :2]], 1),
        )
        longer[0][1, 1:] = torch.nan
        again = model.similarity(
            model.image_parts(Side(longer[0], counts)),
            model.caption_parts(Side(longer[1], lengths)),
        )
        torch.testing.assert_close(again, found, atol=1e-5, rtol=0)


def test_items_and_words_have_length_1_and_padding_0() -> None:
    model = late()
    items = Side(torch.randn(3, 5, 6), torch.tensor([5, 1, 3]))
    tokens = Side(torch.randint(5, 18, (4, 7)), torch.tensor([7, 2, 1, 4]))
    with torch.inference_mode():
        for parts, side, encode in (
            (model.image_parts, items, model.projection),
            (model.caption_parts, tokens, model.text),
        ):
            vectors, counts = parts(side)
            encoded = encode(side.values, side.counts).numpy()
            assert counts.tolist() == side.counts.tolist()
            for found, plain, count in zip(vectors.numpy(), encoded, counts, strict=True):
                lengths = np.sqrt((plain[:count] ** 2).sum(1, keepdims=True))
                np.testing.assert_allclose(found[:count], plain[:count] / lengths, atol=1e-6)
                assert not found[count:].any()


@pytest.mark.parametrize("form", ["max", "attention"])
def test_gradients_are_finite_with_padding(form: str) -> None:
    model = late(form=form)
    counts, lengths = torch.tensor([2, 1]), torch.tensor([3, 1])
    own = model.image_parts(Side(torch.randn(2, 4, 6), counts))
    model.similarity(
        own, model.caption_parts(Side(torch.randint(5, 18, (2, 5)), lengths))
    ).sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())

"""A recipe's dropout: of word vectors and of projected items, in training alone, of each word
anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make import heads
from pipeline.make.heads.sides import Side
from pipeline.make.text.base import with_dropout
from pipeline.make.text.bigru import BiGRU, BiGRUText
from pipeline.make.text.vocabulary import Vocabulary

TEXT = BiGRUText(Vocabulary.of("abcdefghijklmno"))
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml", ("training.sample.dimension=8",)
)
ITEMS, COUNTS = torch.randn(3, 4, 6), torch.tensor([4, 1, 2])
TOKENS, LENGTHS = torch.randint(5, 20, (3, 7)), torch.tensor([7, 2, 3])


@pytest.mark.parametrize("name", ["vse_pp-video", "late"])
def test_it_changes_both_sides_in_training_alone(name: str) -> None:
    vectors = {}
    for share in (0.0, 0.5):
        torch.manual_seed(0)
        recipe = SETTINGS.recipe(name).model_copy(update={"dropout": share})
        model = heads.build(recipe, "frame", 6, TEXT, SETTINGS.training_of("sample"))
        images, captions = (
            getattr(model, each)
            for each in (
                ("image_parts", "caption_parts")
                if name == "late"
                else ("embed_images", "embed_captions")
            )
        )
        for training in (True, False):
            model.train(training)
            vectors[share, training] = [
                found[0] if isinstance(found, tuple) else found
                for found in (images(Side(ITEMS, COUNTS)), captions(Side(TOKENS, LENGTHS)))
            ]
    for side in (0, 1):
        torch.testing.assert_close(vectors[0.5, False][side], vectors[0.0, False][side])
        assert not torch.allclose(vectors[0.5, True][side], vectors[0.0, True][side])
        torch.testing.assert_close(vectors[0.0, True][side], vectors[0.0, False][side])


def test_two_occurrences_of_a_word_are_not_dropped_alike() -> None:
    torch.manual_seed(0)
    encoder = BiGRU(10, 8)
    encoder.dropout = 0.5
    words, which = encoder._vectors(torch.tensor([7, 7]))
    assert which.tolist() == [0, 1]
    zero = words == 0
    assert 0.3 < zero.float().mean() < 0.7
    assert not torch.equal(zero[0], zero[1])
    kept = ~zero.any(0)
    torch.testing.assert_close(words[0, kept], 2 * encoder.embedding.weight[7, kept])


def test_without_a_share_a_word_is_multiplied_once_and_gradients_are_the_same() -> None:
    found = []
    for share in (0.0, 1e-12):  # so small that nothing is dropped, by the other way of reading
        torch.manual_seed(0)
        encoder = BiGRU(20, 8)
        encoder.dropout = share
        encoder(TOKENS, LENGTHS).square().sum().backward()
        found.append([weight.grad for weight in encoder.parameters()])
    torch.testing.assert_close(*found)


def test_encoders_without_it_refuse_it() -> None:
    with pytest.raises(InputError, match="which only the text encoder bigru has"):
        with_dropout(torch.nn.Linear(1, 1), 0.1)

"""Words, augmentation and the BiGRU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.errors import InputError
from pipeline.text.augment import augment
from pipeline.text.bigru import BiGRU
from pipeline.text.vocabulary import SPECIAL, Vocabulary, tokens


def test_tokens() -> None:
    assert tokens("A dog's ball, 2 RED  cats – naïve!") == ["a", "dog's", "ball", ",", "2", "red", "cats", "–",
                                                           "naïve", "!"]


def test_vocabulary_counts_and_orders() -> None:
    vocabulary = Vocabulary.of(["b a a", "c a b"], minimum_count=2)
    assert vocabulary.words == (*SPECIAL, "a", "b")
    assert vocabulary.encode("A c b") == [1, 5, 3, 6, 2]
    assert Vocabulary.from_json(vocabulary.to_json()).digest == vocabulary.digest
    assert Vocabulary.of(["b b a"]).digest != vocabulary.digest


@pytest.mark.parametrize("text", ["{", "[]", '["a"]', '["<pad>", "<start>", "<end>", "<unk>", "<mask>", "a", "a"]'])
def test_not_a_vocabulary(text: str) -> None:
    with pytest.raises(InputError, match="vocabulary"):
        Vocabulary.from_json(text)


def test_augmentation_changes_the_share_it_is_told() -> None:
    caption = [1, *range(10, 1010), 2]
    rng = np.random.default_rng(0)
    changed = augment(caption, 0.2, mask=4, first_word=5, words=10_000, rng=rng)
    assert (changed[0], changed[-1]) == (1, 2)
    inner = changed[1:-1]
    assert len(inner) == pytest.approx(1000 - 0.4 * 200, abs=30)  # 40 % of the chosen are dropped
    assert inner.count(4) == pytest.approx(0.5 * 200, abs=30)  # 50 % masked
    kept = set(inner) & set(caption)
    assert len(kept) == pytest.approx(800, abs=40)
    assert augment(caption, 0.0, 4, 5, 10_000, rng) == caption
    assert augment([1, 2], 0.9, 4, 5, 10, rng) == [1, 2]
    for _ in range(200):
        assert len(augment([1, 7, 2], 0.99, 4, 5, 10, rng)) == 3  # a caption never becomes empty


def test_bigru_equals_torchs_own_on_packed_captions() -> None:
    torch.manual_seed(0)
    ours = BiGRU(words=20, dimension=6, word_dimension=5)
    theirs = torch.nn.GRU(5, 6, bidirectional=True, batch_first=True)
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        getattr(theirs, name).data = getattr(ours.onward, name).data
        getattr(theirs, f"{name}_reverse").data = getattr(ours.rearward, name).data
    captions, lengths = torch.randint(1, 20, (4, 7)), torch.tensor([7, 1, 3, 5])
    packed = torch.nn.utils.rnn.pack_padded_sequence(ours.embedding(captions), lengths, True, False)
    states, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    expected = states.unflatten(-1, (2, 6)).mean(dim=2)
    got = ours(captions, lengths)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(got[row, :length], expected[row, :length])
    captions[1, 1:] = 0  # other padding, same states
    torch.testing.assert_close(ours(captions, lengths)[1, :1], got[1, :1])


def test_word_embeddings_start_small() -> None:
    weight = BiGRU(100, 4).embedding.weight.detach()
    assert weight.abs().max() <= 0.1
    assert weight.std() == pytest.approx(0.1 / 3**0.5, rel=0.05)

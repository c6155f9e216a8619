"""Words, augmentation and the BiGRU."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make import text as texts
from pipeline.make.text.bigru import BiGRU, BiGRUText
from pipeline.make.text.tokenizers import treebank, words
from pipeline.make.text.tokens import augment, encode
from pipeline.make.text.vocabulary import SPECIAL, Vocabulary

TRAINING = settings.load(Path(__file__).parents[2] / "params.yaml").training_of("sample")


def test_words() -> None:
    assert words("A dog's ball, 2 RED  cats – naïve!") == [
        "a",
        "dog's",
        "ball",
        ",",
        "2",
        "red",
        "cats",
        "–",
        "naïve",
        "!",
    ]


@pytest.mark.specification
@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("The dog's ball.", "the dog 's ball ."),
        ("He can't, I'm told; they'll go", "he ca n't , i 'm told ; they 'll go"),
        ("She'd say we've seen what they're", "she 'd say we 've seen what they 're"),
        ("A t-shirt at 7:30 o'clock...", "a t-shirt at 7 : 30 o'clock ..."),
        ('A sign says "stop" ("go")', "a sign says `` stop '' ( `` go '' )"),
        ("red, white and blue & yellow", "red , white and blue & yellow"),
    ],
)
def test_treebank(caption: str, expected: str) -> None:
    """As NLTK's word_tokenize has it."""
    assert treebank(caption) == expected.split()


@pytest.mark.specification
def test_vocabulary_counts_and_orders() -> None:
    vocabulary = Vocabulary.of(["b a a", "c a b"], minimum_count=2)
    assert vocabulary.words == (*SPECIAL, "a", "b")
    assert vocabulary.split("A c b") == [5, 3, 6]
    assert encode(BiGRUText(vocabulary), ["A c b"]) == [[1, 5, 3, 6, 2]]
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary
    assert Vocabulary.of(["b b a"]).digest != vocabulary.digest
    for captions in (["d b c", "c a"], ["a c", "c b d"]):  # of equal counts: by the alphabet
        assert Vocabulary.of(captions).words == (*SPECIAL, "c", "a", "b", "d")


def test_numbers_are_words_that_may_be_unknown_and_punctuation_marks_are_none() -> None:
    vocabulary = Vocabulary.of(["a dog , 7"])
    assert vocabulary.unknown("3 cats, a dog: 7!") == (["3", "cats"], 5)
    assert vocabulary.unknown("!, : -") == ([], 0)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"words": ["a"], "tokenizer": "words"}',
        '{"words": ["<pad>", "<start>", "<end>", "<unk>", "<mask>", "a", "a"], "tokenizer": "words"}',
        '{"words": ["<pad>", "<start>", "<end>", "<unk>", "<mask>"], "tokenizer": "guess"}',
        '{"words": ["<pad>", "<start>", "<end>", "<unk>", "<mask>", ["a"]], "tokenizer": "words"}',
        "[" * 100_000,
    ],
)
def test_not_a_vocabulary(text: str) -> None:
    with pytest.raises(InputError, match="vocabulary"):
        Vocabulary.from_json(text)


def scan(folder: Path, tree: Any) -> Path:
    (folder / "vocab.json").write_text(json.dumps(tree), encoding="utf-8")
    return folder / "vocab.json"


def test_scans_vocabulary_keeps_its_order(tmp_path: Path) -> None:
    words_in_order = [*SPECIAL[:4], "zebra", "'s", "a"]
    numbers = {word: words_in_order.index(word) for word in sorted(words_in_order)}
    file = scan(tmp_path, {"word2idx": numbers, "idx2word": {}, "idx": 7})
    vocabulary = Vocabulary.of_scan(file)
    assert vocabulary.words == (*SPECIAL, "zebra", "'s", "a")
    assert vocabulary.split("A zebra's") == [7, 5, 6]
    text = BiGRUText.learn(["other words"], TRAINING.model_copy(update={"vocabulary": str(file)}))
    assert text.vocabulary == Vocabulary.from_json(vocabulary.to_json()) == vocabulary
    assert (
        text.digest != BiGRUText(Vocabulary(vocabulary.words)).digest
    )  # the same words, cut otherwise


@pytest.mark.parametrize(
    "tree",
    [
        [],
        {"idx": 3},
        {"word2idx": ["a"]},
        {"word2idx": {"<pad>": 0, "a": 1}},
        {"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 5}},
        {"word2idx": {"<pad>": 0.0, "<start>": 1, "<end>": 2, "<unk>": 3}},
        {"word2idx": {"<pad>": 0, "<start>": True, "<end>": 2, "<unk>": 3}},
    ],
)
def test_what_is_no_vocabulary_of_scans_is_refused(tmp_path: Path, tree: Any) -> None:
    with pytest.raises(InputError, match="not a vocabulary as SCAN's"):
        Vocabulary.of_scan(scan(tmp_path, tree))
    with pytest.raises(InputError, match="no such file"):
        Vocabulary.of_scan(tmp_path / "nowhere.json")
    nested = tmp_path / "nested.json"
    nested.write_text("[" * 100_000)
    with pytest.raises(InputError, match="not a vocabulary as SCAN's"):
        Vocabulary.of_scan(nested)


def test_without_a_word_there_is_nothing_to_learn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no word occurs 3 times in the training captions"):
        BiGRUText.learn(["a b", "a b"], TRAINING.model_copy(update={"minimum_count": 3}))
    file = scan(tmp_path, {"word2idx": {word: number for number, word in enumerate(SPECIAL)}})
    with pytest.raises(InputError, match="holds no words"):
        BiGRUText.learn(["a"], TRAINING.model_copy(update={"vocabulary": str(file)}))


def test_what_is_read_of_a_caption_has_an_end() -> None:
    text = numbered(10)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        fitting = encode(text, ["3 " * 254])
        assert not said, "a caption that just fits is not cut"
        captions = [*encode(text, ["3 " * 10_000, "3 " * 20_000]), *fitting]
    (warning,) = said
    assert (
        str(warning.message)
        == "captions of more than 254 words or word pieces are cut to that length"
    )
    assert captions == [[*text.before, *[text.vocabulary.number("3")] * 254, *text.after]] * 3


def numbered(count: int) -> BiGRUText:
    return BiGRUText(Vocabulary((*SPECIAL, *map(str, range(count)))))


def test_augmentation_changes_the_share_it_is_told() -> None:
    text, rng = numbered(10_000), np.random.default_rng(0)
    caption = [[number] for number in range(10, 1010)]
    changed = augment(caption, 0.2, text, rng)
    assert len(changed) == pytest.approx(1000 - 0.4 * 200, abs=30)  # 40 % of the chosen are dropped
    assert changed.count([text.mask]) == pytest.approx(0.5 * 200, abs=30)  # 50 % masked
    left = {number for [number] in changed} & {number for [number] in caption}
    assert len(left) == pytest.approx(800, abs=40)
    assert augment(caption, 0.0, text, rng) == caption
    assert augment([], 0.9, text, rng) == []
    for _ in range(200):
        assert len(augment([[7]], 0.99, text, rng)) == 1  # a caption never becomes empty


def test_a_word_is_replaced_by_a_word_alone() -> None:
    """Never by padding, a caption's start or its end; by the mask where there is no word."""
    words = Vocabulary((*SPECIAL, "a", "dog", "runs"))
    names = np.array(words.words)[BiGRUText(words).others]
    assert names.tolist() == ["a", "dog", "runs"]
    none = numbered(0)
    assert none.others.tolist() == [none.mask]


def test_a_word_of_pieces_is_masked_dropped_and_replaced_as_one() -> None:
    text, rng = numbered(1000), np.random.default_rng(0)
    caption = [[900 + word] * 3 for word in range(50)]
    seen, replaced = set(), []
    for _ in range(20):
        for word in augment(caption, 0.5, text, rng):
            assert len(word) == 3
            seen.add(
                "masked" if word == [text.mask] * 3 else "kept" if word in caption else "replaced"
            )
            assert min(word) >= min(len(SPECIAL), text.mask)
            if word != [text.mask] * 3 and word not in caption:
                replaced.append(word)
    assert seen == {"masked", "kept", "replaced"}
    assert np.mean([len(set(word)) for word in replaced]) > 2.9, "each piece by another one"


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


def test_an_unknown_kind_of_text_is_refused() -> None:
    with pytest.raises(InputError, match="unknown text encoder 'lstm'; there are: bigru, bert"):
        texts.kind("lstm")

"""How captions of any script become words."""

from __future__ import annotations

import json
import random
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest

from pipeline.foundation import settings
from pipeline.foundation.artefacts import Versions
from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.errors import InputError
from pipeline.make.text import TOKENIZERS
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.tokenizers import unicode, words
from pipeline.make.text.tokens import augment, encode
from pipeline.make.text.vocabulary import SPECIAL, Vocabulary
from pipeline.make.training.request import TrainRequest

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
TRAINING = SETTINGS.training_of("sample").model_copy(update={"minimum_count": 1})


def chinese(count: int, seed: int) -> list[str]:
    """Captions as Multi30K's Chinese ones: sentences without a blank, hardly one twice."""
    rng = random.Random(seed)
    parts = (
        "一两三",
        "只个名",
        ["男人", "女孩", "棕色的狗", "穿红衬衫的孩子"],
        ["在草地上", "在街道旁", "在海边"],
        ["奔跑", "玩耍", "看书", "骑自行车"],
    )
    return ["".join(rng.choice(words) for words in parts) + "。" for _ in range(count)]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("一只Dog在草地上跑。", "一 只 dog 在 草 地 上 跑 。"),
        ("犬がコーヒーを飲む", "犬 が コ ー ヒ ー を 飲 む"),
        ("2匹のガッツポーズ", "2 匹 の ガ ッ ツ ポ ー ズ"),
        ("หมาวิ่ง", "ห ม า วิ่ ง"),
        ("ໝາ", "ໝ າ"),
        ("ខ្មែរ", "ខ្ មែ រ"),
        ("မြန်မာ", "မြ န် မာ"),
        ("개가 잔디에서 달린다.", "개가 잔디에서 달린다 ."),
        ("कुत्ता दौड़ रहा है।", normalize("NFC", "कुत्ता दौड़ रहा है ।")),
        ("مُحَمَّد يجري", "مُحَمَّد يجري"),
        ("İki köpek", "i̇ki köpek"),
        ("中国人'abc' o'clock", "中 国 人 ' abc ' o'clock"),
    ],
)
def test_scripts_without_blanks_are_split_into_characters_and_marks_stay(
    caption: str, expected: str
) -> None:
    vocabulary = Vocabulary.of([caption])
    assert vocabulary.tokens(caption) == expected.split()
    assert vocabulary.unknown(caption)[0] == []


def test_all_other_captions_are_split_as_before() -> None:
    scripts = [
        range(0x20, 0x300),
        range(0x370, 0x3FF),
        range(0x400, 0x482),
        range(0x531, 0x557),
        range(0x5D0, 0x5EB),
        range(0x620, 0x64B),
        range(0x10D0, 0x10FB),
        range(0x1E00, 0x2070),
        range(0x2190, 0x2200),
        range(0xAC00, 0xAD00),
        range(0x1F300, 0x1F700),
    ]
    for letter in (
        chr(code) for some in scripts for code in some if code != 0x130
    ):  # İ in lower case is i and a dot
        caption = f"A Dog{letter}cat {letter} x'{letter}{letter}y, \N{HEAVY BLACK HEART}\ufe0f"
        assert unicode(caption) == words(caption)
    vocabulary = Vocabulary.of(["Ein Mädchen läuft.", "a dog's ball ❤️", "개가 달린다"])
    assert vocabulary.tokenizer == "words"
    assert vocabulary.digest == Vocabulary(vocabulary.words).digest


def test_chinese_captions_are_known_in_test() -> None:
    text = BiGRUText.learn(chinese(100, 0), TRAINING)
    new = chinese(200, 1)
    assert len(text.vocabulary) < 60
    assert all(text.vocabulary.unknown(caption)[0] == [] for caption in new)
    assert [len(numbers) for numbers in encode(text, new)] == [len(caption) + 2 for caption in new]
    whole = Vocabulary.of(chinese(100, 0), tokenizer="words")
    assert sum(len(whole.unknown(caption)[0]) for caption in new) > 100  # a caption is one word


def test_words_of_characters_are_dropped_and_masked_as_others() -> None:
    text = BiGRUText.learn(chinese(100, 0), TRAINING)
    caption, rng = text.split(chinese(1, 2))[0], np.random.default_rng(0)
    changed = [augment(caption, 0.3, text, rng) for _ in range(50)]
    assert {len(one) for one in changed} > {len(caption) - 1, len(caption) - 2}
    assert any([text.mask] in one for one in changed)


def test_a_heads_words_are_always_split_as_they_were_learnt(tmp_path: Path) -> None:
    for tokenizer in ("words", "unicode"):
        text = BiGRUText(Vocabulary.of(chinese(9, 0), tokenizer=tokenizer))
        text.save(tmp_path)
        assert BiGRUText.load(tmp_path).vocabulary == text.vocabulary
        assert (
            json.loads((tmp_path / "vocabulary.json").read_text(encoding="utf-8"))["tokenizer"]
            == tokenizer
        )
    assert (
        Vocabulary(text.vocabulary.words).digest != text.digest
    )  # the same words, split otherwise
    named = TRAINING.model_copy(update={"tokenizer": "treebank"})
    assert BiGRUText.learn(["a dog's"], named).vocabulary.words == (*SPECIAL, "'s", "a", "dog")
    with pytest.raises(InputError, match="unknown tokenizer 'word'; did you mean words"):
        BiGRUText.learn(["a"], TRAINING.model_copy(update={"tokenizer": "word"}))


def test_one_caption_without_blanks_has_all_captions_split_so() -> None:
    for captions in (["a dog", "两只狗"], ["两只狗", "a dog"], ["a dog", "a cat", "狗"]):
        vocabulary = Vocabulary.of(captions)
        assert vocabulary.tokenizer == "unicode"
        assert {"a", "dog", "狗"} <= {*vocabulary.words}
    assert Vocabulary.of(["a dog", "ein Mädchen"]).tokenizer == "words"
    assert Vocabulary.of([]).tokenizer == "words"


def test_both_unicode_forms_of_a_letter_are_one_word() -> None:
    composed = "Ein Mädchen im Café"
    split = normalize("NFD", composed)
    assert split != composed
    assert Vocabulary.of([split]) == (vocabulary := Vocabulary.of([composed]))
    assert vocabulary.split(split) == vocabulary.split(composed)
    assert vocabulary.unknown(split) == ([], 4)


def versions(tokenizer: str | None) -> Versions:
    how = TRAINING.model_copy(update={"tokenizer": tokenizer})
    return TrainRequest.of(
        "vse2ad", "region", "bigru", 0, SETTINGS.recipe("vse2ad"), how
    ).versions()


def test_a_users_own_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One function, one entry point; `record.json` then holds the digest of its module."""
    about = tmp_path / "pairs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pairs\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[vse_pipeline.tokenizers]\npairs = pairs_of_letters:split\n", encoding="utf-8"
    )
    (tmp_path / "pairs_of_letters.py").write_text(
        "def split(caption):\n    return [caption[at:at + 2] for at in range(0, len(caption), 2)]\n",
        encoding="utf-8",
    )
    with monkeypatch.context() as changed:
        changed.syspath_prepend(tmp_path)
        plugins.all_offers.cache_clear()
        text = BiGRUText.learn(["一只狗在"], TRAINING.model_copy(update={"tokenizer": "pairs"}))
        assert text.vocabulary.words == (*SPECIAL, "一只", "狗在")
        text.save(tmp_path)
        assert BiGRUText.load(tmp_path).split(["狗在"]) == [[[6]]]
        assert versions("pairs").keys() - versions(None) == {"pairs_of_letters"}
        assert versions("unicode") == versions(None)
    plugins.all_offers.cache_clear()
    with pytest.raises(InputError, match="vocabulary: unknown tokenizer 'pairs'"):
        BiGRUText.load(tmp_path)
    assert [*TOKENIZERS] == ["words", "treebank", "unicode"]

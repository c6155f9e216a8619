"""First vectors of words from a file as GloVe's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary, read_vectors

WORDS = {"dog": 5, "cat": 6, "naïve": 7, "at": 8}
LINES = "the 0.1 0.2 0.3\nCat 7 7 7\ncat 1 -2 3e-1\nnaïve 4 5 6\nat name@domain.com 7 8 9\nat 1 1 1\ncat 9 9 9\nend 1 2 3"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "glove.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_first_line_of_a_word_counts_and_words_with_blanks_are_other_words(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, LINES)
    found = read_vectors(path, WORDS, 3)
    assert found.numbers.tolist() == [6, 7, 8]
    np.testing.assert_allclose(found.values, [[1, -2, 0.3], [4, 5, 6], [1, 1, 1]])
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "the 1 2\n",
            "has vectors of 2 numbers in line 1; set training.NAME.word_dimension to that, it is 3",
        ),
        (
            "400000 3\ndog 1 2 3\n",
            "line 1 is a header of word2vec or fastText, not a word; delete it",
        ),
        (
            "dog 1 2 3 4\nthe 1 2 3 4\n",
            "has vectors of 4 numbers in line 1; set training.NAME.word_dimension to that, it is 3",
        ),
        ("the 1 2 3\ndog 1 2\n", "has vectors of 2 numbers in line 2"),
        ("the 1 2 3\ndog 1 two 3\n", "line 2 does not hold numbers alone"),
        ("the 1 2 3\ndog 1 nan 3\n", "line 2 holds a number that is not finite"),
        ("the 1 2 3\ndog 1 1e39 3\n", "line 2 holds a number that is not finite"),
        ("the 1 2 3\n", "has a vector of none of the 4 words"),
        ("", "has a vector of none of the 4 words"),
        (b"\0" * 200_000, "a line is longer than 131,072 bytes"),
        (b"\xff\xfe 1 2 3\n\x80 1 2 3\n", "has a vector of none of the 4 words"),
    ],
)
def test_what_is_no_such_file_is_refused_in_one_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_vectors(written(tmp_path, text), WORDS, 3)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No such file.*word_vectors names it"):
        read_vectors(tmp_path / "none.txt", WORDS, 3)


def test_an_encoder_begins_with_them_and_its_words_say_so(tmp_path: Path) -> None:
    chosen = settings.load(
        Path(__file__).parents[2] / "params.yaml",
        (
            f"training.sample.word_vectors={written(tmp_path, LINES)}",
            "training.sample.word_dimension=3",
            "training.sample.minimum_count=1",
        ),
    ).training_of("sample")
    text = BiGRUText.learn(["a cat at dawn"], chosen)
    encoder = text.encoder(4, chosen)
    weight = encoder.embedding.weight.detach()
    assert weight[text.vocabulary.number("cat")].tolist() == pytest.approx([1, -2, 0.3])
    assert (weight[text.vocabulary.number("dawn")].abs() <= 0.1).all()
    assert text.digest != BiGRUText(Vocabulary.of(["a cat at dawn"])).digest
    text.save(tmp_path)
    again = BiGRUText.load(tmp_path)
    assert again.digest == text.digest
    assert again.vectors is None  # a trained head has all weights of its own
    assert not torch.equal(again.encoder(4, chosen).embedding.weight, weight)


def test_a_damaged_name_of_their_file_is_refused() -> None:
    words = Vocabulary.of(["a"])
    with pytest.raises(InputError, match="vectors are named by the SHA-256"):
        Vocabulary.from_json(words.to_json().replace('{"tokenizer"', '{"vectors": 5, "tokenizer"'))

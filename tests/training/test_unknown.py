"""The share of words that a text encoder does not know."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_bert import tiny_bert

from pipeline.foundation import settings
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputWarning
from pipeline.make.text import Text
from pipeline.make.text.bert import BertText
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training import unknown

CAPTIONS = ["a red dog", "a red cat .", "ein roter Hund", "ein roter Kater"]


def split(languages: list[str] | None = None) -> Split:
    four = np.arange(4)
    return Split(
        "test",
        four,
        four,
        four,
        four,
        np.array(CAPTIONS, np.dtypes.StringDType()),
        languages and np.array(languages),
    )


def summaries(text: Text, part: Split) -> tuple[list[str], list[str]]:
    """The lines, and the warnings."""
    words = unknown.counts([part])
    words["test"][:] = text.captions(part.captions).unknown()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lines = unknown.summaries([part], words, "four")
    assert all(issubclass(one.category, InputWarning) for one in said)
    return lines, [str(one.message) for one in said]


def test_the_share_is_told_by_language_and_many_are_warned_of() -> None:
    text = BiGRUText(Vocabulary.of(CAPTIONS[:3]))
    assert text.captions(CAPTIONS).unknown().tolist() == [[0, 3], [0, 4], [0, 3], [1, 3]]
    lines, (warning,) = summaries(text, split(["en", "en", "de", "de"]))
    assert lines == []
    assert warning.startswith(
        "unknown words of test: de 16.7 %, en 0.0 %; above 5 % retrieval suffers"
    )
    assert "lower training.four.minimum_count" in warning
    assert len(summaries(text, split())[1]) == 1
    known = BiGRUText(Vocabulary.of(CAPTIONS))
    assert summaries(known, split()) == (["unknown words of test: 0.0 %"], [])
    nobody = replace(split(), captions=np.array(["", "", "", ""], np.dtypes.StringDType()))
    assert summaries(known, nobody) == (["unknown words of test: 0.0 %"], [])


def test_of_word_pieces_the_unknown_ones_count(tmp_path: Path) -> None:
    """[UNK] of a BERT that does not know a script."""
    training = settings.load(Path(__file__).parents[2] / "params.yaml").training_of("sample")
    text = BertText.learn(
        [], training.model_copy(update={"bert": str(tiny_bert(tmp_path / "bert"))})
    )
    assert text.captions(["a red circles", "红色 的", ""]).unknown().tolist() == [
        [0, 4],
        [3, 3],
        [0, 0],
    ]
    assert text.unknown("a red红 红色 circles") == (["红色"], 4), "one piece of red红 is known"


@pytest.mark.parametrize("caption", ["", "dog dog"])
def test_captions_without_an_unknown_word(caption: str) -> None:
    text = BiGRUText(Vocabulary.of(["dog"]))
    assert text.captions([caption]).unknown().tolist() == [[0, len(caption.split())]]

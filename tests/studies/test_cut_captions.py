"""Captions are cut at a number of tokens, and at no more than their encoder reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders import embedding
from pipeline.make.dual_encoders.hugging_face import TransformersEncoder
from pipeline.run.studies import cut_captions

CAPTIONS = ["a dog", "a dog on a bench", "two men", "two men on a bench in a park"]
LIMIT = 5  # tokens that the encoder reads


class Words(TransformersEncoder):
    """An encoder whose tokens are words."""

    token_limit = LIMIT

    def __init__(self) -> None:
        pass

    def tokens(self, captions: Any) -> Any:
        return [caption.split() for caption in captions]


def vectors(limit: int) -> np.ndarray:
    """A unit vector for each caption's first words."""
    made = []
    for caption in CAPTIONS:
        seed = [*" ".join(caption.split()[:limit]).encode()]
        vector = np.random.default_rng(seed).normal(size=16)
        made.append(vector / np.linalg.norm(vector))
    return np.array(made, np.float32)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Words:
    encoder = Words()
    monkeypatch.setattr(dual_encoders, "load", lambda name, usage: encoder)
    monkeypatch.setattr(
        embedding,
        "embed_captions",
        lambda encoder, captions, batch: vectors(encoder.token_limit)[: len(captions)],
    )
    return encoder


@pytest.mark.usefixtures("opened")
def test_captions_are_cut_where_they_are_asked_to_be_and_where_the_encoder_ends() -> None:
    embed, longest = cut_captions.open_encoder("clip:mine", CAPTIONS, vectors(LIMIT))
    assert longest == 8
    for tokens, limit in ((2, 2), (8, LIMIT), (1, 1), (LIMIT, LIMIT), (LIMIT + 1, LIMIT)):
        np.testing.assert_array_equal(embed(tokens), vectors(limit), err_msg=str(tokens))


@pytest.mark.usefixtures("opened")
def test_vectors_of_any_length_are_recognised_and_those_of_another_encoder_are_refused() -> None:
    own = vectors(LIMIT)
    lengths = np.array([[0.5], [1], [3], [100]])
    bent = own.copy()
    bent[2, 3] += 0.05
    cut_captions.open_encoder("clip:mine", CAPTIONS, own * lengths)
    for other in (vectors(2), own[::-1], -own, own[:, :8], bent, np.zeros_like(own)):
        with pytest.raises(InputError, match="the captions' vectors are not this encoder's"):
            cut_captions.open_encoder("clip:mine", CAPTIONS, other)


def test_an_encoder_whose_tokens_are_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_encoders, "load", lambda name, usage: object())
    with pytest.raises(InputError, match="--encoder x: captions can be cut for encoders of"):
        cut_captions.open_encoder("x", CAPTIONS, vectors(LIMIT))

"""Captions embedded again by a dual encoder, each cut at a number of tokens."""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.foundation.parts.errors import InputError
from pipeline.make import dual_encoders

BATCH = 64
# Captions that are compared with the vectors that are given.
COMPARED = 8
# How far given vectors may be from the encoder's.
APART = 0.02


def open_encoder(
    name: str, captions: Sequence[str], vectors: np.ndarray
) -> tuple[Callable[[int], np.ndarray], int]:
    """Open the encoder that made the captions' vectors [C, D]."""
    from pipeline.make.dual_encoders.base import Usage
    from pipeline.make.dual_encoders.embedding import embed_captions
    from pipeline.make.dual_encoders.hugging_face import TransformersEncoder

    opened = dual_encoders.load(name, Usage())
    if not isinstance(opened, TransformersEncoder):
        raise InputError(
            f"--encoder {name}: captions can be cut for encoders of transformers alone"
        )
    limit = opened.token_limit
    embedded = embed_captions(opened, captions[:COMPARED], BATCH)
    given = vectors[:COMPARED]
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    unit = given / np.maximum(lengths, 1e-12)
    if embedded.shape != unit.shape or np.abs(embedded - unit).max() > APART:
        raise InputError(f"--encoder {name}: the captions' vectors are not this encoder's")

    def embed(tokens: int) -> np.ndarray:
        opened.token_limit = min(tokens, limit)
        return embed_captions(opened, captions, BATCH)

    longest = max(map(len, opened.tokens(captions)))
    return embed, longest

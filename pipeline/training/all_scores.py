"""The similarities of heads that have no embeddings: every pair is scored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.errors import InputError
from pipeline.heads.cross import CrossEncoder
from pipeline.heads.interaction import Interaction
from pipeline.manifest import Split
from pipeline.text.base import encode
from pipeline.training.captions import of_split
from pipeline.training.head import Head
from pipeline.training.image_source import ImageSource
from pipeline.training.late_scores import all_pairs
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.pair_scores import Scores, score_pairs

AT_ONCE = 64
"""Images scored with all captions at once by a cross-encoder."""


def embeds(head: Head) -> bool:
    """Look up whether a head gives an image and a caption a vector each.

    Args:
        head: The open head.

    Returns:
        False for late interaction, and for a cross-encoder that learned pairs alone.
    """
    tasks = head.description["recipe_settings"].get("tasks", ["emb"])
    return not isinstance(head.model, Interaction) and "emb" in tasks


def require_embeddings(head: Head, name: str) -> None:
    """Check that a head gives an image and a caption a vector each.

    Args:
        head: The open head.
        name: Its name.

    Raises:
        InputError: If it scores pairs alone.
    """
    if not embeds(head):
        raise InputError(f"{name}: scores pairs and has no vectors of images and captions; take another head, or "
                         "rerank with this one")


def score_all(head: Head, source: ImageSource, split: Split, batch_size: int,
              progress: Callable[[int], object] = lambda images: None) -> Scores:
    """Score every pair of a split, in float32.

    Args:
        head: A head without embeddings.
        source: The images.
        split: I images and C captions.
        batch_size: Pairs, or images and captions, at once.
        progress: Called with the number of images done so far.

    Returns:
        Float32 [I, C].
    """
    if isinstance(head.model, Interaction):
        return all_pairs(head.model, source, split.store_rows, of_split(head.model, head.text, split), batch_size,
                         progress)
    assert isinstance(head.model, CrossEncoder)
    numbers, captions = encode(head.text, split.captions), len(split.captions)
    device = next(head.model.parameters()).device.type
    scores = np.empty((len(split.image_ids), captions), np.float32)
    for start in range(0, len(scores), AT_ONCE):
        rows = split.store_rows[start:start + AT_ONCE]
        found = score_pairs(head.model, source, np.repeat(rows, captions), numbers,
                            np.tile(np.arange(captions), len(rows)), batch_size,
                            TrainingPrecision("fp32", device).autocast)
        scores[start:start + len(rows)] = found.reshape(len(rows), captions)
        progress(start + len(rows))
    return scores

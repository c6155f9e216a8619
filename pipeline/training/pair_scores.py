"""Scores of pairs by heads that have no embeddings: a cross-encoder's, and of every pair of a split."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import Tensor

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.heads.base import Interaction
from pipeline.heads.cross import CrossEncoder
from pipeline.heads.objectives.pairs import margins
from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.text.base import encode
from pipeline.training.batches import pad
from pipeline.training.head import Head
from pipeline.training.image_source import ImageSource, ItemReader
from pipeline.training.late_scores import Scores, all_pairs, of_split
from pipeline.training.optimizer import TrainingPrecision

BLOCK = 1024
"""Images that are held as they enter the first layer, 55 kB each with 36 items of a width of 384."""
LEAST = 256
"""Pairs in a batch at least: fewer take longer each."""


@torch.inference_mode()
def score_pairs(model: CrossEncoder, source: ItemReader, rows: Ids, numbers: Sequence[Sequence[int]], caption: Ids,
                batch_size: int, autocast: Callable[[], AbstractContextManager[object]],
                progress: Callable[[int], object] = lambda pairs: None) -> Scores:
    """Score pairs, float32 [P]: the difference of the logits of a right and of a wrong pair.

    Different images enter the first layer once each, and captions of one length go together.
    """
    model.eval()
    device = next(model.parameters()).device
    images, image = np.unique(rows, return_inverse=True)
    lengths = np.array([len(one) for one in numbers])
    order = np.lexsort((caption, lengths[caption], image // BLOCK))
    scores, done = np.empty(len(rows), np.float32), 0
    for block in np.split(order, np.flatnonzero(np.diff(image[order] // BLOCK)) + 1):
        if not len(block):
            continue
        first = int(image[block[0]]) // BLOCK * BLOCK
        with autocast():
            items, counts = _entering(model, source, images[first:first + BLOCK], device)
        for batch in _cut(block, max(batch_size, LEAST)):
            tokens, place = _tokens(numbers, caption[batch], device)
            own = torch.from_numpy(image[batch] - first).to(device)
            with autocast():
                words = model.words(tokens[0])[place]
                logits = model.logits(words, tokens[1][place], items[own], counts[own])
            scores[batch] = margins(logits).float().cpu().numpy()
            progress(done := done + len(batch))
    return scores


def _cut(order: Ids, size: int) -> Iterator[Ids]:
    return (order[start:start + size] for start in range(0, len(order), size))


def _entering(model: CrossEncoder, source: ItemReader, rows: Ids, device: torch.device) -> tuple[Tensor, Tensor]:
    """[M, N, hidden] and counts [M]."""
    items, counts = source.read(rows)
    return (model.items(torch.from_numpy(items[:, :counts.max()]).to(device)), torch.from_numpy(counts).to(device))


def _tokens(numbers: Sequence[Sequence[int]], caption: Ids, device: torch.device
            ) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Different captions padded with their lengths, and each pair's row of them."""
    unique, place = np.unique(caption, return_inverse=True)
    tokens, lengths = pad([list(numbers[each]) for each in unique])
    return (tokens.to(device), lengths.to(device)), torch.from_numpy(place).to(device)


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

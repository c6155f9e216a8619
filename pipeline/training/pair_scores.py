"""Score pairs of images and captions with a cross-encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.heads.cross import CrossEncoder
from pipeline.objectives.pairs import margins
from pipeline.retrieval.blocks import Ids
from pipeline.training.batches import pad
from pipeline.training.image_source import ItemReader

BLOCK = 1024
"""Images that are held as they enter the first layer, 55 kB each with 36 items of a width of 384."""
LEAST = 256
"""Pairs in a batch at least: fewer take longer each."""

Scores = npt.NDArray[np.float32]


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

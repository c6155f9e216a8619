"""Compare stored items with the words of captions, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.heads.late import LateInteraction
from pipeline.retrieval.blocks import Ids
from pipeline.training.batches import pad
from pipeline.training.image_source import ItemReader

PRODUCTS = 1 << 24
"""Products of words and items in memory at once: 64 MB."""

Scores = npt.NDArray[np.float32]
Side = tuple[Tensor, Tensor]


@torch.inference_mode()
def all_pairs(model: LateInteraction, source: ItemReader, rows: Ids, numbers: Sequence[Sequence[int]], batch_size: int,
              progress: Callable[[int], object] = lambda images: None) -> Scores:
    """Compare all images with all captions.

    Args:
        model: The network.
        source: The images.
        rows: Int64 [I], rows of the source.
        numbers: C captions as numbers, see `text.base.encode`.
        batch_size: Images, and captions, at once.
        progress: Called with the number of images done so far.

    Returns:
        Float32 [I, C].
    """
    model.eval()
    order = np.argsort([len(one) for one in numbers], kind="stable")
    captions = [(part, _words(model, [numbers[each] for each in part]))
                for part in np.array_split(order, max(1, -(-len(order) // batch_size)))]
    scores = np.empty((len(rows), len(numbers)), np.float32)
    for start in range(0, len(rows), batch_size):
        items, counts = _items(model, source, rows[start:start + batch_size])
        for part, (words, lengths) in captions:
            step = max(1, PRODUCTS // (words.shape[0] * words.shape[1] * items.shape[1]))
            found = [model.similarity(items[at:at + step], counts[at:at + step], words, lengths)
                     for at in range(0, len(items), step)]
            scores[start:start + len(items), part] = torch.cat(found).cpu().numpy()
        progress(start + len(items))
    return scores


@torch.inference_mode()
def some_pairs(model: LateInteraction, source: ItemReader, rows: Ids, numbers: Sequence[Sequence[int]], caption: Ids,
               batch_size: int, progress: Callable[[int], object] = lambda pairs: None) -> Scores:
    """Compare images with captions one by one. Pairs of an image go together, so that it is projected once or twice.

    Args:
        model: The network.
        source: The images.
        rows: Int64 [P], each pair's image, a row of the source.
        numbers: Captions as numbers.
        caption: Int64 [P], each pair's caption, a place in `numbers`.
        batch_size: Pairs at once.
        progress: Called with the number of pairs done so far.

    Returns:
        Float32 [P].
    """
    model.eval()
    scores, order = np.empty(len(rows), np.float32), np.lexsort((caption, rows))
    for start in range(0, len(order), batch_size):
        batch = order[start:start + batch_size]
        images, image = np.unique(rows[batch], return_inverse=True)
        texts, text = np.unique(caption[batch], return_inverse=True)
        items, counts = _items(model, source, images)
        words, lengths = _words(model, [numbers[each] for each in texts])
        scores[batch] = model.pairs(items[image], counts[image], words[text], lengths[text]).cpu().numpy()
        progress(start + len(batch))
    return scores


def _items(model: LateInteraction, source: ItemReader, rows: Ids) -> Side:
    items, counts = source.read(rows)
    device = next(model.parameters()).device
    here = torch.from_numpy(counts).to(device)
    return model.embed_images(torch.from_numpy(items[:, :counts.max()]).to(device), here), here


def _words(model: LateInteraction, numbers: Sequence[Sequence[int]]) -> Side:
    tokens, lengths = (side.to(next(model.parameters()).device) for side in pad([list(one) for one in numbers]))
    return model.embed_captions(tokens, lengths), lengths

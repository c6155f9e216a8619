"""Embed a split's images and captions with a head."""

from collections.abc import Sequence

import numpy as np
import torch

from pipeline.heads.base import HeadNetwork
from pipeline.manifest import Split
from pipeline.text import Text
from pipeline.text.base import encode
from pipeline.training.batches import pad
from pipeline.training.image_source import ImageSource, ItemReader


def embed(model: HeadNetwork, source: ImageSource, split: Split, text: Text,
          batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Embed a split.

    Args:
        model: The head's network.
        source: The images.
        split: Images and captions.
        text: Converts captions to numbers.
        batch_size: Images or captions at once.

    Returns:
        Unit vectors of the images [I, d] and of the captions [C, d], float32, in the split's order.
    """
    return (embed_images(model, source, split.store_rows, batch_size),
            embed_captions(model, split.captions, text, batch_size))


@torch.inference_mode()
def embed_images(model: HeadNetwork, source: ItemReader, rows: np.ndarray, batch_size: int) -> np.ndarray:
    """Embed images, rows int64 [I] of the source: unit vectors, float32 [I, d]."""
    model.eval()
    device = next(model.parameters()).device
    images = []
    for start in range(0, len(rows), batch_size):
        items, counts = source.read(rows[start:start + batch_size])
        if model.backbone is None:
            items = items[:, :counts.max()]
        images.append(model.embed_images(torch.from_numpy(items).to(device), torch.from_numpy(counts).to(device)))
    return torch.cat(images).cpu().numpy()


@torch.inference_mode()
def embed_captions(model: HeadNetwork, captions: Sequence[str], text: Text, batch_size: int) -> np.ndarray:
    """Embed captions.

    Args:
        model: The head's network.
        captions: C captions, as in a manifest.
        text: Converts them to numbers.
        batch_size: Captions at once.

    Returns:
        Unit vectors, float32 [C, d].
    """
    model.eval()
    device = next(model.parameters()).device
    numbers = encode(text, captions)
    # Captions of like length go together: less padding. Their order is put back below.
    order = sorted(range(len(numbers)), key=lambda caption: len(numbers[caption]))
    vectors = []
    for start in range(0, len(order), batch_size):
        tokens, lengths = pad([numbers[caption] for caption in order[start:start + batch_size]])
        vectors.append(model.embed_captions(tokens.to(device), lengths.to(device)))
    found = torch.cat(vectors)
    found[order] = found.clone()
    return found.cpu().numpy()

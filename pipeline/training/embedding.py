"""Embed a split's images and captions with a head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pipeline.heads.two_tower import TwoTower
from pipeline.manifest import Split
from pipeline.text import Text
from pipeline.text.base import encode
from pipeline.training.batches import pad
from pipeline.training.source import Source


def embed(model: TwoTower, source: Source, split: Split, text: Text,
          batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of the split's images [I, d] and captions [C, d], float32, in the split's order."""
    return (embed_images(model, source, split.store_rows, batch_size),
            embed_captions(model, split.captions, text, batch_size))


@torch.inference_mode()
def embed_images(model: TwoTower, source: Source, rows: np.ndarray, batch_size: int) -> np.ndarray:
    """Unit vectors [I, d], float32, of the images in these rows of the source, int64 [I]."""
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
def embed_captions(model: TwoTower, told: Sequence[str], text: Text, batch_size: int) -> np.ndarray:
    """Unit vectors [C, d], float32, of captions as they stand in a manifest."""
    model.eval()
    device = next(model.parameters()).device
    captions = encode(text, told)
    # Captions of like length go together: less padding. Their order is put back below.
    order = sorted(range(len(captions)), key=lambda caption: len(captions[caption]))
    vectors = []
    for start in range(0, len(order), batch_size):
        tokens, lengths = pad([captions[caption] for caption in order[start:start + batch_size]])
        vectors.append(model.embed_captions(tokens.to(device), lengths.to(device)))
    found = torch.cat(vectors)
    found[order] = found.clone()
    return found.cpu().numpy()

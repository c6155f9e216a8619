"""Hard negatives: for each image and caption, what the head or a retriever scores highest and is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.parts.errors import InputError

# Similarities in memory at once: 128 MB.
AT_ONCE = 1 << 25


@dataclass(frozen=True)
class Nearest:
    """What looks right and is wrong, of I images and C captions."""

    captions: Ids  # int64 [I, k], each image's nearest captions of other images
    images: Ids  # int64 [C, k], each caption's nearest other images


def nearest(images: np.ndarray, captions: np.ndarray, caption_image: Ids, count: int) -> Nearest:
    """Find the nearest wrong captions of unit vectors of images [I, d], and images of those of captions [C, d]."""
    if len(images) < 2:
        raise InputError("hard negatives need two images or more")
    vectors = torch.from_numpy(images).float(), torch.from_numpy(captions).float()
    own = torch.from_numpy(np.asarray(caption_image))
    most = int(np.bincount(caption_image, minlength=len(images)).max())
    of_captions = _best(vectors[1], vectors[0], own, torch.arange(len(images)), min(count, len(images) - 1))
    of_images = _best(vectors[0], vectors[1], torch.arange(len(images)), own, min(count, len(captions) - most))
    return Nearest(of_images, of_captions)


def _best(queries: torch.Tensor, vectors: torch.Tensor, query_image: torch.Tensor, vector_image: torch.Tensor,
          count: int) -> Ids:
    """Int64 [Q, count], the nearest vectors of other images."""
    found = []
    for start in range(0, len(queries), step := max(1, AT_ONCE // len(vectors))):
        part = slice(start, start + step)
        products = queries[part] @ vectors.T
        products.masked_fill_(query_image[part, None] == vector_image, float("-inf"))
        found.append(products.topk(count, dim=1).indices)
    return torch.cat(found).numpy()

"""Scores of an encoder that has a vector for every token: late interaction, as of heads."""

from collections.abc import Sequence

import numpy as np
import torch

from pipeline.dual_encoders.base import DualEncoder
from pipeline.dual_encoders.embedding import prepared
from pipeline.files.gallery_file import GalleryFile
from pipeline.heads.late import sum_of_best


def scores(
    encoder: DualEncoder, files: Sequence[GalleryFile], captions: Sequence[str], batch_size: int
) -> np.ndarray:
    """Compare all images with all captions, float32 [I, C]: MaxSim, or its mean over a caption's
    tokens.
    """
    texts = [
        encoder.embed_captions(captions[start : start + batch_size])
        for start in range(0, len(captions), batch_size)
    ]
    rows, similarity = [], encoder.facts["similarity"]
    for start in range(0, len(files), batch_size):
        images = encoder.embed_images(
            [prepared(encoder, file)[0] for file in files[start : start + batch_size]]
        )
        rows.append(
            np.concatenate([_compared(images, tokens, similarity) for tokens in texts], axis=1)
        )
    return np.concatenate(rows)


def _compared(images: np.ndarray, captions: np.ndarray, similarity: str) -> np.ndarray:
    """Compare images [I, N, d] with captions [C, T, d], of which one is in memory at a time."""
    items, found = torch.from_numpy(images), []
    item = items.any(2)[:, None]
    for caption in torch.from_numpy(captions):
        word = caption.any(1)
        products = (caption @ items.transpose(1, 2))[:, None]
        summed = sum_of_best(products, item, word[None, None])
        found.append(summed / word.sum() if similarity == "meanmaxsim" else summed)
    return torch.cat(found, dim=1).numpy()

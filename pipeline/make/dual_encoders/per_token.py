"""Scores of an encoder that has a vector for every token: late interaction, as of heads."""

from collections.abc import Sequence

import numpy as np
import torch

from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.make.dual_encoders.base import DualEncoder
from pipeline.make.dual_encoders.embedding import prepared
from pipeline.make.heads.late import sum_of_best


def scores(
    encoder: DualEncoder, files: Sequence[GalleryFile], captions: Sequence[str], batch_size: int
) -> np.ndarray:
    """Compare all images with all captions, float32 [I, C]: MaxSim, or its mean over a caption's
    tokens.
    """
    texts = []
    for start in range(0, len(captions), batch_size):
        together = captions[start : start + batch_size]
        texts.append(encoder.embed_captions(together))
    similarity = encoder.facts["similarity"]
    rows = []
    for start in range(0, len(files), batch_size):
        batch = files[start : start + batch_size]
        pixels = [prepared(encoder, file)[0] for file in batch]
        images = encoder.embed_images(pixels)
        columns = [_compared(images, tokens, similarity) for tokens in texts]
        rows.append(np.concatenate(columns, axis=1))
    return np.concatenate(rows)


def _compared(images: np.ndarray, captions: np.ndarray, similarity: str) -> np.ndarray:
    """Compare images [I, N, d] with captions [C, T, d], of which one is in memory at a time."""
    items = torch.from_numpy(images)
    item = items.any(2)[:, None]
    columns = []
    for caption in torch.from_numpy(captions):
        word = caption.any(1)
        products = (caption @ items.transpose(1, 2))[:, None]
        column = sum_of_best(products, item, word[None, None])
        if similarity == "meanmaxsim":
            column = column / word.sum()
        columns.append(column)
    return torch.cat(columns, dim=1).numpy()

"""The task `ance`: a cross-encoder's embeddings learn from near negatives, which are mined again in each epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.heads.cross import CrossEncoder
from pipeline.settings.recipe import Ance
from pipeline.training.batches import TrainingBatches, joined
from pipeline.training.mining import Nearest
from pipeline.training.optimizer import Step


@dataclass(frozen=True)
class AnceBatch:
    """b right pairs, and n near wrong images and captions for each."""

    items: Tensor  # float [M, N, D], the images, those of the right pairs first
    counts: Tensor  # int64 [M]
    tokens: Tensor  # int64 [L, T], the captions, those of the right pairs first
    lengths: Tensor  # int64 [L]
    images: Tensor  # int64 [b, n], rows of `items`: near each caption, and wrong
    captions: Tensor  # int64 [b, n], rows of `tokens`: near each image, and wrong

    @classmethod
    def of(cls, batches: TrainingBatches, captions: Ids, ance: Ance, nearest: Nearest,
           rng: np.random.Generator) -> AnceBatch:
        """Draw near negatives for some captions and their images."""
        images = batches.split.caption_image[captions]
        wrong_images = _sampled(nearest.images[captions], ance.negatives, rng)
        wrong_captions = _sampled(nearest.captions[images], ance.negatives, rng)
        more_images, image = np.unique(wrong_images, return_inverse=True)
        more_captions, caption = np.unique(wrong_captions, return_inverse=True)
        items, counts = joined(batches.images(images, rng), batches.images(more_images, rng))
        tokens, lengths = joined(batches.captions(captions, rng), batches.captions(more_captions, rng))
        near = [torch.from_numpy(len(captions) + place.reshape(len(captions), -1)) for place in (image, caption)]
        return cls(items, counts, tokens, lengths, *near)


def _sampled(near: Ids, count: int, rng: np.random.Generator) -> Ids:
    """Draw `count` different ones of each row [Q, k]; all of them where there are fewer."""
    order = rng.random(near.shape).argsort(1)[:, :count]
    return np.take_along_axis(near, order, 1)


@dataclass
class AnceStep(Step[AnceBatch]):
    """A training step over near negatives.

    The loss is that of `near_triplet`. A batch in `pieces`, spread over `processes`, gives the gradients of the whole
    batch, except for rounding and for what dropout draws.

    Its log: loss; "violations", the share of near ones whose loss is above 0.
    """

    model: CrossEncoder
    ance: Ance

    def _share(self, batch: AnceBatch) -> dict[str, float]:
        device = next(self.model.parameters()).device
        whole, pairs = torch.zeros(2, device=device), len(batch.images)
        for rows in torch.arange(pairs).chunk(self.update.pieces):
            near = near_triplet(*self._similarities(batch, rows, device), self.ance.margin)
            share = len(rows) / (pairs * self.update.processes.count)
            loss = near.sum(0).mean() * share
            self.update.precision.scaled(loss).backward()
            whole += torch.stack([loss.detach(), (near > 0).float().mean() * share])
        self.update.processes.add_up([whole])
        return {"loss": float(whole[0]), "violations": float(whole[1])}

    def _similarities(self, batch: AnceBatch, rows: Tensor, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Those of some right pairs [b], of their captions with near images [b, n], and of images with captions."""
        places, vectors = [], []
        for near in (batch.images, batch.captions):
            wanted, place = torch.unique(torch.cat([rows[:, None], near[rows]], 1), return_inverse=True)
            places.append(place.to(device))
            part = batch.items, batch.counts, batch.tokens, batch.lengths
            values, counts = (each[wanted].to(device) for each in (part[:2] if near is batch.images else part[2:]))
            with self.update.precision.autocast():
                embed = self.model.embed_images if near is batch.images else self.model.embed_captions
                vectors.append(embed(values, counts).float()[places[-1]])
        images, captions = vectors
        return ((images[:, 0] * captions[:, 0]).sum(1), (captions[:, :1] * images[:, 1:]).sum(2),
                (images[:, :1] * captions[:, 1:]).sum(2))


def near_triplet(right: Tensor, images: Tensor, captions: Tensor, margin: float) -> Tensor:
    """Compute each query's hinge loss [2, b] over its n near negatives [b, n], the mean over them (not the hardest)."""
    return torch.stack([(margin + near - right[:, None]).clamp(min=0).mean(1) for near in (images, captions)])

"""Batches of recipes whose rounds have several steps: near negatives, or wrong pairs drawn twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.settings import Recipe
from pipeline.training.ance_step import AnceBatch
from pipeline.training.batches import Batch, TrainingBatches
from pipeline.training.pair_batches import PairBatch, PairBatches, joined


@dataclass(frozen=True)
class Round:
    """What the steps of a round read."""

    right: Batch  # the right pairs
    pairs: tuple[PairBatch, ...]  # wrong pairs beside them, for each step of the task `ce`
    near: AnceBatch  # some of the right pairs, with near wrong images and captions


class RoundBatches(PairBatches):
    """Right pairs in random order, with what each step of a round needs beside them."""

    def __init__(self, recipe: Recipe, *given: Any) -> None:
        super().__init__(recipe.pairs, *given)
        self.recipe, whole = recipe, min(recipe.ance.batch, self.batch_size)
        mine = self.own.stop - self.own.start
        self.near = mine * whole // self.batch_size
        if self.near * self.batch_size != mine * whole:
            raise InputError(f"recipe's ance.batch: {whole} right pairs cannot be shared by {self.batch_size // mine} "
                             "processes in equal parts")

    def _batch(self, epoch: int, step: int, captions: Ids) -> Round:  # type: ignore[override]
        right = TrainingBatches._batch(self, epoch, step, captions)
        pairs = tuple(self._pairs(right, captions, np.random.default_rng((self.seed, epoch, step, 4 + number)))
                      for number in range(self.recipe.tasks.count("ce")))
        return Round(right, pairs, self._near(captions[self.own][:self.near], epoch, step))

    def _near(self, captions: Ids, epoch: int, step: int) -> AnceBatch:
        """Draw near negatives for some captions and their images."""
        assert self.nearest is not None
        rng = np.random.default_rng((self.seed, epoch, step, 3, self.own.start))
        images = self.split.caption_image[captions]
        wrong_images = _sampled(self.nearest.images[captions], self.recipe.ance.negatives, rng)
        wrong_captions = _sampled(self.nearest.captions[images], self.recipe.ance.negatives, rng)
        more_images, image = np.unique(wrong_images, return_inverse=True)
        more_captions, caption = np.unique(wrong_captions, return_inverse=True)
        items, counts = joined(self._images(images, rng), self._images(more_images, rng))
        tokens, lengths = joined(self._captions(captions, rng), self._captions(more_captions, rng))
        near = [torch.from_numpy(len(captions) + place.reshape(len(captions), -1)) for place in (image, caption)]
        return AnceBatch(items, counts, tokens, lengths, *near)


def _sampled(near: Ids, count: int, rng: np.random.Generator) -> Ids:
    """Draw `count` different ones of each row [Q, k]; all of them where there are fewer."""
    order = rng.random(near.shape).argsort(1)[:, :count]
    return np.take_along_axis(near, order, 1)

"""Batches of right pairs with wrong pairs beside each, for heads that score pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.errors import InputError
from pipeline.manifest import Split
from pipeline.retrieval.blocks import Ids
from pipeline.settings.recipe import Pairs
from pipeline.text.augment import augment
from pipeline.text.base import assemble
from pipeline.training.batches import Batch, TrainingBatches, drop, pad
from pipeline.training.hard_negatives import Nearest


@dataclass(frozen=True)
class PairBatch:
    """b right pairs, and c wrong pairs for each."""

    right: Batch  # the right pairs
    items: Tensor  # float [M, N, D], the images of all pairs, `right`'s first
    counts: Tensor  # int64 [M]
    tokens: Tensor  # int64 [L, T], the captions of all pairs, `right`'s first
    lengths: Tensor  # int64 [L]
    caption: Tensor  # int64 [b, 1 + c], each pair's row of `tokens`; the first column is right
    image: Tensor  # int64 [b, 1 + c], each pair's row of `items`


class PairBatches(TrainingBatches):
    """Right pairs in random order, each with wrong pairs drawn for it.

    Half of the right pairs get other captions of their image, the others other images of their caption (Geigle et al.,
    section 3.1). Captions of the same image are never wrong.
    """

    nearest: Nearest | None = None

    def __init__(self, pairs: Pairs, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.pairs = pairs
        if len(np.unique(self.split.caption_image)) < 2:
            raise InputError("training on pairs needs two images or more, for wrong pairs")

    def _batch(self, epoch: int, step: int, captions: Ids) -> PairBatch:  # type: ignore[override]
        return self._pairs(super()._batch(epoch, step, captions), captions,
                           np.random.default_rng((self.seed, epoch, step, 2)))

    def _pairs(self, right: Batch, captions: Ids, rng: np.random.Generator) -> PairBatch:
        """Draw wrong pairs for the captions of a batch."""
        by_caption = rng.random(len(captions)) < 0.5  # whether the caption stays, and images are wrong
        drawn = draw(self.split, captions, by_caption, self.pairs, self.nearest, rng)[self.own]
        by_caption, own = by_caption[self.own], np.arange(len(drawn))
        images, image = np.unique(drawn[by_caption], return_inverse=True)
        words, caption = np.unique(drawn[~by_caption], return_inverse=True)
        pairs = {"caption": np.tile(own[:, None], (1, 1 + drawn.shape[1]))}
        pairs["image"] = pairs["caption"].copy()
        pairs["image"][by_caption, 1:] = len(own) + image.reshape(-1, drawn.shape[1])
        pairs["caption"][~by_caption, 1:] = len(own) + caption.reshape(-1, drawn.shape[1])
        items, counts = joined((right.items, right.counts), self._images(images, rng))
        tokens, lengths = joined((right.tokens, right.lengths), self._captions(words, rng))
        return PairBatch(right, items, counts, tokens, lengths,
                         **{side: torch.from_numpy(rows) for side, rows in pairs.items()})

    def _images(self, images: Ids, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        left_out = rng.random((len(images), self.source.layout.items)) < self.drop_items
        left_out[:, 0] &= not self.keep_first
        if not len(images):
            return torch.empty(0, 0, self.source.width), torch.empty(0, dtype=torch.int64)
        items, counts = drop(*self.source.read(self.split.store_rows[images]), left_out)
        return torch.from_numpy(items), torch.from_numpy(counts)

    def _captions(self, captions: Ids, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        words = self.text.split([self.split.captions[caption] for caption in captions]) if len(captions) else []
        if not words:
            return torch.empty(0, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
        return pad([assemble(self.text, augment(one, self.drop_tokens, self.text, rng)) for one in words])


def draw(split: Split, captions: Ids, by_caption: npt.NDArray[np.bool_], pairs: Pairs, nearest: Nearest | None,
         rng: np.random.Generator) -> Ids:
    """Draw what makes wrong pairs, int64 [B, c].

    These are rows of images where the caption stays (`by_caption`, bool [B]), else of captions.
    """
    image = split.caption_image[captions][:, None]
    shape = (len(captions), pairs.negatives)
    drawn = rng.integers(len(split.captions), size=shape)
    while (same := split.caption_image[drawn] == image).any():
        drawn[same] = rng.integers(len(split.captions), size=int(same.sum()))
    drawn = np.where(by_caption[:, None], split.caption_image[drawn], drawn)
    if nearest is None:
        return drawn
    hard, place = rng.random(shape) < pairs.hard, rng.random(shape)
    for rows, near in ((by_caption, nearest.images[captions]), (~by_caption, nearest.captions[image[:, 0]])):
        chosen = np.take_along_axis(near, (place * near.shape[1]).astype(np.int64), axis=1)
        drawn = np.where(hard & rows[:, None], chosen, drawn)
    return drawn


def joined(*parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Put padded batches, values [B, N, ...] with their counts [B], together."""
    longest = max(values.shape[1] for values, _ in parts)
    whole = [torch.cat([values, values.new_zeros(len(values), longest - values.shape[1], *values.shape[2:])], 1)
             for values, _ in parts if len(values)]
    return torch.cat(whole), torch.cat([counts for _, counts in parts])

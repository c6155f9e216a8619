"""The task `ce`: a cross-encoder learns to score right pairs above wrong ones, which are drawn for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.evaluation.retrieval import Ids, Marks
from pipeline.heads.cross import CrossEncoder, PairObjective, margins
from pipeline.manifest import Split
from pipeline.settings.recipe import Pairs
from pipeline.training.batches import Batch, TrainingBatches, joined
from pipeline.training.mining import Nearest
from pipeline.training.optimizer import Step


@dataclass(frozen=True)
class PairBatch:
    """b right pairs, and c wrong pairs for each."""

    items: Tensor  # float [M, N, D], the images of all pairs, those of the right ones first
    counts: Tensor  # int64 [M]
    tokens: Tensor  # int64 [L, T], the captions of all pairs, those of the right ones first
    lengths: Tensor  # int64 [L]
    caption: Tensor  # int64 [b, 1 + c], each pair's row of `tokens`; the first column is right
    image: Tensor  # int64 [b, 1 + c], each pair's row of `items`

    @classmethod
    def of(cls, batches: TrainingBatches, right: Batch, captions: Ids, pairs: Pairs, nearest: Nearest | None,
           rng: np.random.Generator) -> PairBatch:
        """Draw wrong pairs for the captions of a batch.

        Half of the right pairs get other captions of their image, the others other images of their caption (Geigle et
        al., section 3.1). Captions of the same image are never wrong.
        """
        by_caption = rng.random(len(captions)) < 0.5  # whether the caption stays, and images are wrong
        drawn = draw(batches.split, captions, by_caption, pairs, nearest, rng)[batches.own]
        by_caption, own = by_caption[batches.own], np.arange(len(drawn))
        images, image = np.unique(drawn[by_caption], return_inverse=True)
        words, caption = np.unique(drawn[~by_caption], return_inverse=True)
        rows = {"caption": np.tile(own[:, None], (1, 1 + drawn.shape[1]))}
        rows["image"] = rows["caption"].copy()
        rows["image"][by_caption, 1:] = len(own) + image.reshape(-1, drawn.shape[1])
        rows["caption"][~by_caption, 1:] = len(own) + caption.reshape(-1, drawn.shape[1])
        items, counts = joined((right.items, right.counts), batches.images(images, rng))
        tokens, lengths = joined((right.tokens, right.lengths), batches.captions(words, rng))
        return cls(items, counts, tokens, lengths, **{side: torch.from_numpy(each) for side, each in rows.items()})


def draw(split: Split, captions: Ids, by_caption: Marks, pairs: Pairs, nearest: Nearest | None,
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


@dataclass
class PairStep(Step[PairBatch]):
    """A training step over pairs.

    A batch in `pieces`, spread over `processes`, gives the gradients of the whole batch, except for rounding and for
    what dropout draws.

    Its log: loss; "first", the share of right pairs that score higher than their wrong ones; of the scores
    "similarity", "separation" and "spread" as `TrainingStep` has them.
    """

    model: CrossEncoder
    objective: PairObjective

    def _share(self, batch: PairBatch) -> dict[str, float]:
        processes, precision, pieces = self.update.processes, self.update.precision, self.update.pieces
        device = next(self.model.parameters()).device
        parts = [part.to(device) for part in (batch.tokens, batch.lengths, batch.items, batch.counts)]
        loss, scores = torch.zeros((), device=device), []
        for caption, image in zip(batch.caption.chunk(pieces), batch.image.chunk(pieces), strict=True):
            with precision.autocast():
                logits = self.model(*parts, caption.flatten().to(device), image.flatten().to(device))
            part = self.objective(logits.unflatten(0, caption.shape))
            part = part * (len(caption) / (len(batch.caption) * processes.count))
            precision.scaled(part).backward()
            loss += part.detach()
            scores.append(margins(logits.detach()).unflatten(0, caption.shape))
        whole = loss[None].clone(), processes.gather(torch.cat(scores))
        processes.add_up(whole[:1])
        return {"loss": float(whole[0]), **_state(whole[1])}


def _state(scores: Tensor) -> dict[str, float]:
    right, wrong = scores[:, :1], scores[:, 1:]
    state = {"first": (right > wrong).all(1).float().mean(), "similarity": scores.mean(),
             "separation": right.mean() - wrong.mean(), "spread": scores.max() - scores.min()}
    return {name: float(value) for name, value in state.items()}

"""The tasks `ce` and `ance`: a cross-encoder learns from positive pairs and from negatives, random
or hard ones.

`ce` trains its scores of pairs, `ance` its embeddings. Hard negatives are a query's nearest
negatives, found by the head itself before each epoch, or once by a retriever.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.evaluation.retrieval import Ids, Marks
from pipeline.evaluation.retrieval.top import INDEXES, places_in
from pipeline.heads.cross import CrossEncoder, PairObjective, margins
from pipeline.heads.sides import Side, joined
from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.settings.recipe import Ance, Pairs
from pipeline.training.batches import Batch, TrainingBatches
from pipeline.training.optimizer import Step


@dataclass(frozen=True)
class Nearest:
    """The hard negatives of I images and C captions: their nearest negatives."""

    captions: Ids  # int64 [I, k], each image's nearest captions of other images
    images: Ids  # int64 [C, k], each caption's nearest other images


def nearest(
    images: np.ndarray, captions: np.ndarray, caption_image: Ids, count: int, index: str = "exact"
) -> Nearest:
    """Find the nearest negatives of images and of captions by their unit vectors, [I, d] and [C,
    d].
    """
    if len(images) < 2:
        raise InputError("hard negatives need two images or more")
    images, captions = (
        images.astype(np.float32, copy=False),
        captions.astype(np.float32, copy=False),
    )
    most, image = (
        int(np.bincount(caption_image, minlength=len(images)).max()),
        np.arange(len(images)),
    )
    of_images = _negatives(
        images, captions, image, caption_image, min(count, len(captions) - most), most, index
    )
    of_captions = _negatives(
        captions, images, caption_image, image, min(count, len(images) - 1), 1, index
    )
    return Nearest(of_images, of_captions)


def _negatives(
    queries: np.ndarray,
    vectors: np.ndarray,
    query_image: Ids,
    vector_image: Ids,
    count: int,
    most: int,
    index: str,
) -> Ids:
    """Int64 [Q, count], each query's nearest vectors of other images; an image has at most `most`
    vectors.
    """
    near = places_in(INDEXES.find(index)(vectors), queries, count + most)
    positives_last = np.argsort(vector_image[near] == query_image[:, None], axis=1, kind="stable")
    return np.take_along_axis(near, positives_last[:, :count], 1)


@dataclass(frozen=True)
class PairBatch:
    """b positive pairs with c negatives each; or with c negative captions and c negative images
    each.
    """

    images: Side  # those of the positive pairs first
    captions: Side  # those of the positive pairs first
    caption: Tensor  # int64 [b, 1 + c], rows of `captions`; the first column is the positive
    image: Tensor  # int64 [b, 1 + c], rows of `images`

    @classmethod
    def drawn(
        cls,
        batches: TrainingBatches,
        positives: Batch,
        captions: Ids,
        pairs: Pairs,
        nearest: Nearest | None,
        rng: np.random.Generator,
    ) -> "PairBatch":
        """Draw negatives for the captions of a batch.

        Half of the positive pairs get other captions of their image, the others other images of
        their caption (Geigle et al., section 3.1). Captions of the same image are never negatives.
        """
        by_caption = (
            rng.random(len(captions)) < 0.5
        )  # whether the caption stays, and images are negatives
        drawn = draw(batches.split, captions, by_caption, pairs, nearest, rng)[batches.own]
        by_caption, anchors = by_caption[batches.own], np.arange(len(drawn))
        images, image = np.unique(drawn[by_caption], return_inverse=True)
        words, caption = np.unique(drawn[~by_caption], return_inverse=True)
        rows = {"caption": np.tile(anchors[:, None], (1, 1 + drawn.shape[1]))}
        rows["image"] = rows["caption"].copy()
        rows["image"][by_caption, 1:] = len(anchors) + image.reshape(-1, drawn.shape[1])
        rows["caption"][~by_caption, 1:] = len(anchors) + caption.reshape(-1, drawn.shape[1])
        return cls(
            joined([positives.images, batches.images(images, rng)]),
            joined([positives.captions, batches.captions(words, rng)]),
            **{side: torch.from_numpy(each) for side, each in rows.items()},
        )

    @classmethod
    def near(
        cls,
        batches: TrainingBatches,
        captions: Ids,
        ance: Ance,
        nearest: Nearest,
        rng: np.random.Generator,
    ) -> "PairBatch":
        """Draw hard negatives for some captions, and for their images."""
        images = batches.split.caption_image[captions]
        negative_images = _sampled(nearest.images[captions], ance.negatives, rng)
        negative_captions = _sampled(nearest.captions[images], ance.negatives, rng)
        more_images, image = np.unique(negative_images, return_inverse=True)
        more_captions, caption = np.unique(negative_captions, return_inverse=True)
        sides = (
            joined([batches.images(images, rng), batches.images(more_images, rng)]),
            joined([batches.captions(captions, rng), batches.captions(more_captions, rng)]),
        )
        positive = np.arange(len(captions))[:, None]
        rows = (
            np.hstack([positive, len(positive) + place.reshape(len(positive), -1)])
            for place in (caption, image)
        )
        return cls(*sides, *map(torch.from_numpy, rows))


def draw(
    split: Split,
    captions: Ids,
    by_caption: Marks,
    pairs: Pairs,
    nearest: Nearest | None,
    rng: np.random.Generator,
) -> Ids:
    """Draw negatives, int64 [B, c], for the captions of positive pairs: images where `by_caption`,
    else captions.
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
    for rows, near in (
        (by_caption, nearest.images[captions]),
        (~by_caption, nearest.captions[image[:, 0]]),
    ):
        chosen = np.take_along_axis(near, (place * near.shape[1]).astype(np.int64), axis=1)
        drawn = np.where(hard & rows[:, None], chosen, drawn)
    return drawn


@dataclass
class PairStep(Step[PairBatch]):
    """A training step over pairs.

    A batch in `pieces`, spread over `processes`, gives the gradients of the whole batch, except for
    rounding and for what dropout draws.

    Its log: loss; "first", the share of positives that score higher than their negatives; of the
    scores "similarity", "separation" and "spread" as `TrainingStep` has them.
    """

    model: CrossEncoder
    objective: PairObjective

    def _share(self, batch: PairBatch) -> dict[str, float]:
        processes, precision, pieces = (
            self.update.processes,
            self.update.precision,
            self.update.pieces,
        )
        device = next(self.model.parameters()).device
        sides = batch.captions.to(device), batch.images.to(device)
        loss, scores = torch.zeros((), device=device), []
        for caption, image in zip(
            batch.caption.chunk(pieces), batch.image.chunk(pieces), strict=True
        ):
            with precision.autocast():
                logits = self.model(
                    *sides, caption.flatten().to(device), image.flatten().to(device)
                )
            part = self.objective(logits.unflatten(0, caption.shape))
            part = part * (len(caption) / (len(batch.caption) * processes.count))
            precision.scaled(part).backward()
            loss += part.detach()
            scores.append(margins(logits.detach()).unflatten(0, caption.shape))
        whole = loss[None].clone(), processes.gather(torch.cat(scores))
        processes.add_up(whole[:1])
        return {"loss": float(whole[0]), **_state(whole[1])}


def _state(scores: Tensor) -> dict[str, float]:
    positive, negatives = scores[:, :1], scores[:, 1:]
    state = {
        "first": (positive > negatives).all(1).float().mean(),
        "similarity": scores.mean(),
        "separation": positive.mean() - negatives.mean(),
        "spread": scores.max() - scores.min(),
    }
    return {name: float(value) for name, value in state.items()}


def _sampled(near: Ids, count: int, rng: np.random.Generator) -> Ids:
    """Draw `count` different ones of each row [Q, k]; all of them where there are fewer."""
    order = rng.random(near.shape).argsort(1)[:, :count]
    return np.take_along_axis(near, order, 1)


@dataclass
class AnceStep(Step[PairBatch]):
    """A training step over near negatives.

    A batch in `pieces`, spread over `processes`, gives the gradients of the whole batch, except for
    rounding and for what dropout draws. Its log: loss; "violations", the share of queries whose
    loss is above 0.
    """

    model: CrossEncoder
    ance: Ance

    def _share(self, batch: PairBatch) -> dict[str, float]:
        device = next(self.model.parameters()).device
        whole, pairs = torch.zeros(2, device=device), len(batch.image)
        for rows in torch.arange(pairs).chunk(self.update.pieces):
            near = near_triplet(*self._similarities(batch, rows, device), self.ance.margin)
            share = len(rows) / (pairs * self.update.processes.count)
            loss = near.sum(0).mean() * share
            self.update.precision.scaled(loss).backward()
            whole += torch.stack([loss.detach(), (near > 0).float().mean() * share])
        self.update.processes.add_up([whole])
        return {"loss": float(whole[0]), "violations": float(whole[1])}

    def _similarities(
        self, batch: PairBatch, rows: Tensor, device: torch.device
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Similarities of some positive pairs [b], and of their captions and images with negatives,
        [b, n] each.
        """
        vectors = []
        for table, side, embed in (
            (batch.image, batch.images, self.model.embed_images),
            (batch.caption, batch.captions, self.model.embed_captions),
        ):
            wanted, place = torch.unique(table[rows], return_inverse=True)
            with self.update.precision.autocast():
                vectors.append(embed(side.take(wanted).to(device)).float()[place.to(device)])
        images, captions = vectors
        return (
            (images[:, 0] * captions[:, 0]).sum(1),
            (captions[:, :1] * images[:, 1:]).sum(2),
            (images[:, :1] * captions[:, 1:]).sum(2),
        )


def near_triplet(positive: Tensor, images: Tensor, captions: Tensor, margin: float) -> Tensor:
    """Compute each query's hinge loss [2, b] over its n near negatives [b, n], the mean over them
    (not the hardest).
    """
    return torch.stack(
        [(margin + near - positive[:, None]).clamp(min=0).mean(1) for near in (images, captions)]
    )

"""The tasks `ce` and `ance`: a cross-encoder learns from positive pairs and from negatives, random
or hard ones.

`ce` trains its scores of pairs, `ance` its embeddings. Hard negatives are a query's nearest
negatives, found by the head itself before each epoch, or once by a retriever.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.foundation.evaluation.retrieval import Ids, Marks
from pipeline.foundation.evaluation.retrieval.top import INDEXES, places_in
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.recipe import Ance, Pairs
from pipeline.make.heads.cross import CrossEncoder, PairObjective, margins
from pipeline.make.heads.sides import Side, joined
from pipeline.make.training.batches import Batch, TrainingBatches
from pipeline.make.training.optimizer import Step


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
    images = images.astype(np.float32, copy=False)
    captions = captions.astype(np.float32, copy=False)
    image = np.arange(len(images))
    most = int(np.bincount(caption_image, minlength=len(images)).max())
    wrong_captions = min(count, len(captions) - most)
    wrong_images = min(count, len(images) - 1)
    of_images = _negatives(images, captions, image, caption_image, wrong_captions, most, index)
    of_captions = _negatives(captions, images, caption_image, image, wrong_images, 1, index)
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
    is_positive = vector_image[near] == query_image[:, None]
    positives_last = np.argsort(is_positive, axis=1, kind="stable")
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
        # Whether the caption stays, and images are negatives.
        by_caption = rng.random(len(captions)) < 0.5
        drawn = draw(batches.split, captions, by_caption, pairs, nearest, rng)[batches.own]
        by_caption = by_caption[batches.own]
        count, negatives = drawn.shape
        images, image = np.unique(drawn[by_caption], return_inverse=True)
        words, caption = np.unique(drawn[~by_caption], return_inverse=True)
        numbers = np.arange(count)[:, None]
        anchors = np.tile(numbers, (1, 1 + negatives))
        image_rows = anchors.copy()
        image_rows[by_caption, 1:] = count + image.reshape(-1, negatives)
        caption_rows = anchors.copy()
        caption_rows[~by_caption, 1:] = count + caption.reshape(-1, negatives)
        negative_images = batches.images(images, rng)
        negative_captions = batches.captions(words, rng)
        return cls(
            images=joined([positives.images, negative_images]),
            captions=joined([positives.captions, negative_captions]),
            caption=torch.from_numpy(caption_rows),
            image=torch.from_numpy(image_rows),
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
        all_images = joined([batches.images(images, rng), batches.images(more_images, rng)])
        all_captions = joined(
            [batches.captions(captions, rng), batches.captions(more_captions, rng)]
        )
        return cls(
            images=all_images,
            captions=all_captions,
            caption=_behind_positives(len(captions), caption),
            image=_behind_positives(len(captions), image),
        )


def _behind_positives(count: int, negatives: Ids) -> Tensor:
    """The rows, int64 [b, 1 + c], of b positives and then of their negatives, which are numbered
    from b on.
    """
    positives = np.arange(count)[:, None]
    behind = count + negatives.reshape(count, -1)
    return torch.from_numpy(np.hstack([positives, behind]))


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
    image = split.caption_image[captions]
    shape = (len(captions), pairs.negatives)
    drawn = rng.integers(len(split.captions), size=shape)
    same = split.caption_image[drawn] == image[:, None]
    while same.any():
        drawn[same] = rng.integers(len(split.captions), size=int(same.sum()))
        same = split.caption_image[drawn] == image[:, None]
    drawn = np.where(by_caption[:, None], split.caption_image[drawn], drawn)
    if nearest is None:
        return drawn
    hard = rng.random(shape) < pairs.hard
    place = rng.random(shape)
    images = _at_places(nearest.images[captions], place)
    drawn = np.where(hard & by_caption[:, None], images, drawn)
    other_captions = _at_places(nearest.captions[image], place)
    return np.where(hard & ~by_caption[:, None], other_captions, drawn)


def _at_places(near: Ids, place: np.ndarray) -> Ids:
    """Those of each row [B, k] at places [B, c] in 0..1."""
    columns = (place * near.shape[1]).astype(np.int64)
    return np.take_along_axis(near, columns, axis=1)


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
        processes = self.update.processes
        precision = self.update.precision
        pieces = self.update.pieces
        device = next(self.model.parameters()).device
        captions = batch.captions.to(device)
        images = batch.images.to(device)
        pairs = len(batch.caption) * processes.count
        loss = torch.zeros((), device=device)
        scores = []
        chunks = zip(batch.caption.chunk(pieces), batch.image.chunk(pieces), strict=True)
        for caption, image in chunks:
            caption_rows = caption.flatten().to(device)
            image_rows = image.flatten().to(device)
            with precision.autocast():
                logits = self.model(captions, images, caption_rows, image_rows)
            part = self.objective(logits.unflatten(0, caption.shape))
            part = part * (len(caption) / pairs)
            precision.scaled(part).backward()
            loss += part.detach()
            scores.append(margins(logits.detach()).unflatten(0, caption.shape))
        all_scores = processes.gather(torch.cat(scores))
        processes.add_up([loss])
        return {"loss": float(loss), **_state(all_scores)}


def _state(scores: Tensor) -> dict[str, float]:
    positive = scores[:, :1]
    negatives = scores[:, 1:]
    first = (positive > negatives).all(1)
    separation = positive.mean() - negatives.mean()
    spread = scores.max() - scores.min()
    return {
        "first": float(first.float().mean()),
        "similarity": float(scores.mean()),
        "separation": float(separation),
        "spread": float(spread),
    }


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
        whole = torch.zeros(2, device=device)
        pairs = len(batch.image)
        for rows in torch.arange(pairs).chunk(self.update.pieces):
            positive, images, captions = self._similarities(batch, rows, device)
            near = near_triplet(positive, images, captions, self.ance.margin)
            share = len(rows) / (pairs * self.update.processes.count)
            loss = near.sum(0).mean() * share
            self.update.precision.scaled(loss).backward()
            violations = (near > 0).float().mean() * share
            whole += torch.stack([loss.detach(), violations])
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
                embedded = embed(side.take(wanted).to(device)).float()
                vectors.append(embedded[place.to(device)])
        images, captions = vectors
        positive = (images[:, 0] * captions[:, 0]).sum(1)
        of_images = (captions[:, :1] * images[:, 1:]).sum(2)
        of_captions = (images[:, :1] * captions[:, 1:]).sum(2)
        return positive, of_images, of_captions


def near_triplet(positive: Tensor, images: Tensor, captions: Tensor, margin: float) -> Tensor:
    """Compute each query's hinge loss [2, b] over its n near negatives [b, n], the mean over them
    (not the hardest).
    """
    costs = []
    for near in (images, captions):
        violation = (margin + near - positive[:, None]).clamp(min=0)
        costs.append(violation.mean(1))
    return torch.stack(costs)

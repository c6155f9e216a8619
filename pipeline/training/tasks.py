"""What a recipe trains in a round: embeddings, scores of pairs, or several in turn.

The step of the task `emb` is in step.py. Those of `ce` and `ance`, which a cross-encoder learns, are here: over right
pairs, and wrong ones that are drawn for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline import heads
from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.heads.base import HeadNetwork
from pipeline.heads.cross import PAIR_OBJECTIVES, CrossEncoder, PairObjective, margins
from pipeline.heads.objectives import Objective
from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.settings import Recipe
from pipeline.settings.recipe import Ance, Pairs
from pipeline.text import Text
from pipeline.training import checkpoint
from pipeline.training.batches import Batch, TrainingBatches, ahead, joined
from pipeline.training.head import load
from pipeline.training.optimizer import Step, TrainingPrecision, Update
from pipeline.training.scoring import embed
from pipeline.training.source import stored
from pipeline.training.step import TrainingStep
from pipeline.training.training_job import TrainingJob

AT_ONCE = 1 << 25
"""Similarities in memory at once: 128 MB."""


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


def step_of(task: str, model: HeadNetwork, update: Update, recipe: Recipe) -> Step[Any]:
    """Build the step of one of a recipe's tasks."""
    if task == "emb":
        return TrainingStep.of(model, update, recipe)
    if not isinstance(model, CrossEncoder):
        raise InputError(f"the architecture {recipe.architecture.name} does not score pairs; the task {task} is for "
                         "the architecture cross, so leave it out of the recipe's tasks")
    return PairStep(model, update, PAIR_OBJECTIVES[recipe.pairs.objective]) if task == "ce" \
        else AnceStep(model, update, recipe.ance)


def in_turn(tasks: Sequence[str]) -> Sequence[str]:
    """List the tasks of a round in their order."""
    return tasks if "ance" in tasks or tasks.count("ce") > 1 else [task for task in ("emb", "ce") if task in tasks]


@dataclass
class Tasks:
    """A head's steps, one of each task in turn on every round."""

    model: HeadNetwork
    update: Update
    steps: dict[str, Step[Any]]  # by task
    order: Sequence[str]  # the tasks of a round

    @classmethod
    def of(cls, job: TrainingJob, model: HeadNetwork, device: str) -> Tasks:
        """Build the steps of a recipe's tasks."""
        update = Update.of(model, job.recipe, job.training, job.processes, device)
        steps: dict[str, Step[Any]] = {task: step_of(task, model, update, job.recipe) for task in job.recipe.tasks}
        return cls(model, update, steps, in_turn(job.recipe.tasks))

    def __call__(self, batches: Sequence[Any]) -> dict[str, float]:
        """Update the weights, once for each task, from its batch."""
        log: dict[str, float] = {}
        for task, batch in zip(self.order, batches, strict=True):
            before = "" if task == "emb" or "emb" not in self.steps else f"{task}_"
            log |= {before + name: value for name, value in self.steps[task](batch).items()}
        return log

    @property
    def objective(self) -> Objective | None:
        """The objective that embeddings are trained by; None where none are."""
        step = self.steps.get("emb")
        return step.objective if isinstance(step, TrainingStep) else None


class Rounds:
    """Right pairs in random order, and for each task of a round what its step reads with them."""

    nearest: Nearest | None = None
    """The nearest wrong images and captions, for hard negatives; see `find_nearest`."""

    def __init__(self, job: TrainingJob, split: Split, text: Text, keep_first: bool) -> None:
        training, recipe, processes = job.training, job.recipe, job.processes
        self.right = TrainingBatches(
            job.source, split, text, training.batch_size, job.seed, recipe.drop_items, recipe.drop_tokens,
            (processes.rank, processes.count), keep_first, recipe.sampling,
            training.steps and training.steps // training.epochs, heads.reads_graphs(recipe))
        self.job, self.order = job, in_turn(recipe.tasks)
        if self.order != ["emb"] and len(np.unique(split.caption_image)) < 2:
            raise InputError("training on pairs needs two images or more, for wrong pairs")
        whole = min(recipe.ance.batch, self.right.batch_size)
        self.near, left = divmod(whole, processes.count)
        if left and "ance" in self.order:
            raise InputError(f"recipe's ance.batch: {whole} right pairs cannot be shared by {processes.count} "
                             "processes in equal parts")

    def __len__(self) -> int:
        return len(self.right)

    def find_nearest(self, model: HeadNetwork, precision: TrainingPrecision) -> None:
        """Find an epoch's hard negatives, if the recipe has them: by the head itself again, by a retriever once."""
        job, split, size = self.job, self.right.split, self.job.training.batch_size
        if not ("ance" in self.order or ("ce" in self.order and job.recipe.pairs.hard)):
            return
        if job.retriever is None:
            with precision.autocast():
                vectors = embed(model, job.source, split, self.right.text, size)
        elif self.nearest is None:
            description = checkpoint.read_description(job.retriever)
            if description.get("feature") != job.feature or "finetuned" in description:
                raise InputError(f"{job.retriever}: hard negatives need a head that reads the stored {job.feature} "
                                 "features as well")
            store = stored(job.source.path, job.manifest, Recipe.model_validate(description["recipe_settings"]))
            retriever = load(job.retriever, job.manifest, store, job.training.device)
            vectors = embed(retriever.model, store, split, retriever.text, size)
        else:
            return
        self.nearest = nearest(*vectors, split.caption_image, job.recipe.pairs.nearest)

    def epoch(self, number: int) -> Iterator[Sequence[Any]]:
        """Read the rounds of an epoch, a batch for each task, ahead of their use, in a thread."""
        return ahead(self._round((self.right.seed, number, step), captions)
                     for step, captions in enumerate(self.right.drawn(number)))

    def _round(self, key: tuple[int, int, int], captions: Ids) -> Sequence[Any]:
        right, recipe = self.right.batch(*key[1:], captions), self.job.recipe
        read: list[Any] = []
        drawn = 2 if self.order.count("ce") == 1 and "ance" not in self.order else 4
        for task in self.order:
            if task == "emb":
                read.append(right)
            elif task == "ce":
                read.append(PairBatch.of(self.right, right, captions, recipe.pairs, self.nearest,
                                         np.random.default_rng((*key, drawn))))
                drawn += 1
            else:
                assert self.nearest is not None
                read.append(AnceBatch.of(self.right, captions[self.right.own][:self.near], recipe.ance, self.nearest,
                                         np.random.default_rng((*key, 3, self.right.own.start))))
        return read

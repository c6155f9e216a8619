"""What a recipe trains in a round: embeddings, scores of pairs, or several in turn.

The step of the task `emb` is in step.py, those of `ce` and `ance` are in pairs.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe
from pipeline.make import heads
from pipeline.make.heads.base import HeadNetwork
from pipeline.make.heads.cross import PAIR_OBJECTIVES, CrossEncoder
from pipeline.make.heads.objectives import Objective
from pipeline.make.text import Text
from pipeline.make.training import scoring
from pipeline.make.training.batches import Drawing, TrainingBatches, ahead
from pipeline.make.training.head import Head
from pipeline.make.training.optimizer import Step, TrainingPrecision, Update
from pipeline.make.training.pairs import AnceStep, Nearest, PairBatch, PairStep, nearest
from pipeline.make.training.step import TrainingStep
from pipeline.make.training.training_job import TrainingJob


def step_of(task: str, model: HeadNetwork, update: Update, recipe: Recipe) -> Step[Any]:
    """Build the step of one of a recipe's tasks."""
    if task == "emb":
        return TrainingStep.of(model, update, recipe)
    if not isinstance(model, CrossEncoder):
        raise InputError(
            f"the architecture {recipe.architecture.name} does not score pairs; the task {task} is for "
            "the architecture cross, so leave it out of the recipe's tasks"
        )
    if task == "ce":
        return PairStep(model, update, PAIR_OBJECTIVES[recipe.pairs.objective])
    return AnceStep(model, update, recipe.ance)


def in_turn(tasks: Sequence[str]) -> Sequence[str]:
    """Order the tasks of a round: as the recipe does if it has `ance` or several `ce`, else `emb`
    before `ce`.
    """
    if "ance" in tasks or tasks.count("ce") > 1:
        return tasks
    return [task for task in ("emb", "ce") if task in tasks]


@dataclass
class Tasks:
    """A head's steps. A round takes one step of each task in `order`."""

    model: HeadNetwork
    update: Update
    steps: dict[str, Step[Any]]  # by task
    order: Sequence[str]  # the tasks of a round

    @classmethod
    def of(cls, job: TrainingJob, model: HeadNetwork, device: str) -> "Tasks":
        """Build the steps of a recipe's tasks."""
        recipe = job.recipe
        update = Update.of(model, recipe, job.training, job.processes, device)
        steps: dict[str, Step[Any]] = {}
        for task in recipe.tasks:
            steps[task] = step_of(task, model, update, recipe)
        return cls(model, update, steps, in_turn(recipe.tasks))

    def __call__(self, batches: Sequence[Any]) -> dict[str, float]:
        """Update the weights, once for each task, from its batch."""
        log: dict[str, float] = {}
        for task, batch in zip(self.order, batches, strict=True):
            prefix = f"{task}_"
            if task == "emb" or "emb" not in self.steps:
                prefix = ""
            for name, value in self.steps[task](batch).items():
                log[prefix + name] = value
        return log

    @property
    def objective(self) -> Objective | None:
        """The objective that trains embeddings; None if none are trained."""
        step = self.steps.get("emb")
        if isinstance(step, TrainingStep):
            return step.objective
        return None


class Rounds:
    """The batches of an epoch's rounds: positive pairs in random order, and for each task what its
    step reads.
    """

    # The nearest negatives; see `find_nearest`.
    nearest: Nearest | None = None

    def __init__(self, job: TrainingJob, split: Split, text: Text, keep_first: bool) -> None:
        training = job.training
        recipe = job.recipe
        processes = job.processes
        steps_of_epoch = None
        if training.steps:
            steps_of_epoch = training.steps // training.epochs
        drawing = Drawing(
            training.batch_size,
            job.seed,
            (processes.rank, processes.count),
            recipe.sampling,
            steps_of_epoch,
        )
        self.pairs = TrainingBatches(
            job.source,
            split,
            text,
            drawing,
            recipe.drop_items,
            recipe.drop_tokens,
            keep_first,
            heads.caption_reading(recipe),
        )
        self.job = job
        self.order = in_turn(recipe.tasks)
        if self.order != ["emb"] and len(np.unique(split.caption_image)) < 2:
            raise InputError("training on pairs needs two images or more, for negatives")
        whole = min(recipe.ance.batch, self.pairs.batch_size)
        self.near, left = divmod(whole, processes.count)
        if left and "ance" in self.order:
            raise InputError(
                f"recipe's ance.batch: {whole} positive pairs cannot be shared by {processes.count} "
                "processes in equal parts"
            )

    def __len__(self) -> int:
        return len(self.pairs)

    def find_nearest(self, model: HeadNetwork, precision: TrainingPrecision) -> None:
        """Find an epoch's hard negatives, if the recipe has them: by the head in every epoch, by a
        retriever once.
        """
        job = self.job
        split = self.pairs.split
        size = job.training.batch_size
        if not self._needs_nearest:
            return
        if job.retriever is None:
            with precision.autocast():
                vectors = scoring.embed(model, job.source, split, self.pairs.text, size)
        elif self.nearest is None:
            vectors = self._by_retriever(job.retriever)
        else:
            return
        images, captions = vectors
        pairs = job.recipe.pairs
        self.nearest = nearest(images, captions, split.caption_image, pairs.nearest, pairs.index)

    @property
    def _needs_nearest(self) -> bool:
        return "ance" in self.order or ("ce" in self.order and bool(self.job.recipe.pairs.hard))

    def _by_retriever(self, folder: Path) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of the split's images and captions by the head of a folder."""
        job = self.job
        retriever = Head.open(folder, job.training.device)
        if retriever.feature != job.feature or retriever.artefact.facts.own_network:
            raise InputError(
                f"{folder}: hard negatives need a head that reads the stored {job.feature} "
                "features as well"
            )
        source = retriever.images(job.manifest, job.source.path)
        return retriever.embed(source, self.pairs.split, job.training.batch_size)

    def epoch(self, number: int) -> Iterator[Sequence[Any]]:
        """Read the rounds of an epoch, a batch for each task, ahead of their use, in a thread."""
        drawn = enumerate(self.pairs.drawn(number))
        return ahead(
            self._round((self.pairs.seed, number, step), captions) for step, captions in drawn
        )

    def _round(self, key: tuple[int, int, int], captions: Ids) -> Sequence[Any]:
        _, epoch, step = key
        positives = self.pairs.batch(epoch, step, captions)
        pairs = self.job.recipe.pairs
        batches: list[Any] = []
        drawn = 4
        if self.order.count("ce") == 1 and "ance" not in self.order:
            drawn = 2
        for task in self.order:
            if task == "emb":
                batches.append(positives)
            elif task == "ce":
                rng = np.random.default_rng((*key, drawn))
                drawn += 1
                batch = PairBatch.drawn(self.pairs, positives, captions, pairs, self.nearest, rng)
                batches.append(batch)
            else:
                batches.append(self._near(key, captions))
        return batches

    def _near(self, key: tuple[int, int, int], captions: Ids) -> PairBatch:
        """The batch of the task `ance`."""
        assert self.nearest is not None
        own = self.pairs.own
        rng = np.random.default_rng((*key, 3, own.start))
        own_captions = captions[own][: self.near]
        return PairBatch.near(self.pairs, own_captions, self.job.recipe.ance, self.nearest, rng)

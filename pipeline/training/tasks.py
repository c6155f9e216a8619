"""What a recipe trains in a round: embeddings, scores of pairs, or several in turn.

The step of the task `emb` is in step.py, those of `ce` and `ance` are in pairs.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline import heads
from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.heads.base import HeadNetwork
from pipeline.heads.cross import PAIR_OBJECTIVES, CrossEncoder
from pipeline.heads.objectives import Objective
from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.settings import Recipe
from pipeline.text import Text
from pipeline.training import scoring
from pipeline.training.batches import TrainingBatches, ahead
from pipeline.training.head import Head
from pipeline.training.optimizer import Step, TrainingPrecision, Update
from pipeline.training.pairs import AnceStep, Nearest, PairBatch, PairStep, nearest
from pipeline.training.step import TrainingStep
from pipeline.training.training_job import TrainingJob


def step_of(task: str, model: HeadNetwork, update: Update, recipe: Recipe) -> Step[Any]:
    """Build the step of one of a recipe's tasks."""
    if task == "emb":
        return TrainingStep.of(model, update, recipe)
    if not isinstance(model, CrossEncoder):
        raise InputError(
            f"the architecture {recipe.architecture.name} does not score pairs; the task {task} is for "
            "the architecture cross, so leave it out of the recipe's tasks"
        )
    return (
        PairStep(model, update, PAIR_OBJECTIVES[recipe.pairs.objective])
        if task == "ce"
        else AnceStep(model, update, recipe.ance)
    )


def in_turn(tasks: Sequence[str]) -> Sequence[str]:
    """Order the tasks of a round: as the recipe does if it has `ance` or several `ce`, else `emb`
    before `ce`.
    """
    return (
        tasks
        if "ance" in tasks or tasks.count("ce") > 1
        else [task for task in ("emb", "ce") if task in tasks]
    )


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
        update = Update.of(model, job.recipe, job.training, job.processes, device)
        steps: dict[str, Step[Any]] = {
            task: step_of(task, model, update, job.recipe) for task in job.recipe.tasks
        }
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
        """The objective that trains embeddings; None if none are trained."""
        step = self.steps.get("emb")
        return step.objective if isinstance(step, TrainingStep) else None


class Rounds:
    """The batches of an epoch's rounds: positive pairs in random order, and for each task what its
    step reads.
    """

    # The nearest negatives; see `find_nearest`.
    nearest: Nearest | None = None

    def __init__(self, job: TrainingJob, split: Split, text: Text, keep_first: bool) -> None:
        training, recipe, processes = job.training, job.recipe, job.processes
        self.pairs = TrainingBatches(
            job.source,
            split,
            text,
            training.batch_size,
            job.seed,
            recipe.drop_items,
            recipe.drop_tokens,
            (processes.rank, processes.count),
            keep_first,
            recipe.sampling,
            training.steps and training.steps // training.epochs,
            heads.reads_graphs(recipe),
        )
        self.job, self.order = job, in_turn(recipe.tasks)
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
        job, split, size = self.job, self.pairs.split, self.job.training.batch_size
        if not ("ance" in self.order or ("ce" in self.order and job.recipe.pairs.hard)):
            return
        if job.retriever is None:
            with precision.autocast():
                vectors = scoring.embed(model, job.source, split, self.pairs.text, size)
        elif self.nearest is None:
            retriever = Head.open(job.retriever, job.training.device)
            if retriever.feature != job.feature or retriever.artefact.facts.own_network:
                raise InputError(
                    f"{job.retriever}: hard negatives need a head that reads the stored {job.feature} "
                    "features as well"
                )
            vectors = retriever.embed(retriever.images(job.manifest, job.source.path), split, size)
        else:
            return
        self.nearest = nearest(
            *vectors, split.caption_image, job.recipe.pairs.nearest, job.recipe.pairs.index
        )

    def epoch(self, number: int) -> Iterator[Sequence[Any]]:
        """Read the rounds of an epoch, a batch for each task, ahead of their use, in a thread."""
        return ahead(
            self._round((self.pairs.seed, number, step), captions)
            for step, captions in enumerate(self.pairs.drawn(number))
        )

    def _round(self, key: tuple[int, int, int], captions: Ids) -> Sequence[Any]:
        positives, recipe = self.pairs.batch(*key[1:], captions), self.job.recipe
        read: list[Any] = []
        drawn = 2 if self.order.count("ce") == 1 and "ance" not in self.order else 4
        for task in self.order:
            if task == "emb":
                read.append(positives)
            elif task == "ce":
                read.append(
                    PairBatch.drawn(
                        self.pairs,
                        positives,
                        captions,
                        recipe.pairs,
                        self.nearest,
                        np.random.default_rng((*key, drawn)),
                    )
                )
                drawn += 1
            else:
                assert self.nearest is not None
                read.append(
                    PairBatch.near(
                        self.pairs,
                        captions[self.pairs.own][: self.near],
                        recipe.ance,
                        self.nearest,
                        np.random.default_rng((*key, 3, self.pairs.own.start)),
                    )
                )
        return read

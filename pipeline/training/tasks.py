"""What a recipe trains in a round: embeddings, scores of pairs, or several in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pipeline import heads, objectives
from pipeline.errors import InputError
from pipeline.heads.base import HeadNetwork
from pipeline.heads.cross import CrossEncoder
from pipeline.heads.interaction import Interaction
from pipeline.manifest import Split
from pipeline.objectives.pairs import PAIR_OBJECTIVES
from pipeline.text import Text
from pipeline.training import hard_negatives, source
from pipeline.training.ance_step import AnceStep
from pipeline.training.batches import Batch, TrainingBatches
from pipeline.training.embedding import embed
from pipeline.training.head import load as load_head
from pipeline.training.late_step import LateStep
from pipeline.training.pair_batches import PairBatch, PairBatches
from pipeline.training.pair_step import PairStep
from pipeline.training.round_batches import Round, RoundBatches
from pipeline.training.step import TrainingStep
from pipeline.training.training_job import TrainingJob
from pipeline.training.update import Update

Log: TypeAlias = dict[str, float]


@dataclass
class Tasks:
    """A head's steps, one of each task in turn on every batch."""

    model: HeadNetwork  # the network
    update: Update  # the means of an update, of all tasks
    emb: TrainingStep | None  # the step that trains embeddings, if the recipe does
    ce: PairStep | None  # the step that trains scores of pairs, if the recipe does
    ance: AnceStep | None = None  # the step that trains embeddings by near negatives, if the recipe does
    order: Sequence[str] = ()  # the tasks of a round

    def __call__(self, batch: Batch | PairBatch | Round) -> Log:
        """Move the weights, once for each task."""
        if isinstance(batch, Round):
            return self._round(batch)
        right = batch.right if isinstance(batch, PairBatch) else batch
        log = self.emb(right) if self.emb else {}
        if self.ce is None:
            return log
        assert isinstance(batch, PairBatch)
        before = "ce_" if self.emb else ""
        return log | {before + name: value for name, value in self.ce(batch).items()}

    def _round(self, batch: Round) -> Log:
        log: Log = {}
        pairs, before = iter(batch.pairs), "ce_" if self.emb else ""
        for task in self.order:
            if task == "emb":
                assert self.emb is not None
                log |= self.emb(batch.right)
            elif task == "ce":
                assert self.ce is not None
                log |= {before + name: value for name, value in self.ce(next(pairs)).items()}
            else:
                assert self.ance is not None
                log |= {f"ance_{name}": value for name, value in self.ance(batch.near).items()}
        return log

    def start_epoch(self, epoch: int) -> None:
        """Prepare the objective of embeddings."""
        if self.emb:
            self.emb.objective.start_epoch(epoch)


def build(job: TrainingJob, model: HeadNetwork, device: str) -> Tasks:
    """Build the steps of a recipe's tasks."""
    recipe = job.recipe
    update = Update.of(model, recipe, job.training, job.processes, device)
    emb = ce = None
    if "emb" in recipe.tasks:
        objective = objectives.build(recipe.objective.name, **recipe.objective.options)
        kind = LateStep if isinstance(model, Interaction) else TrainingStep
        emb = kind(model, update, objective, recipe.same_image_negatives)
    if "ce" in recipe.tasks:
        if not isinstance(model, CrossEncoder):
            raise InputError(f"the architecture {recipe.architecture.name} does not score pairs; leave ce out of the "
                             "recipe's tasks, or set its architecture to cross")
        ce = PairStep(model, update, PAIR_OBJECTIVES[recipe.pairs.objective])
    ance = None
    if "ance" in recipe.tasks:
        if not isinstance(model, CrossEncoder):
            raise InputError(f"the task ance is for the architecture cross, received {recipe.architecture.name}; leave "
                             "it out of the recipe's tasks")
        ance = AnceStep(model, update, recipe.ance)
    return Tasks(model, update, emb, ce, ance, recipe.tasks)


def batches(job: TrainingJob, split: Split, text: Text, keep_first: bool) -> TrainingBatches:
    """Build the batches that a recipe's tasks need."""
    training, recipe = job.training, job.recipe
    steps = training.steps and training.steps // training.epochs
    given = (job.source, split, text, training.batch_size, job.seed, recipe.drop_items, recipe.drop_tokens,
             (job.processes.rank, job.processes.count), keep_first, recipe.sampling, steps, heads.reads_graphs(recipe))
    if "ance" in recipe.tasks or recipe.tasks.count("ce") > 1:
        return RoundBatches(recipe, *given)
    return PairBatches(recipe.pairs, *given) if "ce" in recipe.tasks else TrainingBatches(*given)


def find_hard_negatives(job: TrainingJob, made: TrainingBatches, step: Tasks, text: Text) -> None:
    """Give the batches of an epoch their hard negatives, if the recipe has them.

    By a retriever they are found once, by the head's own embeddings before each epoch.
    """
    if not isinstance(made, PairBatches) or not (job.recipe.pairs.hard or "ance" in job.recipe.tasks):
        return
    if job.retriever is None:
        with step.update.precision.autocast():
            vectors = embed(step.model, job.source, made.split, text, job.training.batch_size)
    elif made.nearest is None:
        store = source.stored(job.source.path, job.manifest, job.retriever_recipe)
        head = load_head(job.retriever, job.manifest, store, job.training.device)
        vectors = embed(head.model, store, made.split, head.text, job.training.batch_size)
    else:
        return
    made.nearest = hard_negatives.nearest(*vectors, made.split.caption_image, job.recipe.pairs.nearest)

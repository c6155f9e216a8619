"""From a batch to an update of the weights: what the steps of all tasks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from pipeline.heads.base import HeadNetwork
from pipeline.settings import Recipe, Training
from pipeline.training import optimizer
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.processes import Processes

AnyBatch = TypeVar("AnyBatch")


@dataclass
class Update:
    """The means of an update: one for all steps of a head."""

    optimizer: torch.optim.Optimizer  # of all weights
    precision: TrainingPrecision  # the precision of forward and backward passes
    processes: Processes  # the processes that share a batch
    pieces: int  # into how many pieces each process divides its share, to save memory
    gradient_clip: float  # the largest norm of the gradients

    @classmethod
    def of(cls, model: HeadNetwork, recipe: Recipe, training: Training, processes: Processes,
           device: str) -> Update:
        """Build what a recipe and a section of `training` ask for."""
        return cls(optimizer.build(model, recipe), TrainingPrecision(training.precision, device), processes,
                   training.pieces, recipe.gradient_clip)


@dataclass
class Step(ABC, Generic[AnyBatch]):
    """One update of the weights from one batch.

    Attributes:
        model: The network.
        update: The means.
    """

    model: HeadNetwork
    update: Update

    def __call__(self, batch: AnyBatch) -> dict[str, float]:
        """Update the weights."""
        self.update.optimizer.zero_grad(set_to_none=True)
        log = self.gradients(batch)
        means = self.update
        return {**log, "gradient": means.precision.move(self.model, means.optimizer, means.gradient_clip)}

    def gradients(self, batch: AnyBatch) -> dict[str, float]:
        """Add the gradients of the whole batch, all processes' shares, to the weights."""
        log = self._share(batch)
        self.update.processes.add_up(weight.grad for weight in self.model.parameters() if weight.grad is not None)
        return log

    @abstractmethod
    def _share(self, batch: AnyBatch) -> dict[str, float]:
        """Add the gradients of this process's share to the weights, and return the log."""

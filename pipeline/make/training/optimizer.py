"""The update of the weights that all tasks share: optimizer, learning rate, precision, from a batch
to a step.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from pipeline.foundation.compute.device import autocast
from pipeline.foundation.settings import Learning, Length
from pipeline.make.heads.base import HeadNetwork
from pipeline.make.training.processes import Processes

DECAY = 0.1


def build(model: HeadNetwork, recipe: Learning) -> torch.optim.Optimizer:
    """Build the recipe's optimizer, with learning rates of their own for pretrained parts; 0
    freezes one.
    """
    backbone = ""
    if model.backbone is not None:
        backbone = model.backbone.name
    pretrained = []
    for name, part in model.pretrained.items():
        multiplier = recipe.multiplier(name, backbone)
        if not multiplier:
            part.requires_grad_(False)
        pretrained.append((multiplier, list(part.parameters())))
    apart = set[nn.Parameter]()
    for _, weights in pretrained:
        apart.update(weights)
    new = [weight for weight in model.parameters() if weight not in apart]
    groups = []
    for multiplier, weights in [(1.0, new), *pretrained]:
        if multiplier:
            for decayed, decay in _by_decay(weights, recipe):
                groups.append({"params": decayed, "multiplier": multiplier, **decay})
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimizer]
    return kind(
        groups,
        lr=recipe.learning_rate,
        eps=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def _by_decay(
    weights: list[nn.Parameter], recipe: Learning
) -> list[tuple[list[nn.Parameter], dict[str, float]]]:
    """Divide weights into those with the recipe's weight decay and those without."""
    if recipe.decayed == "all":
        return [(weights, {})]
    decayed = [weight for weight in weights if weight.dim() > 1]
    others = [weight for weight in weights if weight.dim() <= 1]
    parts: list[tuple[list[nn.Parameter], dict[str, float]]] = []
    if decayed:
        parts.append((decayed, {}))
    if others:
        parts.append((others, {"weight_decay": 0.0}))
    return parts


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate; pretrained parts learn at their multiple of it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["multiplier"]


def learning_rate(recipe: Learning, training: Length, epoch: int, step: int, steps: int) -> float:
    """Compute the learning rate of a step.

    It is multiplied by 0.1 once, after `decay_epoch` epochs (VSE+2AD section 4.2, VSE∞ A.1), and
    rises linearly over the epoch after the first `warmup_epoch` to the full rate at its last step
    (VSE∞ A.1). Or it falls linearly to 0 (Geigle et al., section 5).
    """
    rate = recipe.learning_rate
    if recipe.decay == "linear":
        rate = rate * (1 - (epoch * steps + step) / (training.epochs * steps))
    elif epoch >= training.decay_epoch:
        rate = rate * DECAY
    if epoch == recipe.warmup_epoch:
        rate = rate * (step + 1) / steps
    return rate


class TrainingPrecision:
    """Float32, or autocast to bf16 or fp16; with fp16 the loss is scaled, so that small gradients
    are kept.
    """

    def __init__(self, name: str, device: str) -> None:
        self.name = name
        self.device = torch.device(device).type
        # A triplet loss sums over the batch: torch's default initial scale, 65,536, overflows for a
        # while.
        self.scaler = torch.amp.GradScaler(self.device, init_scale=1024.0, enabled=name == "fp16")

    def autocast(self) -> AbstractContextManager[Any]:
        """Open the context of a forward pass."""
        return autocast(self.device, self.name)

    def scaled(self, loss: Tensor) -> Tensor:
        """Scale the loss for the backward pass."""
        return self.scaler.scale(loss)

    def move(self, model: nn.Module, optimizer: torch.optim.Optimizer, clip: float) -> float:
        """Clip the gradients' norm and take the optimizer's step; with fp16 not if a gradient
        overflows.
        """
        self.scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        self.scaler.step(optimizer)
        self.scaler.update()
        return float(norm)


AnyBatch = TypeVar("AnyBatch")


@dataclass
class Update:
    """What every update uses; all steps of a head share one."""

    optimizer: torch.optim.Optimizer  # of all weights
    precision: TrainingPrecision  # the precision of forward and backward passes
    processes: Processes  # the processes that share a batch
    pieces: int  # into how many pieces each process divides its share, to save memory
    gradient_clip: float  # the largest norm of the gradients

    @classmethod
    def of(
        cls,
        model: HeadNetwork,
        recipe: Learning,
        training: Length,
        processes: Processes,
        device: str,
    ) -> Self:
        """Build what a recipe and a section of `training` ask for."""
        return cls(
            build(model, recipe),
            TrainingPrecision(training.precision, device),
            processes,
            training.pieces,
            recipe.gradient_clip,
        )


@dataclass
class Step(ABC, Generic[AnyBatch]):
    """One update of the weights from one batch."""

    model: HeadNetwork  # the network
    update: Update  # optimizer, precision, processes, pieces

    def __call__(self, batch: AnyBatch) -> dict[str, float]:
        update = self.update
        update.optimizer.zero_grad(set_to_none=True)
        log = self.gradients(batch)
        norm = update.precision.move(self.model, update.optimizer, update.gradient_clip)
        return {**log, "gradient": norm}

    def gradients(self, batch: AnyBatch) -> dict[str, float]:
        """Add the gradients of the whole batch, all processes' shares, to the weights."""
        log = self._share(batch)
        gradients = [parameter.grad for parameter in self.model.parameters()]
        self.update.processes.add_up(grad for grad in gradients if grad is not None)
        return log

    @abstractmethod
    def _share(self, batch: AnyBatch) -> dict[str, float]:
        """Add the gradients of this process's share to the weights, and return the log."""

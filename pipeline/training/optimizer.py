"""How weights move: optimizer, the schedule of its rate, and the precision of forward and backward passes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.heads.two_tower import TwoTower
from pipeline.settings import Recipe, Training

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
DECAY = 0.1


def build(model: TwoTower, recipe: Recipe) -> torch.optim.Optimizer:
    """The recipe's optimizer over all weights of the model, those of pretrained parts with multipliers of their own."""
    multipliers = {"text": recipe.text_multiplier, "backbone": of_backbone(model, recipe)}
    parts = [(multipliers[name], list(part.parameters())) for name, part in model.pretrained.items()]
    apart = {weight for _, weights in parts for weight in weights}
    groups = [(1.0, [weight for weight in model.parameters() if weight not in apart]), *parts]
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimizer]
    return kind([{"params": weights, "multiplier": multiplier} for multiplier, weights in groups],
                lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)


def of_backbone(model: TwoTower, recipe: Recipe) -> float:
    """The multiplier of the network that makes the features: of the first key that its name holds, else of "other"."""
    name = model.backbone.name if model.backbone is not None else ""
    found = (value for key, value in recipe.backbone_multipliers.items() if key in name)
    return next(found, recipe.backbone_multipliers["other"])


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Learn at this rate from now on, pretrained parts at their multiple of it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["multiplier"]


def learning_rate(recipe: Recipe, training: Training, epoch: int, step: int, steps: int) -> float:
    """The rate of a step (0-based) of an epoch (0-based) of `steps`.

    x 0.1 once, from decay_epoch on (VSE+2AD section 4.2, VSE∞ A.1); rising linearly over the epoch
    `warmup_epoch`, to the full rate at its last step (VSE∞ A.1).
    """
    rate = recipe.learning_rate * (DECAY if epoch >= training.decay_epoch else 1.0)
    return rate * (step + 1) / steps if epoch == recipe.warmup_epoch else rate


class Precision:
    """fp32 throughout, or autocast to bf16 or fp16; with fp16 the loss is scaled, so that small gradients survive.

    Weights, similarities and the objective are float32 in any case.
    """

    def __init__(self, name: str, device: str) -> None:
        self.name, self.device = name, torch.device(device).type
        # A triplet loss sums over the batch: torch's own first scale, 65,536, overflows for a while.
        self.scaler = torch.amp.GradScaler(self.device, init_scale=1024.0, enabled=name == "fp16")

    def autocast(self) -> AbstractContextManager[Any]:
        """For forward passes."""
        return torch.autocast(self.device, PRECISIONS[self.name], enabled=self.name != "fp32")

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss to take gradients of."""
        return self.scaler.scale(loss)

    def move(self, model: nn.Module, optimizer: torch.optim.Optimizer, clip: float) -> float:
        """Clip the gradients' norm and take the optimizer's step. Returns the norm before clipping.

        With fp16 a step whose gradients overflow is left out, and the next loss scaled less.
        """
        self.scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        self.scaler.step(optimizer)
        self.scaler.update()
        return float(norm)

    def state(self) -> dict[str, Any]:
        """What a resumed run goes on with: JSON."""
        return self.scaler.state_dict()

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what `state` gave."""
        if state:
            self.scaler.load_state_dict(state)

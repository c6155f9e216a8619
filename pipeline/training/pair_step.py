"""One update of the weights from a batch of right and wrong pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.heads.cross import CrossEncoder
from pipeline.objectives.pairs import PairObjective, margins
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.pair_batches import PairBatch
from pipeline.training.processes import Processes


@dataclass
class PairStep:
    """A training step over pairs.

    A batch in `pieces`, spread over `processes`, gives the gradients of the whole batch, except for rounding and for
    what dropout draws.

    Attributes:
        model: The network.
        objective: The loss.
        optimizer: Its optimizer.
        precision: The precision of forward and backward passes.
        processes: The processes that share a batch.
        pieces: Into how many pieces each process divides its share, to save memory.
        gradient_clip: The largest norm of the gradients.
    """

    model: CrossEncoder
    objective: PairObjective
    optimizer: torch.optim.Optimizer
    precision: TrainingPrecision
    processes: Processes
    pieces: int
    gradient_clip: float

    def __call__(self, batch: PairBatch) -> dict[str, float]:
        """Move the weights.

        Args:
            batch: This process's share.

        Returns:
            loss; "first", the share of right pairs that score higher than their wrong ones; of the scores "similarity",
            "separation" and "spread" as `TrainingStep` has them; "gradient", the gradients' norm before clipping.
        """
        self.optimizer.zero_grad(set_to_none=True)
        device = next(self.model.parameters()).device
        parts = [part.to(device) for part in (batch.tokens, batch.lengths, batch.items, batch.counts)]
        loss, scores = torch.zeros((), device=device), []
        for caption, image in zip(batch.caption.chunk(self.pieces), batch.image.chunk(self.pieces), strict=True):
            with self.precision.autocast():
                logits = self.model(*parts, caption.flatten().to(device), image.flatten().to(device))
            part = self.objective(logits.unflatten(0, caption.shape))
            part = part * (len(caption) / (len(batch.caption) * self.processes.count))
            self.precision.scaled(part).backward()
            loss += part.detach()
            scores.append(margins(logits.detach()).unflatten(0, caption.shape))
        whole = loss[None].clone(), self.processes.gather(torch.cat(scores))
        self.processes.add_up(whole[:1])
        self.processes.add_up(weight.grad for weight in self.model.parameters() if weight.grad is not None)
        return {"loss": float(whole[0]), **_state(whole[1]),
                "gradient": self.precision.move(self.model, self.optimizer, self.gradient_clip)}


def _state(scores: Tensor) -> dict[str, float]:
    right, wrong = scores[:, :1], scores[:, 1:]
    state = {"first": (right > wrong).all(1).float().mean(), "similarity": scores.mean(),
             "separation": right.mean() - wrong.mean(), "spread": scores.max() - scores.min()}
    return {name: float(value) for name, value in state.items()}

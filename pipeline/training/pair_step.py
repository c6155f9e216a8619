"""One update of the weights from a batch of right and wrong pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.heads.cross import CrossEncoder
from pipeline.objectives.pairs import PairObjective, margins
from pipeline.training.pair_batches import PairBatch
from pipeline.training.update import Step


@dataclass
class PairStep(Step[PairBatch]):
    """A training step over pairs.

    A batch in `pieces`, spread over `processes`, gives the gradients of the whole batch, except for rounding and for
    what dropout draws.

    Its log: loss; "first", the share of right pairs that score higher than their wrong ones; of the scores
    "similarity", "separation" and "spread" as `TrainingStep` has them.
    """

    model: CrossEncoder  # the network
    objective: PairObjective  # the loss

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

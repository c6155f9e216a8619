"""One update of the weights of a late-interaction head from one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pipeline.errors import InputError
from pipeline.heads.interaction import Interaction
from pipeline.training.batches import Batch
from pipeline.training.step import TrainingStep, state_of


@dataclass
class LateStep(TrainingStep):
    """A training step over the similarities of all images and captions of a batch.

    Parts of every caption meet parts of every image, so a batch is neither divided into pieces nor shared.
    """

    def __post_init__(self) -> None:
        if self.update.pieces > 1 or self.update.processes.count > 1:
            raise InputError("late interaction compares whole batches; set training.NAME.pieces and processes to 1, "
                             "and for less memory a smaller batch_size")

    def _share(self, batch: Batch) -> dict[str, float]:
        model = self.model
        assert isinstance(model, Interaction)
        device = next(model.parameters()).device
        here = batch.to(device)
        with self.update.precision.autocast():
            images = model.image_parts(here.items, here.counts)
            captions = model.caption_parts(here.tokens, here.lengths, here.graphs)
        similarity = model.similarity(images, captions)
        same = None if self.same_image_negatives else batch.same_image().to(device)
        loss = self.objective(similarity, same)
        torch.autograd.backward(self.update.precision.scaled(loss))
        return {"loss": float(loss.detach()), **self.objective.log, **state_of(similarity.detach())}

"""The task `emb`: a step in which all other pairs of a batch are negatives, also those that other
processes embed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from pipeline.foundation.compute.threads import side_by_side
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe
from pipeline.make.heads.base import HeadNetwork, Interaction
from pipeline.make.heads.objectives import OBJECTIVES, Objective
from pipeline.make.heads.projection import ItemMoments
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.training.batches import Batch
from pipeline.make.training.optimizer import Step, Update

Sides = tuple[Tensor, Tensor]
Argument = TypeVar("Argument")
Result = TypeVar("Result")


@dataclass
class TrainingStep(Step[Batch]):
    """A training step.

    A batch in `pieces`, spread over `processes`, gives the gradients of the whole batch, except for
    rounding. As in GradCache (Gao et al. 2021), the pieces are first embedded without a graph; the
    objective and its gradient are computed from all embeddings together; then each piece is
    embedded again, with the same random draws, to propagate that gradient. BatchNorm uses the whole
    batch's moments. Its log: loss; the objective's; and what `state_of` says of the similarities.
    """

    objective: Objective  # the loss
    same_image_negatives: bool  # whether other captions of a pair's image count as negatives

    @staticmethod
    def of(model: HeadNetwork, update: Update, recipe: Recipe) -> "TrainingStep":
        """Build the step of a recipe's task `emb`."""
        objective = OBJECTIVES.build(recipe.objective.name, **recipe.objective.options)
        if isinstance(model, Interaction):
            return LateStep(model, update, objective, recipe.same_image_negatives)
        objective.require(model.dimension)
        return TrainingStep(model, update, objective, recipe.same_image_negatives)

    def _share(self, batch: Batch) -> dict[str, float]:
        processes = self.update.processes
        device = next(self.model.parameters()).device
        pieces = [piece.to(device) for piece in batch.split(self.update.pieces)]
        with self._whole_batch_moments(pieces):
            states = []
            parts: list[Sides] = []
            for piece in pieces:
                states.append(_draws(device))
                with torch.set_grad_enabled(len(pieces) == 1):
                    parts.append(self._embed(piece))
            of_images, of_captions = zip(*parts, strict=True)
            images = processes.gather(torch.cat(of_images).detach())
            captions = processes.gather(torch.cat(of_captions).detach())
            log, gradients = self._objective(images, captions, batch)
            start = processes.rank * sum(len(part[0]) for part in parts)
            for piece, part, state in zip(pieces, parts, states, strict=True):
                rows = slice(start, start + len(part[0]))
                start = rows.stop
                if len(pieces) > 1:
                    with _same_draws(device, state):
                        part = self._embed(piece)
                self._propagate(part, [gradient[rows] for gradient in gradients])
        return log

    def _propagate(self, sides: Sides, gradients: Sequence[Tensor]) -> None:
        """Propagate the gradients of a piece's embeddings through the network."""
        images, captions = sides
        of_images, of_captions = gradients
        self._both(
            lambda pair: torch.autograd.backward(*pair),
            (images, of_images.to(images.dtype)),
            (captions, of_captions.to(captions.dtype)),
        )

    def _embed(self, piece: Batch) -> Sides:
        def embed(side: Callable[[], Tensor]) -> Tensor:
            with self.update.precision.autocast():
                return side()

        return self._both(
            embed,
            partial(self.model.embed_images, piece.images),
            partial(self.model.embed_captions, piece.captions),
        )

    def _both(
        self, work: Callable[[Argument], Result], images: Argument, captions: Argument
    ) -> tuple[Result, Result]:
        """Work on images and on captions: at once on a CPU, where many short operations leave
        threads waiting.
        """
        if self.model.can_run_in_parallel and next(self.model.parameters()).device.type == "cpu":
            return side_by_side(work, images, captions)
        return work(images), work(captions)

    def _objective(
        self, images: Tensor, captions: Tensor, batch: Batch
    ) -> tuple[dict[str, float], list[Tensor]]:
        """The log, and the gradients by all images' and captions' embeddings [B, d]."""
        processes = self.update.processes
        images = images.float().requires_grad_()
        captions = captions.float().requires_grad_()
        similarity = images @ captions.T
        if processes.count > 1:
            # Random numbers in the objective must be the same in all processes.
            states = processes.gather(torch.get_rng_state().to(similarity.device)[None])
            torch.set_rng_state(states[0].cpu())
        loss, log = self._loss(similarity, batch, (images, captions))
        learned = [weight for weight in self.objective.parameters() if weight.requires_grad]
        of_images, of_captions, *of_learned = torch.autograd.grad(
            loss, [images, captions, *learned]
        )
        for weight, gradient in zip(learned, of_learned, strict=True):
            weight.grad = gradient / processes.count  # each process computes it of all pairs
        return log, [of_images, of_captions]

    def _loss(
        self, similarity: Tensor, batch: Batch, vectors: Sides | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss of all pairs, scaled for the backward pass, and the log; vectors: those of which
        the similarities are products.
        """
        same = None
        if not self.same_image_negatives:
            assert batch.images.ids is not None
            ids = self.update.processes.gather(batch.images.ids.to(similarity.device))
            same = ids[:, None] == ids
        if vectors is None:
            loss = self.objective(similarity, same)
        else:
            loss = self.objective.of_vectors(*vectors, similarity, same)
        log = {"loss": float(loss.detach()), **self.objective.log, **state_of(similarity.detach())}
        return self.update.precision.scaled(loss), log

    @contextmanager
    def _whole_batch_moments(self, pieces: list[Batch]) -> Iterator[None]:
        """Give BatchNorm the moments of all pieces in the block; at its end, propagate the
        gradients through them.
        """
        norm = None
        if isinstance(self.model, TwoTower):
            norm = self.model.norm
        if norm is None or len(pieces) * self.update.processes.count == 1:
            yield
            return
        whole = self._moments(pieces)
        norm.give(whole)
        yield
        assert norm.given is not None
        gradients = [moment.grad for moment in norm.given if moment.grad is not None]
        self.update.processes.add_up(gradients)
        for piece in pieces:
            before_norm = self._before_norm(piece).float()
            norm.through_moments(before_norm, whole.count).backward()
        norm.given = None

    def _moments(self, pieces: Sequence[Batch]) -> ItemMoments:
        """The moments of BatchNorm's input over the pieces of all processes."""
        gather = self.update.processes.gather
        with torch.no_grad():
            moments = ItemMoments.of_all(
                ItemMoments.of(self._before_norm(piece)) for piece in pieces
            )
        count = torch.as_tensor(moments.count, device=moments.mean.device)
        counts = gather(count[None])
        means = gather(moments.mean[None])
        squares = gather(moments.squares[None])
        return ItemMoments.of_all(map(ItemMoments, counts.tolist(), means, squares))

    def _before_norm(self, piece: Batch) -> Tensor:
        assert isinstance(self.model, TwoTower)
        with self.update.precision.autocast():
            return self.model.before_norm(piece.images)


@dataclass
class LateStep(TrainingStep):
    """A training step over the similarities of all images and captions of a batch.

    Parts of every caption meet parts of every image, so a batch is neither divided into pieces nor
    shared.
    """

    def __post_init__(self) -> None:
        if self.update.pieces > 1 or self.update.processes.count > 1:
            raise InputError(
                "late interaction compares whole batches; set training.NAME.pieces and processes to 1, "
                "and for less memory a smaller batch_size"
            )

    def _share(self, batch: Batch) -> dict[str, float]:
        model = self.model
        assert isinstance(model, Interaction)
        here = batch.to(next(model.parameters()).device)
        with self.update.precision.autocast():
            images = model.image_parts(here.images)
            captions = model.caption_parts(here.captions)
        loss, log = self._loss(model.similarity(images, captions), batch)
        torch.autograd.backward(loss)
        return log


def state_of(similarity: Tensor) -> dict[str, float]:
    """Summarise the similarities of a batch, float [B, B], positives on the diagonal."""
    batch = len(similarity)
    positive = similarity.diagonal().mean()
    total_of_negatives = similarity.sum() - similarity.trace()
    negative = total_of_negatives / max(batch * (batch - 1), 1)
    spread = similarity.max() - similarity.min()
    # One transfer from the device for all three.
    values = torch.stack([similarity.mean(), positive - negative, spread]).tolist()
    return dict(zip(("similarity", "separation", "spread"), values, strict=True))


def _draws(device: torch.device) -> list[Tensor]:
    """The state of the generators of random numbers: the CPU's and, on a GPU, its own."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states


@contextmanager
def _same_draws(device: torch.device, state: list[Tensor]) -> Iterator[None]:
    """Draw random numbers from `state` in the block, and restore the present state after it."""
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.set_rng_state(state[0])
        for gpu in state[1:]:
            torch.cuda.set_rng_state(gpu, device)
        yield

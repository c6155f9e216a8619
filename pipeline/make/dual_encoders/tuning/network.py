"""A dual encoder as a network that the loop trains, and its own scale as a part of an objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.modules.batchnorm import _BatchNorm

from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import FineTuning
from pipeline.make.dual_encoders.base import DualEncoder
from pipeline.make.dual_encoders.tuning import TUNINGS
from pipeline.make.dual_encoders.tuning.weights import BIAS, SCALE, SCALES
from pipeline.make.heads import objectives
from pipeline.make.heads.base import HeadNetwork
from pipeline.make.heads.objectives.base import Objective
from pipeline.make.heads.sides import Side

# The largest scale of similarities, as CLIP and OpenCLIP bound it.
LARGEST_SCALE = math.log(100)


@dataclass(frozen=True)
class Listed(Side):
    """Prepared images, or captions, in a list; `values` are places in it, int64 [n]."""

    listed: Sequence[Any] = ()

    @classmethod
    def all_of(cls, listed: Sequence[Any], ids: Tensor) -> Listed:
        """View a list with the manifest's ids, int64 [n], as one side of a batch."""
        return cls(
            torch.arange(len(listed)),
            torch.ones(len(listed), dtype=torch.int64),
            ids,
            listed=listed,
        )

    @property
    def chosen(self) -> list[Any]:
        """Those that are in this side."""
        return [self.listed[place] for place in self.values.tolist()]


class TunedNetwork(HeadNetwork):
    """A dual encoder of which some weights are trained. These alone are its state: the others are
    the base's.
    """

    def __init__(self, encoder: DualEncoder, tuning: FineTuning) -> None:
        super().__init__()
        self.encoder = encoder
        self.network = encoder.network
        self.weights = TUNINGS.build(tuning.weights.name, **tuning.weights.options)
        trained = set(self.weights.choose(self.network))
        for name, weight in self.network.named_parameters():
            is_trained_scale = tuning.logit_scale == "trained" and name.endswith(SCALES)
            weight.requires_grad_(name in trained or is_trained_scale)
        if tuning.batch_norm == "refuse":
            self._refuse_batch_norm()

    def _refuse_batch_norm(self) -> None:
        """Refuse a layer whose output for an image would depend on the other images of its batch,
        or piece of one.
        """
        for name, module in self.network.named_modules():
            if isinstance(module, _BatchNorm) and _is_trained(module):
                raise InputError(
                    f"{name} is a BatchNorm, whose output depends on the rest of the batch; set batch_norm: "
                    "fixed, which keeps its statistics, or train other weights"
                )

    def train(self, mode: bool = True) -> TunedNetwork:
        """Set the mode of what is trained; frozen parts and BatchNorm do as when they embed."""
        super().train(mode)
        for module in self.network.modules():
            has_weights = next(module.parameters(), None) is not None
            is_frozen = has_weights and not _is_trained(module)
            if is_frozen or isinstance(module, _BatchNorm):
                module.eval()
        return self

    def state_dict(self, *args: Any, **given: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The weights that are trained, by their names in the base's network."""
        return {
            name: weight for name, weight in self.network.named_parameters() if weight.requires_grad
        }

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False
    ) -> None:
        """Load what `state_dict` gave; other names or shapes are a RuntimeError."""
        other = self.state_dict().keys() ^ state_dict.keys()
        if other:
            raise RuntimeError(f"the trained weights are others: {min(other)}")
        self.network.load_state_dict(state_dict, strict=False)

    def embed_images(self, images: Side) -> Tensor:
        """Embed prepared images, see `HeadNetwork.embed_images`."""
        assert isinstance(images, Listed)
        return normalize(self.encoder.image_vectors(images.chosen), dim=-1)

    def embed_captions(self, captions: Side) -> Tensor:
        """Embed captions, see `HeadNetwork.embed_captions`."""
        assert isinstance(captions, Listed)
        return normalize(self.encoder.caption_vectors(captions.chosen), dim=-1)


def _is_trained(module: nn.Module) -> bool:
    """Whether some weight of a module is trained."""
    return any(weight.requires_grad for weight in module.parameters())


class Scaled(Objective):
    """An objective of similarities times a dual encoder's own scale, plus its bias if it has
    one.
    """

    def __init__(
        self, objective: Objective, scale: nn.Parameter, bias: nn.Parameter | None
    ) -> None:
        super().__init__()
        self.objective = objective
        self.scale = scale
        self.bias = bias

    def start_epoch(self, epoch: int) -> None:
        self.objective.start_epoch(epoch)

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        logits = similarity * self.scale.clamp(max=LARGEST_SCALE).exp()
        if self.bias is not None:
            logits = logits + self.bias
        loss = self.objective.loss(logits, negatives)
        self.log = {**self.objective.log, "scale": float(self.scale.detach().exp())}
        return loss


def objective_of(network: nn.Module, tuning: FineTuning) -> Objective:
    """Build the objective, with the network's own scale if the setting `logit_scale` says so."""
    objective = objectives.build(tuning.objective.name, **tuning.objective.options)
    if tuning.logit_scale == "unused":
        return objective
    scale = _first_named(network, SCALE)
    if scale is None:
        raise InputError(
            "the network has no scale of similarities; set logit_scale: unused, and the objective's "
            "temperature"
        )
    return Scaled(objective, scale, _first_named(network, BIAS))


def _first_named(network: nn.Module, end: str) -> nn.Parameter | None:
    """The first weight whose name has an end; None if there is none."""
    weights = (weight for name, weight in network.named_parameters() if name.endswith(end))
    return next(weights, None)

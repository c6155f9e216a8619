"""Which weights of a dual encoder are trained: all, the last blocks of both towers, or the
projections alone.
"""

import re
from abc import ABC, abstractmethod

from torch import nn

from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders.tuning.options import BlocksOptions

# What maps a tower's output to the joint space, as the libraries name it: CLIP and OpenCLIP; the
# heads of SigLIP and of timm's towers, the attention pool of ResNets; a Dense of
# sentence-transformers, whose modules have numbers.
PROJECTION = re.compile(
    r"(.+\.)?(visual|text)_projection(\.|$)|(.+\.)?(vision|text)_model\.head\.|"
    r"(visual|text)\.(proj|head|attnpool)(\.|$)|(.+\.)?\d+\.linear\."
)
# A block, and the list that it is in.
BLOCK = re.compile(r"(.*?(?:^|\.)(?:layers|resblocks|blocks|layer))\.(\d+)\.")
# The normalisations behind a tower's last block.
LAST_NORM = re.compile(
    r"(.*\.)?(post_layernorm|final_layer_norm|ln_post|ln_final|"
    r"(trunk|timm_model)\.(norm|conv_head|bn2))\."
)
# The scale and bias of similarities, which the setting `logit_scale` trains.
SCALE = "logit_scale"
BIAS = "logit_bias"
SCALES = (SCALE, BIAS)


class Weights(ABC):
    """A choice of a network's weights."""

    def choose(self, network: nn.Module) -> list[str]:
        """Prepare a network with the weights of its files.

        Returns:
            The names of those weights of it that are trained.

        Raises:
            InputError: If it has none of these.
        """
        names = [
            name
            for name, _ in network.named_parameters()
            if not name.endswith(SCALES) and self._has(name)
        ]
        if not names:
            raise InputError(
                "the network has no projections that are known; train blocks, lora or all of its weights"
            )
        return names

    def finish(self, network: nn.Module) -> None:  # noqa: B027 (most choices change nothing)
        """Bring a trained network into the form that it had before `choose`."""

    @abstractmethod
    def _has(self, name: str) -> bool:
        """Whether a weight of this name is chosen."""


class All(Weights):
    """All weights but the scale of similarities."""

    def _has(self, name: str) -> bool:
        return True


class Projections(Weights):
    """The weights of both projections."""

    def _has(self, name: str) -> bool:
        return PROJECTION.match(name) is not None


class Blocks(Projections):
    """The weights of each tower's last blocks, of the normalisations behind them, and of the
    projections.
    """

    def __init__(self, options: BlocksOptions) -> None:
        self.options = options
        self.lengths: dict[str, int] = {}  # how many blocks there are, by the name of their list

    def choose(self, network: nn.Module) -> list[str]:
        """Choose weights of two towers that have so many blocks, see `Weights.choose`."""
        for name, _ in network.named_parameters():
            block = BLOCK.match(name)
            if block:
                tower = block[1]
                length = int(block[2]) + 1
                self.lengths[tower] = max(self.lengths.get(tower, 0), length)
        if len(self.lengths) < 2 or min(self.lengths.values()) < self.options.blocks:
            lengths = [f"{length} in {tower}" for tower, length in self.lengths.items()]
            listed = ", ".join(lengths) or "none that are known"
            raise InputError(
                f"blocks: {self.options.blocks}: expected so many blocks in each of two towers, there are "
                f"{listed}; choose fewer, or other weights"
            )
        return super().choose(network)

    def _has(self, name: str) -> bool:
        block = BLOCK.match(name)
        if block:
            return int(block[2]) >= self.lengths[block[1]] - self.options.blocks
        return super()._has(name) or LAST_NORM.match(name) is not None

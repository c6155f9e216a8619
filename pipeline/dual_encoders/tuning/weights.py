"""Which weights of a dual encoder are trained: all, the last blocks of both towers, or the projections alone."""

import re
from collections.abc import Callable

from torch import nn

from pipeline.dual_encoders.tuning.options import BlocksOptions
from pipeline.parts.errors import InputError

# What maps a tower's output to the joint space, as the libraries name it: CLIP and OpenCLIP; the heads of SigLIP and of
# timm's towers, the attention pool of ResNets; a Dense of sentence-transformers, whose modules have numbers.
PROJECTION = re.compile(r"(.+\.)?(visual|text)_projection(\.|$)|(.+\.)?(vision|text)_model\.head\.|"
                        r"(visual|text)\.(proj|head|attnpool)(\.|$)|(.+\.)?\d+\.linear\.")
# A block, and the list that it is in.
BLOCK = re.compile(r"(.*?(?:^|\.)(?:layers|resblocks|blocks|layer))\.(\d+)\.")
# The normalisations behind a tower's last block.
LAST_NORM = re.compile(r"(.*\.)?(post_layernorm|final_layer_norm|ln_post|ln_final|visual\.trunk\.(norm|conv_head|bn2))\.")
# The scale and bias of similarities, which the setting `logit_scale` trains.
SCALES = ("logit_scale", "logit_bias")


def every(network: nn.Module) -> list[str]:
    """All weights but the scale of similarities, by their names."""
    return _named(network, lambda name: True)


def projections(network: nn.Module) -> list[str]:
    """The weights of both projections, by their names."""
    return _named(network, lambda name: PROJECTION.match(name) is not None)


def blocks(network: nn.Module, options: BlocksOptions) -> list[str]:
    """The weights of each tower's last blocks, of the normalisations behind them, and of the projections."""
    lengths: dict[str, int] = {}
    for name, _ in network.named_parameters():
        if block := BLOCK.match(name):
            lengths[block[1]] = max(lengths.get(block[1], 0), int(block[2]) + 1)
    if len(lengths) < 2 or min(lengths.values()) < options.blocks:
        listed = ", ".join(f"{length} in {name}" for name, length in lengths.items()) or "none that are known"
        raise InputError(f"blocks: {options.blocks}: expected so many blocks in each of two towers, there are {listed}; "
                         "choose fewer, or other weights")

    def is_trained(name: str) -> bool:
        block = BLOCK.match(name)
        if block:
            return int(block[2]) >= lengths[block[1]] - options.blocks
        return bool(PROJECTION.match(name) or LAST_NORM.match(name))

    return _named(network, is_trained)


def _named(network: nn.Module, is_trained: Callable[[str], bool]) -> list[str]:
    names = [name for name, _ in network.named_parameters() if not name.endswith(SCALES) and is_trained(name)]
    if not names:
        raise InputError("the network has no projections that are known; train other weights")
    return names

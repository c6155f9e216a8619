"""Networks of one block a stage: what an engine does with a deep one, it does with these.

That the deep ones have their published blocks is seen by their names alone, in other tests.
"""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet

from pipeline.make.features.extractors import grid_feats, network as networks


def shallow(patch: pytest.MonkeyPatch) -> None:
    """Have BUTD's detector, its ResNet-101 and the detectors of grid features made with one block
    a stage.
    """
    from pipeline.make.features.extractors.butd import network

    stage = network.stage

    def of_one_block(blocks: int, *sizes: int, **more: Any) -> list[nn.Module]:
        return stage(1, *sizes, **more)

    patch.setattr(network, "stage", of_one_block)
    patch.setattr(networks, "resnet101", lambda: ResNet(Bottleneck, [1, 1, 1, 1]))
    for name, (_, deviations) in grid_feats.BACKBONES.items():
        patch.setitem(grid_feats.BACKBONES, name, ((1, 1, 1, 1), deviations))

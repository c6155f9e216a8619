"""The engines grid-feats-x101 and grid-feats-x152: grid features of a detector (Jiang et al. 2020).

Items are the cells of the last map of a Faster R-CNN's backbone, a ResNeXt trained on objects and
attributes of Visual Genome. An image keeps its aspect ratio, so it has as many items as its map has
cells. All else is as in github.com/facebookresearch/grid-feats-vqa (`configs/X-101-grid.yaml`,
`configs/X-152-grid.yaml`, `extract_grid_feature.py`) on detectron2, which is not needed here:
strides in the 3 x 3 convolutions, the last stage at stride 32 without the dilation of training, 600
px by Pillow's bilinear resizing, blue first.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet

from pipeline.foundation.files import weights
from pipeline.make.features.extractors.base import (
    Computed,
    MapEngine,
    computed,
    with_weights,
    without_classifier,
)
from pipeline.make.features.extractors.options import GridFeatsOptions
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.store import Extra

STRIDE = 32
MEANS = (103.53, 116.28, 123.675)  # blue, green, red: detectron2's MODEL.PIXEL_MEAN
# detectron2's names -> torchvision's, where they differ by more than numbers.
PARTS = {
    "shortcut.weight": "downsample.0.weight",
    "shortcut.norm": "downsample.1",
    "stem.conv1.weight": "conv1.weight",
    "stem.conv1.norm": "bn1",
}


# The blocks of each stage, and by what pixels are divided, blue, green, red: MODEL.PIXEL_STD.
BACKBONES = {
    "resnext101_32x8d": ((3, 4, 23, 3), (57.375, 57.12, 58.395)),
    "resnext152_32x8d": ((3, 8, 36, 3), (1.0, 1.0, 1.0)),
}


class GridFeats(MapEngine):
    """A detector's last map as items, row by row, with the boxes of its cells."""

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32")}

    def __init__(self, runtime: Runtime, options: GridFeatsOptions) -> None:
        network = load(options.network, options.weights)
        super().__init__(runtime, options, network, self._forward, free=(0, 1, 2))
        shortest = min(options.short_side, options.long_side)
        self.items = _cells(shortest) * _cells(options.long_side)
        _, deviations = BACKBONES[options.network]
        self._mean = _of_channels(MEANS).to(runtime.device)
        self._std = _of_channels(deviations).to(runtime.device)

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize by Pillow, bilinear, as detectron2 does: uint8 [H, W, 3]."""
        size = resized(*image.size, self.options.short_side, self.options.long_side)
        pixels = np.array(image.resize(size, Image.Resampling.BILINEAR))
        return torch.from_numpy(pixels)

    def of_image(
        self, feature_map: torch.Tensor, prepared: torch.Tensor, size: tuple[int, int]
    ) -> Computed:
        """Take each cell of the map as an item."""
        _, rows, columns = feature_map.shape
        features = feature_map.flatten(1).T.contiguous()
        return computed(features, {"boxes": boxes(rows, columns, size)})

    def _forward(self, pixels: torch.Tensor) -> torch.Tensor:
        planes = pixels.flip(3).permute(0, 3, 1, 2).float()
        last: torch.Tensor = self.network((planes - self._mean) / self._std)
        return last


class GridFeatsX152(GridFeats):
    """The same of the larger backbone."""


def _of_channels(values: tuple[float, ...]) -> torch.Tensor:
    """A number for each channel of images [B, 3, H, W]."""
    return torch.tensor(values).view(1, 3, 1, 1)


def resized(width: int, height: int, short_side: int, long_side: int) -> tuple[int, int]:
    """Compute the width and height that an image gets, as detectron2's `ResizeShortestEdge`, each
    at least 1.
    """
    scale = short_side / min(width, height)
    across: float = short_side
    down: float = short_side
    if width < height:
        down = scale * height
    else:
        across = scale * width
    less = min(1.0, long_side / max(across, down))
    new_width = int(across * less + 0.5)
    new_height = int(down * less + 0.5)
    return max(1, new_width), max(1, new_height)


def boxes(rows: int, columns: int, size: tuple[int, int]) -> torch.Tensor:
    """List the cells of a map, equal parts of the image: float32 [rows * columns, 4], x1 y1 x2 y2
    in pixels.
    """
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    near = [x / columns, y / rows]
    far = [(x + 1) / columns, (y + 1) / rows]
    shares = torch.stack(near + far, dim=-1).view(-1, 4)
    return shares * torch.tensor([*size, *size], dtype=torch.float32)


def load(network: str, name: str) -> nn.Sequential:
    """Build a backbone with weights: a name in weights.yaml, grid-feats-vqa's file, or "untrained"
    (seed 0).
    """

    def make() -> nn.Sequential:
        blocks, _ = BACKBONES[network]
        resnet = ResNet(
            Bottleneck,
            list(blocks),
            num_classes=1,
            zero_init_residual=True,
            groups=32,
            width_per_group=8,
        )
        return without_classifier(resnet)

    def read(path: Path) -> dict[str, torch.Tensor]:
        state = {}
        for theirs, value in weights.read(path).items():
            if not theirs.endswith("num_batches_tracked"):
                state[_renamed(theirs)] = value
        return state

    return with_weights(make, name, read, "this ResNeXt", optional=".*num_batches_tracked")


def _renamed(name: str) -> str:
    """backbone.res4.0.conv2.norm.weight -> layer3.0.bn2.weight."""
    name = name.removeprefix("backbone.")
    for theirs, ours in PARTS.items():
        name = name.replace(theirs, ours)
    name = re.sub(r"conv(\d)\.norm", r"bn\1", name)
    stage = re.match(r"res(\d)", name)
    if stage:
        name = f"layer{int(stage[1]) - 1}{name[stage.end() :]}"
    return name


def _cells(pixels: int) -> int:
    return -(-pixels // STRIDE)

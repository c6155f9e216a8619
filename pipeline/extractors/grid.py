"""Grid features: every cell of a CNN's last map is an item (Jiang et al. 2020; VSE-infinity section 4.1).

The image is resized to a square without keeping its aspect and without cropping; 512 px at stride 32 give 16 x 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch.nn.functional import adaptive_avg_pool2d

from pipeline.errors import InputError
from pipeline.extractors import network
from pipeline.extractors.base import Items
from pipeline.extractors.network import Network
from pipeline.extractors.runtime import Runtime
from pipeline.settings import Count, Section
from pipeline.store import Extra


class Options(Section):
    """network: any timm CNN, or butd_resnet101. grid: items a side; fewer than the map has are averaged down to."""

    network: str = "resnet152.tv_in1k"
    weights: str = "resnet152-in1k"
    image_size: Count = 512
    grid: Count = 16


class Grid:
    """A CNN's map as items, row by row."""

    version = 1
    extras: Mapping[str, Extra] = {}

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options = options
        self.network = network.load(options.network, options.weights, runtime)
        self.settings: Mapping[str, Any] = options.model_dump()
        self.trained, self.weights = self.network.trained, self.network.digest
        self.reported_as = f"grid{options.grid}-{options.network}"
        self.items = options.grid**2
        self.backend = runtime.backend
        self.dimension = as_map(self.network.probe(options.image_size), self.network, options.grid).shape[1]

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Square pixels: uint8 [S, S, 3]."""
        return self.network.prepare(image, self.options.image_size)

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Items]:
        """grid x grid items an image."""
        return [Items(row) for row in self._cells(self.network.features(batch)).cpu().numpy()]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Items [B, grid x grid, D] of prepared images [B, S, S, 3]; gradients reach the network's weights."""
        return self._cells(self.network.forward(pixels))

    def _cells(self, maps: torch.Tensor) -> torch.Tensor:
        checked = as_map(maps, self.network, self.options.grid)
        return adaptive_avg_pool2d(checked, self.options.grid).flatten(2).transpose(1, 2)


def feature_map(cnn: Network, batch: list[torch.Tensor], side: int) -> torch.Tensor:
    """The network's last map [B, D, H, W]. Raises InputError where it is no map or has fewer than side x side cells."""
    return as_map(cnn.features(batch), cnn, side)


def as_map(maps: torch.Tensor, cnn: Network, side: int) -> torch.Tensor:
    """A network's output as [B, D, H, W]. Raises InputError as `feature_map`."""
    if maps.ndim == 4 and maps.shape[-1] == getattr(cnn.model, "num_features", -1) != maps.shape[1]:
        maps = maps.permute(0, 3, 1, 2)  # some timm networks keep channels last
    if maps.ndim != 4 or min(maps.shape[2:]) < side:
        raise InputError(f"grid: expected a map of at least {side} x {side} cells, the network gives "
                         f"{tuple(maps.shape[1:])}; choose a CNN, a larger image_size or a smaller grid")
    return maps

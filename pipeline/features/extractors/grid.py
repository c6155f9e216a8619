"""Grid features: every cell of a CNN's last map is an item (Jiang et al. 2020; VSE∞ section 4.1).

The image is resized to a square, ignoring its aspect ratio and without cropping; 512 px at stride 32 give 16 x 16
cells.
"""

from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch.nn.functional import adaptive_avg_pool2d

from pipeline.features.extractors import network
from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.network import Network
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.parts.errors import InputError
from pipeline.settings import Count, Section


class Options(Section):
    """Settings of grid features."""

    network: str = "resnet152.tv_in1k"  # any timm CNN, or butd_resnet101
    weights: str = "resnet152-in1k"  # a name in manifests/weights.yaml, a file, or "untrained"
    image_size: Count = 512  # pixels a side
    grid: Count = 16  # items a side; a larger map is averaged down to it
    ALWAYS_RECORDED = frozenset({"network", "weights", "image_size", "grid"})


class Grid:
    """A CNN's map as items, row by row."""

    extras: Mapping[str, Extra] = {}

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options = options
        self.network = network.load(options.network, options.weights, runtime)
        self.settings: Mapping[str, Any] = options.recorded()
        self.trained, self.weights = self.network.trained, self.network.digest
        self.reported_as = f"grid{options.grid}-{options.network}"
        self.items = options.grid**2
        self.backend = runtime.backend
        self.dimension = as_map(self.network.probe(options.image_size), self.network, options.grid).shape[1]

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize to a square: [S, S, 3], uint8 for timm's networks, float32 for BUTD's."""
        return self.network.prepare(image, self.options.image_size)

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute grid × grid items for each image."""
        return [computed(row) for row in self._cells(self.network.features(batch))]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, grid × grid, D] of pixels [B, S, S, 3] with gradients to the network's weights."""
        return self._cells(self.network.forward(pixels))

    def _cells(self, maps: torch.Tensor) -> torch.Tensor:
        checked = as_map(maps, self.network, self.options.grid)
        return adaptive_avg_pool2d(checked, self.options.grid).flatten(2).transpose(1, 2)


def feature_map(cnn: Network, batch: list[torch.Tensor], side: int) -> torch.Tensor:
    """Compute the network's last map: float32 [B, D, H, W]."""
    return as_map(cnn.features(batch), cnn, side)


def as_map(maps: torch.Tensor, cnn: Network, side: int) -> torch.Tensor:
    """Check a network's output and bring its channels to the front: [B, D, H, W]."""
    if maps.ndim == 4 and maps.shape[-1] == getattr(cnn.model, "num_features", -1) != maps.shape[1]:
        maps = maps.permute(0, 3, 1, 2)  # some timm networks keep channels last
    if maps.ndim != 4 or min(maps.shape[2:]) < side:
        raise InputError(f"grid: expected a map of at least {side} x {side} cells, the network gives "
                         f"{tuple(maps.shape[1:])}; choose a CNN, a larger image_size or a smaller grid")
    return maps

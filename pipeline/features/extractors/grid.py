"""Grid features: every cell of a CNN's last map is an item (Jiang et al. 2020; VSE∞ section 4.1).

The image is resized to a square, ignoring its aspect ratio and without cropping; 512 px at stride 32 give 16 x 16
cells.
"""

import torch
from torch.nn.functional import adaptive_avg_pool2d

from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.network import Network, NetworkEngine, NetworkOptions
from pipeline.features.extractors.runtime import Runtime
from pipeline.parts.errors import InputError
from pipeline.settings import Count


class Options(NetworkOptions):
    """Settings of grid features, of any timm CNN or butd_resnet101."""

    grid: Count = 16  # items a side; a larger map is averaged down to it
    ALWAYS_RECORDED = NetworkOptions.ALWAYS_RECORDED | {"grid"}


class Grid(NetworkEngine):
    """A CNN's map as items, row by row."""

    def __init__(self, options: Options, runtime: Runtime) -> None:
        super().__init__(options, runtime)
        self.side, self.items = options.grid, options.grid**2
        self.reported_as = f"grid{options.grid}-{options.network}"
        self.dimension = self._cells(self.network.probe(self.size)).shape[2]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute grid × grid items for each image."""
        return [computed(row) for row in self._cells(self.network.features(batch))]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, grid × grid, D] of pixels [B, S, S, 3] with gradients to the network's weights."""
        return self._cells(self.network.forward(pixels))

    def _cells(self, maps: torch.Tensor) -> torch.Tensor:
        checked = as_map(maps, self.network, self.side)
        return adaptive_avg_pool2d(checked, self.side).flatten(2).transpose(1, 2)


def as_map(maps: torch.Tensor, cnn: Network, side: int) -> torch.Tensor:
    """Check a network's output and bring its channels to the front: [B, D, H, W]."""
    if maps.ndim == 4 and maps.shape[-1] == getattr(cnn.model, "num_features", -1) != maps.shape[1]:
        maps = maps.permute(0, 3, 1, 2)  # some timm networks keep channels last
    if maps.ndim != 4 or min(maps.shape[2:]) < side:
        raise InputError(f"grid: expected a map of at least {side} x {side} cells, the network gives "
                         f"{tuple(maps.shape[1:])}; choose a CNN, a larger image_size or a smaller grid")
    return maps

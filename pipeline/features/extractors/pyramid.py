"""Region features without a detector: 36 fixed windows at several scales, RoIAlign over a CNN's map.

The windows are 1 + 4 + 9 + 16 squares of a pyramid and 3 + 3 horizontal and vertical strips: as many as BUTD's
36 boxes. They replace a detector whose weights are not available; results from them are marked.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torchvision.ops import roi_align

from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.grid import as_map
from pipeline.features.extractors.network import NetworkEngine, NetworkOptions
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra

SCALES = (1, 2, 3, 4)
STRIPS = 3


class Options(NetworkOptions):
    """Settings of pyramid features, of any timm CNN or butd_resnet101."""


def windows() -> np.ndarray:
    """List the 36 windows: float32 [36, 4], x1 y1 x2 y2 as shares of the image's width and height."""
    squares = [(x / n, y / n, (x + 1) / n, (y + 1) / n) for n in SCALES for y in range(n) for x in range(n)]
    rows = [(0, i / STRIPS, 1, (i + 1) / STRIPS) for i in range(STRIPS)]
    columns = [(i / STRIPS, 0, (i + 1) / STRIPS, 1) for i in range(STRIPS)]
    return np.array(squares + rows + columns, dtype=np.float32)


class Pyramid(NetworkEngine):
    """36 windows an image, each the mean of the map inside it."""

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32")}

    def __init__(self, options: Options, runtime: Runtime) -> None:
        super().__init__(options, runtime)
        self.boxes = windows()
        self.items = len(self.boxes)
        self.reported_as = f"pyramid{self.items}-{options.network}"
        self.dimension = as_map(self.network.probe(self.size), self.network, max(SCALES)).shape[1]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute 36 items for each image."""
        maps = as_map(self.network.features(batch), self.network, max(SCALES))
        scale = torch.tensor([maps.shape[3], maps.shape[2]] * 2, device=maps.device)
        boxes = torch.from_numpy(self.boxes).to(maps.device) * scale
        pooled = roi_align(maps, [boxes] * len(batch), output_size=1, aligned=True)
        rows = pooled.flatten(1).unflatten(0, (len(batch), self.items))
        return [computed(row, {"boxes": torch.from_numpy(self.boxes * np.array(size * 2, np.float32))})
                for row, size in zip(rows, sizes, strict=True)]

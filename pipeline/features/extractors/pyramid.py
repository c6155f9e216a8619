"""Region features without a detector: 36 fixed windows at several scales, RoIAlign over a CNN's map.

The windows are 1 + 4 + 9 + 16 squares of a pyramid and 3 + 3 horizontal and vertical strips: as many as BUTD's
36 boxes. They replace a detector whose weights are not available; results from them are marked.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision.ops import roi_align

from pipeline.features.extractors import network
from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.grid import as_map, feature_map
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.settings import Count, Section

SCALES = (1, 2, 3, 4)
STRIPS = 3


class Options(Section):
    """Settings of pyramid features."""

    network: str = "resnet152.tv_in1k"  # any timm CNN, or butd_resnet101
    weights: str = "resnet152-in1k"  # a name in manifests/weights.yaml, a file, or "untrained"
    image_size: Count = 512  # pixels a side of the square to which the image is resized
    ALWAYS_RECORDED = frozenset({"network", "weights", "image_size"})


def windows() -> np.ndarray:
    """List the 36 windows: float32 [36, 4], x1 y1 x2 y2 as shares of the image's width and height."""
    squares = [(x / n, y / n, (x + 1) / n, (y + 1) / n) for n in SCALES for y in range(n) for x in range(n)]
    rows = [(0, i / STRIPS, 1, (i + 1) / STRIPS) for i in range(STRIPS)]
    columns = [(i / STRIPS, 0, (i + 1) / STRIPS, 1) for i in range(STRIPS)]
    return np.array(squares + rows + columns, dtype=np.float32)


class Pyramid:
    """36 windows an image, each the mean of the map inside it."""

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32")}

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options = options
        self.network = network.load(options.network, options.weights, runtime)
        self.settings: Mapping[str, Any] = options.recorded()
        self.trained, self.weights = self.network.trained, self.network.digest
        self.boxes = windows()
        self.items = len(self.boxes)
        self.reported_as = f"pyramid{self.items}-{options.network}"
        self.backend = runtime.backend
        self.dimension = as_map(self.network.probe(options.image_size), self.network, max(SCALES)).shape[1]

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize to a square: [S, S, 3], uint8 for timm's networks, float32 for BUTD's."""
        return self.network.prepare(image, self.options.image_size)

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute 36 items for each image."""
        maps = feature_map(self.network, batch, max(SCALES))
        scale = torch.tensor([maps.shape[3], maps.shape[2]] * 2, device=maps.device)
        boxes = torch.from_numpy(self.boxes).to(maps.device) * scale
        pooled = roi_align(maps, [boxes] * len(batch), output_size=1, aligned=True)
        rows = pooled.flatten(1).unflatten(0, (len(batch), self.items))
        return [computed(row, {"boxes": torch.from_numpy(self.boxes * np.array(size * 2, np.float32))})
                for row, size in zip(rows, sizes, strict=True)]

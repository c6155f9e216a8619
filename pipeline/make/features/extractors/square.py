"""Engines that run one network over a square: pyramid, grid, patch and frame features.

The image is resized to the square, ignoring its aspect ratio and without cropping.

    pyramid  36 fixed windows at several scales, RoIAlign over a CNN's map: region features without
             a detector, whose weights may not be available; results from them are marked. The
             windows are 1 + 4 + 9 + 16 squares of a pyramid and 3 + 3 horizontal and vertical
             strips: as many as BUTD's 36 boxes
    grid     every cell of a CNN's last map is an item (Jiang et al. 2020; VSE∞ section 4.1); 512 px
             at stride 32 give 16 x 16 cells
    patch    the tokens of a vision transformer (Dosovitskiy et al. 2021; VSE+2AD section 4.2)
    frame    for each frame of a clip the global average of a network's last map (VSE∞ section
             5.1.2)
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import adaptive_avg_pool2d
from torchvision.ops import roi_align

from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.make.features.extractors.base import Computed, Engine, computed
from pipeline.make.features.extractors.network import ButdCnn, Network
from pipeline.make.features.extractors.options import (
    FrameOptions,
    GridOptions,
    NetworkOptions,
    PatchOptions,
    PyramidOptions,
)
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.store import Extra

OTHERS: dict[str, type[Network]] = {"butd_resnet101": ButdCnn}  # networks that timm does not have
SCALES = (1, 2, 3, 4)
STRIPS = 3
# Frames that the network has at once: on a CPU as many as stay in its cache, on a GPU no more than
# memory has room for.
AT_ONCE_ON_CPU = 8
AT_ONCE = 128


class NetworkEngine(Engine):
    """The base of engines with one network over a square. A subclass sets `items` and
    `dimension`.
    """

    def __init__(self, runtime: Runtime, options: NetworkOptions, **of_network: Any) -> None:
        super().__init__(runtime, options)
        kind = OTHERS.get(options.network, Network)
        self.network = kind(options.network, options.weights, runtime, **of_network)
        self.size = options.image_size
        self.weights = self.network.digest
        self.backend = runtime.backend

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize to a square: [S, S, 3], uint8 for timm's networks, float32 for BUTD's."""
        return self.network.prepare(image, self.size)

    def map_of(self, features: torch.Tensor, side: int) -> torch.Tensor:
        """Check that a network's output is a map of at least `side` x `side` cells, and put its
        channels first.
        """
        features = self.network.channels_first(features)
        if features.ndim != 4 or min(features.shape[2:]) < side:
            shape = tuple(features.shape[1:])
            raise InputError(
                f"grid: expected a map of at least {side} x {side} cells, the network gives "
                f"{shape}; choose a CNN, a larger image_size or a smaller grid"
            )
        return features


def windows() -> np.ndarray:
    """List the 36 windows: float32 [36, 4], x1 y1 x2 y2 as shares of the image's width and
    height.
    """
    boxes: list[tuple[float, ...]] = []
    for n in SCALES:
        edges = _edges(n)
        for top, bottom in edges:
            for left, right in edges:
                boxes.append((left, top, right, bottom))
    for top, bottom in _edges(STRIPS):
        boxes.append((0, top, 1, bottom))
    for left, right in _edges(STRIPS):
        boxes.append((left, 0, right, 1))
    return np.array(boxes, dtype=np.float32)


def _edges(parts: int) -> list[tuple[float, float]]:
    """Where each of some equal parts of a side begins and ends, as shares of it."""
    return [(part / parts, (part + 1) / parts) for part in range(parts)]


class Pyramid(NetworkEngine):
    """36 windows per image, each the mean of the map inside it."""

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32")}

    def __init__(self, runtime: Runtime, options: PyramidOptions) -> None:
        super().__init__(runtime, options)
        self.boxes = windows()
        self.items = len(self.boxes)
        probe = self.network.probe(self.size)
        self.dimension = self.map_of(probe, max(SCALES)).shape[1]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute 36 items for each image."""
        maps = self.map_of(self.network.features(batch), max(SCALES))
        height, width = maps.shape[2:]
        count = len(batch)
        scale = torch.tensor([width, height, width, height], device=maps.device)
        boxes = torch.from_numpy(self.boxes).to(maps.device) * scale
        pooled = roi_align(maps, [boxes] * count, output_size=1, aligned=True)
        rows = pooled.flatten(1).unflatten(0, (count, self.items))
        items = []
        for row, size in zip(rows, sizes, strict=True):
            of_image = self.boxes * np.array(size * 2, np.float32)
            items.append(computed(row, {"boxes": torch.from_numpy(of_image)}))
        return items


class Grid(NetworkEngine):
    """A CNN's map as items, row by row."""

    def __init__(self, runtime: Runtime, options: GridOptions) -> None:
        super().__init__(runtime, options)
        self.side = options.grid
        self.items = options.grid**2
        probe = self.network.probe(self.size)
        self.dimension = self._cells(probe).shape[2]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute grid × grid items for each image."""
        cells = self._cells(self.network.features(batch))
        return [computed(row) for row in cells]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, grid × grid, D] of pixels [B, S, S, 3] with gradients to the network's
        weights.
        """
        return self._cells(self.network.forward(pixels))

    def _cells(self, maps: torch.Tensor) -> torch.Tensor:
        maps = self.map_of(maps, self.side)
        averaged = adaptive_avg_pool2d(maps, self.side)
        return averaged.flatten(2).transpose(1, 2)


class Patch(NetworkEngine):
    """A ViT's tokens after its last block and norm; registers and distillation tokens are left
    out.
    """

    def __init__(self, runtime: Runtime, options: PatchOptions) -> None:
        super().__init__(runtime, options, img_size=options.image_size)
        # DINOv3's class in timm has no `has_class_token`; a network may have registers and no class
        # token.
        model = self.network.model
        has_token = getattr(model, "cls_token", None) is not None
        if options.cls and not getattr(model, "has_class_token", has_token):
            raise InputError(f"patch: {options.network} has no class token; set cls: false")
        probe = self.network.probe(self.size)
        self.items, self.dimension = self._chosen(probe).shape[1:]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the class token, if the options keep it, and the patches row by row."""
        tokens = self._chosen(self.network.features(batch))
        return [computed(row) for row in tokens]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, N, D] of pixels [B, S, S, 3] with gradients to the network's
        weights.
        """
        return self._chosen(self.network.forward(pixels))

    def _chosen(self, tokens: torch.Tensor) -> torch.Tensor:
        if tokens.ndim != 3:
            network = self.settings["network"]
            raise InputError(
                f"patch: expected tokens [B, N, D], {network} gives {tuple(tokens.shape)}; choose "
                "a ViT"
            )
        patches = tokens[:, self.network.prefix :]
        if not self.settings["cls"]:
            return patches
        return torch.cat([tokens[:, :1], patches], dim=1)


class Frame(NetworkEngine):
    """One item per frame, in order of time. A photograph is a clip of one frame."""

    def __init__(self, runtime: Runtime, options: FrameOptions) -> None:
        super().__init__(runtime, options)
        self.items = self.frames = options.frames
        self.at_once = AT_ONCE_ON_CPU if runtime.on_cpu else AT_ONCE
        # A ViT has one size.
        with refusing((AssertionError, RuntimeError), self._refusal):
            probe = self.network.probe(self.size)
            self.dimension = self._averaged(probe).shape[1]

    def _refusal(self, error: Exception) -> str:
        reason = str(error).splitlines()[0]
        network = self.settings["network"]
        return f"frame: {network} takes no images of {self.size} pixels: {reason}"

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize a photograph to a square: [1, S, S, 3]."""
        return self.prepare_frames([image])

    def prepare_frames(self, frames: Sequence[Image.Image]) -> torch.Tensor:
        """Resize a clip's frames to squares: [T, S, S, 3], uint8 for timm's networks, float32 for
        BUTD's.
        """
        return torch.stack([self.network.prepare(frame, self.size) for frame in frames])

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute an item for each frame."""
        frames = list(chain.from_iterable(batch))
        averages = []
        for start in range(0, len(frames), self.at_once):
            features = self.network.features(frames[start : start + self.at_once])
            averages.append(self._averaged(features))
        lengths = [len(clip) for clip in batch]
        clips = torch.cat(averages).split(lengths)
        return [computed(clip) for clip in clips]

    def _averaged(self, given: torch.Tensor) -> torch.Tensor:
        """[B, D] of maps or tokens; a ViT's class token and registers are left out."""
        if given.ndim == 3:
            return given[:, self.network.prefix :].mean(1)
        if given.ndim == 4:
            return self.map_of(given, 1).mean((2, 3))
        network = self.settings["network"]
        raise InputError(f"frame: expected a map or tokens, {network} gives {tuple(given.shape)}")

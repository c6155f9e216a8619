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

from pipeline.features.extractors.base import Computed, Engine, computed
from pipeline.features.extractors.network import ButdCnn, Network
from pipeline.features.extractors.options import (
    FrameOptions,
    GridOptions,
    NetworkOptions,
    PatchOptions,
    PyramidOptions,
)
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.parts.errors import InputError, refusing

OTHERS: dict[str, type[Network]] = {"butd_resnet101": ButdCnn}  # networks that timm does not have
SCALES = (1, 2, 3, 4)
STRIPS = 3
# Frames that the network has at once: on a CPU as many as stay in its cache, on a GPU no more than
# memory has room for.
AT_ONCE_ON_CPU, AT_ONCE = 8, 128


class NetworkEngine(Engine):
    """The base of engines with one network over a square. A subclass sets `items` and
    `dimension`.
    """

    def __init__(self, runtime: Runtime, options: NetworkOptions, **of_network: Any) -> None:
        super().__init__(runtime, options)
        kind = OTHERS.get(options.network, Network)
        self.network = kind(options.network, options.weights, runtime, **of_network)
        self.size, self.weights, self.backend = (
            options.image_size,
            self.network.digest,
            runtime.backend,
        )

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize to a square: [S, S, 3], uint8 for timm's networks, float32 for BUTD's."""
        return self.network.prepare(image, self.size)

    def map_of(self, features: torch.Tensor, side: int) -> torch.Tensor:
        """Check that a network's output is a map of at least `side` x `side` cells, and put its
        channels first.
        """
        features = self.network.channels_first(features)
        if features.ndim != 4 or min(features.shape[2:]) < side:
            raise InputError(
                f"grid: expected a map of at least {side} x {side} cells, the network gives "
                f"{tuple(features.shape[1:])}; choose a CNN, a larger image_size or a smaller grid"
            )
        return features


def windows() -> np.ndarray:
    """List the 36 windows: float32 [36, 4], x1 y1 x2 y2 as shares of the image's width and
    height.
    """
    squares = [
        (x / n, y / n, (x + 1) / n, (y + 1) / n) for n in SCALES for y in range(n) for x in range(n)
    ]
    rows = [(0, i / STRIPS, 1, (i + 1) / STRIPS) for i in range(STRIPS)]
    columns = [(i / STRIPS, 0, (i + 1) / STRIPS, 1) for i in range(STRIPS)]
    return np.array(squares + rows + columns, dtype=np.float32)


class Pyramid(NetworkEngine):
    """36 windows per image, each the mean of the map inside it."""

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32")}

    def __init__(self, runtime: Runtime, options: PyramidOptions) -> None:
        super().__init__(runtime, options)
        self.boxes = windows()
        self.items = len(self.boxes)
        self.dimension = self.map_of(self.network.probe(self.size), max(SCALES)).shape[1]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute 36 items for each image."""
        maps = self.map_of(self.network.features(batch), max(SCALES))
        scale = torch.tensor([maps.shape[3], maps.shape[2]] * 2, device=maps.device)
        boxes = torch.from_numpy(self.boxes).to(maps.device) * scale
        pooled = roi_align(maps, [boxes] * len(batch), output_size=1, aligned=True)
        rows = pooled.flatten(1).unflatten(0, (len(batch), self.items))
        return [
            computed(row, {"boxes": torch.from_numpy(self.boxes * np.array(size * 2, np.float32))})
            for row, size in zip(rows, sizes, strict=True)
        ]


class Grid(NetworkEngine):
    """A CNN's map as items, row by row."""

    def __init__(self, runtime: Runtime, options: GridOptions) -> None:
        super().__init__(runtime, options)
        self.side, self.items = options.grid, options.grid**2
        self.dimension = self._cells(self.network.probe(self.size)).shape[2]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute grid × grid items for each image."""
        return [computed(row) for row in self._cells(self.network.features(batch))]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, grid × grid, D] of pixels [B, S, S, 3] with gradients to the network's
        weights.
        """
        return self._cells(self.network.forward(pixels))

    def _cells(self, maps: torch.Tensor) -> torch.Tensor:
        return (
            adaptive_avg_pool2d(self.map_of(maps, self.side), self.side).flatten(2).transpose(1, 2)
        )


class Patch(NetworkEngine):
    """A ViT's tokens after its last block and norm; registers and distillation tokens are left
    out.
    """

    def __init__(self, runtime: Runtime, options: PatchOptions) -> None:
        super().__init__(runtime, options, img_size=options.image_size)
        # DINOv3's class in timm has no `has_class_token`; a network may have registers and no class
        # token.
        model = self.network.model
        if options.cls and not getattr(
            model, "has_class_token", getattr(model, "cls_token", None) is not None
        ):
            raise InputError(f"patch: {options.network} has no class token; set cls: false")
        self.items, self.dimension = self._chosen(self.network.probe(self.size)).shape[1:]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the class token, if the options keep it, and the patches row by row."""
        return [computed(row) for row in self._chosen(self.network.features(batch))]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, N, D] of pixels [B, S, S, 3] with gradients to the network's
        weights.
        """
        return self._chosen(self.network.forward(pixels))

    def _chosen(self, tokens: torch.Tensor) -> torch.Tensor:
        if tokens.ndim != 3:
            raise InputError(
                f"patch: expected tokens [B, N, D], {self.settings['network']} gives "
                f"{tuple(tokens.shape)}; choose a ViT"
            )
        patches = tokens[:, self.network.prefix :]
        return torch.cat([tokens[:, :1], patches], dim=1) if self.settings["cls"] else patches


class Frame(NetworkEngine):
    """One item per frame, in order of time. A photograph is a clip of one frame."""

    def __init__(self, runtime: Runtime, options: FrameOptions) -> None:
        super().__init__(runtime, options)
        self.items = self.frames = options.frames
        self.at_once = AT_ONCE_ON_CPU if runtime.on_cpu else AT_ONCE
        with refusing(
            (AssertionError, RuntimeError),
            lambda error: (
                f"frame: {self.settings['network']} takes no "
                f"images of {self.size} pixels: {str(error).splitlines()[0]}"
            ),
        ):  # a ViT has one size
            self.dimension = self._averaged(self.network.probe(self.size)).shape[1]

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
        averages = [
            self._averaged(self.network.features(frames[start : start + self.at_once]))
            for start in range(0, len(frames), self.at_once)
        ]
        return [computed(clip) for clip in torch.cat(averages).split([len(clip) for clip in batch])]

    def _averaged(self, given: torch.Tensor) -> torch.Tensor:
        """[B, D] of maps or tokens; a ViT's class token and registers are left out."""
        if given.ndim == 3:
            return given[:, self.network.prefix :].mean(1)
        if given.ndim == 4:
            return self.map_of(given, 1).mean((2, 3))
        raise InputError(
            f"frame: expected a map or tokens, {self.settings['network']} gives {tuple(given.shape)}"
        )

"""The BUTD engines: regions that the network detects (butd-36, butd-10-100), and given boxes
(butd-given).

Given boxes are pooled as they are: none is proposed, moved or left out. The slowest part, res5,
takes the boxes of one image as a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from pipeline.foundation.files import weights
from pipeline.foundation.files.images import ImageError
from pipeline.make.features.extractors import Runtime, backend
from pipeline.make.features.extractors.base import Computed, MapEngine, computed
from pipeline.make.features.extractors.butd import checkpoint, geometry, pixels
from pipeline.make.features.extractors.butd.extras import EXTRAS
from pipeline.make.features.extractors.butd.options import (
    ButdOptions,
    DetectedOptions,
    GivenOptions,
)
from pipeline.make.features.extractors.given_boxes import GivenBoxes

if TYPE_CHECKING:
    from pipeline.make.features.extractors.butd.network import Regions


class Detector(MapEngine):
    """The network on a device. A subclass is an engine: it chooses the boxes."""

    extras = EXTRAS

    def __init__(self, runtime: Runtime, options: ButdOptions) -> None:
        network = checkpoint.load(options.weights)
        super().__init__(runtime, options, network, network.feature_maps, free=(0, 2, 3))
        # Only the slowest parts run on the backend; proposals, pooling and classifiers stay in
        # torch.
        res5 = network.roi_heads.res5
        self._res5 = backend.by(runtime.backend, res5, res5.forward)

    def scale(self, size: tuple[int, int]) -> float:
        """Compute the factor by which an image is resized."""
        return pixels.scale_of(*size, self.options.short_side, self.options.long_side)

    def prepare(self, image: Image.Image) -> Any:
        """Resize the image and subtract the means: float32 [3, H, W]."""
        scale = self.scale(image.size)
        prepared = pixels.resized(image, scale, scale)
        if min(prepared.shape[1:]) < geometry.STRIDE:
            raise ImageError(
                f"{image.width} x {image.height} pixels are too narrow to look for regions in"
            )
        return prepared

    def regions(self, feature_map: torch.Tensor, boxes: torch.Tensor) -> Regions:
        """Compute features, classes, attributes and corrections of boxes [R, 4] in pixels of the
        network's input.
        """
        with self.runtime.autocast():
            regions_of_boxes: Regions = self.network.roi_heads(feature_map, boxes, self._res5)
        return regions_of_boxes


def items(regions: Regions, rows: torch.Tensor, boxes: torch.Tensor) -> Computed:
    """Collect some regions as one image's items; boxes [n, 4] are in pixels of the image as
    decoded.
    """
    object_score, label = regions.objects[rows].max(dim=1)
    attribute_score, attribute = regions.attributes[rows].max(dim=1)
    extras = {
        "boxes": boxes,
        "object": label.int(),
        "object_score": object_score,
        "attribute": attribute.int(),
        "attribute_score": attribute_score,
    }
    return computed(regions.features[rows].float(), extras)


class Detected(Detector):
    """Regions that the network detects, best first, with boxes, classes and attributes."""

    def __init__(self, runtime: Runtime, options: DetectedOptions) -> None:
        super().__init__(runtime, options)
        self.items = options.max_boxes

    def of_image(
        self, feature_map: torch.Tensor, prepared: torch.Tensor, size: tuple[int, int]
    ) -> Computed:
        """Propose regions, and choose some by the rule."""
        height, width = prepared.shape[1:]
        scale = self.scale(size)
        options = self.options
        with self.runtime.autocast():
            objectness, deltas = self.network.proposal_generator(feature_map)
        proposed = geometry.propose(
            objectness.float(), deltas.float(), width, height, scale, options.proposals
        )
        regions = self.regions(feature_map, proposed)
        proposals = geometry.Proposals(
            proposed, regions.objects, regions.deltas, (width, height), scale
        )
        select = geometry.RULES[options.boxes]
        rows, boxes = select(proposals, options.min_boxes, options.max_boxes)
        return items(regions, rows, boxes / scale)


class Detected10To100(Detected):
    """The same with 10 to 100 regions."""


class Prepared(NamedTuple):
    """A prepared image."""

    pixels: torch.Tensor  # the network's input, float32 [3, H, W]
    boxes: np.ndarray  # float32 [n, 4] in pixels of the image


class Given(Detector):
    """One item for each given box, in their order; the whole image where there is none."""

    depends_on_id = True

    def __init__(self, runtime: Runtime, options: GivenOptions) -> None:
        self.boxes = GivenBoxes(Path(options.boxes))
        super().__init__(runtime, options)
        self.settings = weights.by_digest(options.recorded())[0]
        self.items = self.boxes.most

    def prepare(self, image: Image.Image) -> Prepared:
        """Resize the image and look up its boxes by the file name in `image.info["file"]`."""
        boxes = self.boxes.of(image).boxes
        if not len(boxes):
            boxes = np.array([[0, 0, *image.size]], np.float32)
        return Prepared(super().prepare(image), boxes)

    def feature_maps(self, batch: Sequence[Any]) -> Iterator[tuple[int, torch.Tensor]]:
        """Compute the map of res4 of each image, see `MapEngine.feature_maps`."""
        return super().feature_maps([prepared.pixels for prepared in batch])

    def of_image(
        self, feature_map: torch.Tensor, prepared: Prepared, size: tuple[int, int]
    ) -> Computed:
        """Pool the given boxes."""
        boxes = torch.from_numpy(prepared.boxes).to(feature_map.device)
        rows = torch.arange(len(boxes), device=boxes.device)
        regions = self.regions(feature_map, boxes * self.scale(size))
        return items(regions, rows, boxes)

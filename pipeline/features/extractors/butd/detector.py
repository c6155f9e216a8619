"""What the BUTD engines share: their settings, the network on a device, and the way from a batch to items.

Images of equal size go through the first layers together on a GPU; on a CPU that gains nothing, and takes torch a fifth
longer. Others are not padded to that size, which would change the features near the border. The slowest part, res5, has
the boxes of one image at once, which fill a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image

from pipeline.features.extractors import backend
from pipeline.features.extractors.base import Computed, alike, computed
from pipeline.features.extractors.butd import EXTRAS, checkpoint, geometry, pixels
from pipeline.features.extractors.runtime import Runtime
from pipeline.files import weights
from pipeline.files.images import ImageError
from pipeline.settings import Count, Section

if TYPE_CHECKING:
    from pipeline.features.extractors.butd.network import Regions

AT_ONCE_ON_CPU, AT_ONCE = 1, 16  # images of equal size


class Options(Section):
    """Settings that all BUTD engines share."""

    weights: str = "butd-36"  # a name in manifests/weights.yaml, a file, or "untrained"
    short_side: Count = pixels.SHORT_SIDE  # pixels to which the image's short side is resized
    long_side: Count = pixels.LONG_SIDE  # the most pixels that the long side may then have
    ALWAYS_RECORDED = frozenset({"weights", "short_side", "long_side"})


class Detector(ABC):
    """The network on a device. A subclass is an engine: it sets `items` and `reported_as`, and chooses the boxes."""

    dimension = 2048
    extras = EXTRAS

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options, self.runtime = options, runtime
        self.settings: Mapping[str, Any] = options.recorded()
        self.network = checkpoint.load(options.weights)
        self.trained, self.weights = options.weights != weights.UNTRAINED, weights.digest(self.network)
        self.backend = runtime.backend
        self.network.to(runtime.device).to(memory_format=torch.channels_last)
        res5 = self.network.roi_heads.res5
        self.at_once = AT_ONCE_ON_CPU if runtime.on_cpu else AT_ONCE
        self._feature_maps: backend.Forward = self.network.feature_maps
        self._res5: backend.Forward = res5
        if runtime.backend != backend.TORCH:  # what takes the time; proposals, pooling and classifiers stay in torch
            self._feature_maps = backend.Graph(self.network, self.network.feature_maps, free=(0, 2, 3))
            self._res5 = backend.Graph(res5, res5.forward)

    @abstractmethod
    def of_image(self, feature_map: torch.Tensor, prepared: Any, scale: float) -> Computed:
        """Compute the items of one image.

        Args:
            feature_map: Float32 [1024, h, w].
            prepared: The result of `prepare`.
            scale: The factor by which the image was resized.

        Returns:
            Its items.
        """

    @torch.inference_mode()
    def extract(self, batch: list[Any], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the items of each image."""
        maps = self.feature_maps(batch)
        computed = {place: self.of_image(feature_map, batch[place], self.scale(sizes[place]))
                    for place, feature_map in maps}
        return [computed[place] for place in range(len(batch))]

    def scale(self, size: tuple[int, int]) -> float:
        """Compute the factor by which an image is resized."""
        return pixels.scale_of(*size, self.options.short_side, self.options.long_side)

    def prepare(self, image: Image.Image) -> Any:
        """Resize the image and subtract the means: float32 [3, H, W]."""
        prepared = pixels.network_input(image, self.scale(image.size))
        if min(prepared.shape[1:]) < geometry.STRIDE:
            raise ImageError(f"{image.width} x {image.height} pixels are too narrow to look for regions in")
        return prepared

    def feature_maps(self, batch: Sequence[torch.Tensor]) -> Iterator[tuple[int, torch.Tensor]]:
        """Compute the map of res4 of each image, float32 [1024, h, w], with its place in the batch.

        Those of equal size are computed together.
        """
        for places in alike(batch, self.at_once):
            with self.runtime.autocast():
                maps = self._feature_maps(self.runtime.send(torch.stack([batch[place] for place in places]))).float()
            yield from zip(places, maps, strict=True)

    def proposal_maps(self, feature_map: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Score and correct the anchors of a map: objectness [12, h, w] and corrections [48, h, w], float32."""
        with self.runtime.autocast():
            objectness, deltas = self.network.proposal_maps(feature_map)
        return objectness.float(), deltas.float()

    def regions(self, feature_map: torch.Tensor, boxes: torch.Tensor) -> Regions:
        """Compute features, classes, attributes and corrections of boxes [R, 4] in pixels of the network's input."""
        with self.runtime.autocast():
            return self.network.regions(feature_map, boxes, self._res5)


def items(regions: Regions, rows: torch.Tensor, boxes: torch.Tensor) -> Computed:
    """Collect some regions as one image's items; boxes [n, 4] are in pixels of the image as decoded."""
    object_score, label = regions.objects[rows].max(dim=1)
    attribute_score, attribute = regions.attributes[rows].max(dim=1)
    return computed(regions.features[rows].float(), {
        "boxes": boxes, "object": label.int(), "object_score": object_score,
        "attribute": attribute.int(), "attribute_score": attribute_score})

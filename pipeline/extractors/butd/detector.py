"""The network with its weights on a device, and what its engines share.

Images are not padded into a batch: padding would change the features near the border, and the boxes of one
image already fill a batch of the part that takes the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from PIL import Image

from pipeline.extractors import backend
from pipeline.extractors.base import Items
from pipeline.extractors.butd import checkpoint, geometry, pixels
from pipeline.extractors.runtime import Runtime
from pipeline.files import weights
from pipeline.files.images import ImageError
from pipeline.settings import Count, Section
from pipeline.store import Extra

if TYPE_CHECKING:
    from pipeline.extractors.butd.network import Regions

# Stored beside the features: the box in pixels of the image as decoded, the likeliest object and attribute as
# rows of Visual Genome's 1600-400-20 vocabularies, and their probabilities.
EXTRAS: Mapping[str, Extra] = {
    "boxes": Extra((4,), "float32"), "object": Extra((), "int32"), "object_score": Extra((), "float32"),
    "attribute": Extra((), "int32"), "attribute_score": Extra((), "float32")}


class Options(Section):
    """weights: a name of manifests/weights.yaml, a file, or "untrained". short_side, long_side: to how many
    pixels the image is resized: the short side becomes short_side, the long one at most long_side."""

    weights: str = "butd-36"
    short_side: Count = pixels.SHORT_SIDE
    long_side: Count = pixels.LONG_SIDE


class Detector:
    """The network, ready to run. digest: SHA-256 over its tensors. trained: whether those were learned."""

    dimension = 2048

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options, self.runtime = options, runtime
        self.network = checkpoint.load(options.weights)
        self.trained = options.weights != weights.UNTRAINED
        self.digest = weights.digest(self.network)
        self.network.to(runtime.device).to(memory_format=torch.channels_last)
        res5 = self.network.roi_heads.res5
        self._feature_map: backend.Forward = self.network.feature_map
        self._res5: backend.Forward = res5
        if runtime.backend != backend.TORCH:  # what takes the time; proposals, pooling and classifiers stay in torch
            self._feature_map = backend.Graph(self.network, self.network.feature_map, free=(1, 2))
            self._res5 = backend.Graph(res5, res5.forward)

    def scale(self, size: tuple[int, int]) -> float:
        """By how much an image of this width and height is enlarged."""
        return pixels.scale_of(*size, self.options.short_side, self.options.long_side)

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """The network's input, float32 [3, H, W]. Raises ImageError for an image too narrow for its map."""
        prepared = pixels.network_input(image, self.scale(image.size))
        if min(prepared.shape[1:]) < geometry.STRIDE:
            raise ImageError(f"{image.width} x {image.height} pixels are too narrow to look for regions in")
        return prepared

    def feature_map(self, prepared: torch.Tensor) -> torch.Tensor:
        """res4 of one prepared image: float32 [1024, h, w]."""
        with self._precision():
            return self._feature_map(prepared.to(self.runtime.device)).float()

    def proposal_maps(self, feature_map: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Objectness [12, h, w] and corrections [48, h, w] of a map's anchors, float32."""
        with self._precision():
            objectness, deltas = self.network.proposal_maps(feature_map)
        return objectness.float(), deltas.float()

    def regions(self, feature_map: torch.Tensor, boxes: torch.Tensor) -> Regions:
        """What the network says of boxes [R, 4] in pixels of its input."""
        with self._precision():
            return self.network.regions(feature_map, boxes, self._res5)

    def _precision(self) -> torch.autocast:
        lower = self.runtime.precision != "fp32"
        return torch.autocast(torch.device(self.runtime.device).type, self.runtime.dtype, enabled=lower)


def items(regions: Regions, rows: torch.Tensor, boxes: torch.Tensor) -> Items:
    """The regions `rows` [n] with their `boxes` [n, 4] as one image's items."""
    object_score, label = regions.objects[rows].max(dim=1)
    attribute_score, attribute = regions.attributes[rows].max(dim=1)
    extras = {"boxes": boxes, "object": label, "object_score": object_score,
              "attribute": attribute, "attribute_score": attribute_score}
    return Items(regions.features[rows].float().cpu().numpy(),
                 {name: extras[name].cpu().numpy().astype(extra.dtype) for name, extra in EXTRAS.items()})

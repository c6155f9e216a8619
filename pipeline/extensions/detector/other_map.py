"""The map of another network than the detector, of a photograph squashed to a square: a CNN, DINO,
CLIP's patches.
"""

from collections.abc import Sequence

import numpy as np
import timm
import torch
from PIL import Image

from pipeline.extensions.detector.options import DetectorOptions
from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors.network import Network
from pipeline.make.features.extractors.runtime import Runtime


class OtherMap:
    """A network of timm: a CNN's last map, or a vision transformer's patches as a map."""

    def __init__(self, runtime: Runtime, options: DetectorOptions) -> None:
        assert options.map_network is not None
        self.name = options.map_network
        self.size = options.map_size
        of_size = {}
        if timm.is_model(self.name):
            usual = timm.get_pretrained_cfg(self.name)
            if usual is not None and usual.fixed_input_size:
                of_size["img_size"] = self.size
        self.network = Network(self.name, options.map_weights, runtime, **of_size)
        embedding = getattr(self.network.model, "patch_embed", None)
        patch = int(np.max(getattr(embedding, "patch_size", 1)))
        rest = self.size % patch
        if rest:
            raise InputError(
                f"map_size {self.size}: is no whole number of the patches of {self.name}; set it to "
                f"{self.size - rest} or {self.size - rest + patch}"
            )

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Squash a photograph to the square: uint8 [S, S, 3]."""
        return self.network.prepare(image, self.size)

    def maps(
        self, squares: Sequence[torch.Tensor], sizes: Sequence[tuple[int, int]]
    ) -> list[FeatureMap]:
        """Compute the maps of photographs of these widths and heights."""
        values = self.network.channels_first(self.network.features(list(squares)))
        if values.ndim == 3:  # tokens: the class token and registers first, then patches row by row
            side = round((values.shape[1] - self.network.prefix) ** 0.5)
            values = values[:, -side * side :].transpose(1, 2).unflatten(2, (side, side))
        if values.ndim != 4:
            raise InputError(
                f"map_network {self.name}: gives {list(values.shape)}; choose a CNN or a ViT"
            )
        square = (self.size, self.size)
        maps = []
        for shown, size in zip(values, sizes, strict=True):
            maps.append(FeatureMap.of_input(shown, square, size))
        return maps

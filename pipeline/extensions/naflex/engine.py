"""The engine `naflex`: patches of a SigLIP 2 that keeps an image's aspect ratio, so their number
differs by image.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import Siglip2VisionModel

from pipeline.extensions.naflex.options import NaFlexOptions
from pipeline.foundation.files import pretrained, weights
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors.base import Computed, Engine, computed
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.store import Extra

TITLE = "SigLIP 2 NaFlex"


class NaFlex(Engine):
    """The vision tower of SigLIP 2 NaFlex (Tschannen et al. 2025), read from a folder of
    `transformers`.
    """

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32")}

    def __init__(self, runtime: Runtime, options: NaFlexOptions) -> None:
        super().__init__(runtime, options)
        folder = Path(options.weights)
        config = pretrained.configuration(folder, TITLE)
        if config.model_type != "siglip2":
            raise InputError(f"{folder}: is a {config.model_type}; expected siglip2")
        self.processor = pretrained.image_processor(folder, TITLE)
        network = pretrained.network(folder, Siglip2VisionModel, config.vision_config, TITLE)
        self.weights = digest([weights.digest(network), self.processor.to_dict()])
        self.network: Any = network.to(runtime.device).eval()
        self.items = options.patches
        self.dimension = int(config.vision_config.hidden_size)

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Resize to at most so many patches, and cut into these: pixels [N, P], a mask [N], and
        rows and columns.
        """
        prepared = self.processor(images=image, max_num_patches=self.items, return_tensors="pt")
        return {name: values[0] for name, values in prepared.items()}

    @torch.inference_mode()
    def extract(
        self, batch: list[Mapping[str, torch.Tensor]], sizes: list[tuple[int, int]]
    ) -> list[Computed]:
        """Compute the patches of each image row by row, with their boxes."""
        inputs = {}
        for name in batch[0]:
            stacked = torch.stack([prepared[name] for prepared in batch])
            inputs[name] = self.runtime.send(stacked)
        with self.runtime.autocast():
            patches = self.network(**inputs).last_hidden_state.float()
        items = []
        for prepared, row, size in zip(batch, patches, sizes, strict=True):
            rows, columns = prepared["spatial_shapes"].tolist()
            boxes = torch.from_numpy(cells(rows, columns, size))
            items.append(computed(row[: rows * columns], {"boxes": boxes}))
        return items


def cells(rows: int, columns: int, size: tuple[int, int]) -> np.ndarray:
    """The boxes of a grid's cells, row by row, in an image of this width and height: float32 [rows
    * columns, 4].
    """
    row, column = np.divmod(np.arange(rows * columns), columns)
    shares = np.stack([column, row, column + 1, row + 1], 1) / [columns, rows, columns, rows]
    return (shares * np.tile(size, 2)).astype(np.float32)

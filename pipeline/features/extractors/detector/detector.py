"""The engine `detector`: a detector's regions as items."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from PIL import Image

from pipeline.features.extractors.backend import TORCH
from pipeline.features.extractors.base import Computed, computed, of_one_shape
from pipeline.features.extractors.detector.hugging_face import HuggingFace
from pipeline.features.extractors.detector.options import DetectorOptions
from pipeline.features.extractors.detector.pooling import FeatureMap
from pipeline.features.extractors.detector.selection import Found, Selected, select
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.files.images import ImageError
from pipeline.parts.errors import InputError

SMALLEST = 16  # pixels a side, as BUTD's smallest box
PROBE = (320, 240)  # width and height of the photograph by which the size of items is found


class Finder(Protocol):
    """A detector with its weights loaded."""

    weights: str  # SHA-256 of them
    at_once: int  # how many photographs of one shape it takes

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """The network's inputs of an upright photograph, without a dimension of a batch."""

    def find(self, batch: Sequence[Any], sizes: Sequence[tuple[int, int]]) -> Iterator[Found]:
        """What the network gives for photographs of one prepared shape, of these widths and heights."""


class Detector:
    """Regions, best first, with their boxes, classes and scores."""

    extras: Mapping[str, Extra] = {"boxes": Extra((4,), "float32"), "object": Extra((), "int32"),
                                   "object_score": Extra((), "float32")}
    depends_on_id, trained, backend = False, True, TORCH

    def __init__(self, runtime: Runtime, options: DetectorOptions) -> None:
        self.options = options
        self.finder = finder(runtime, options)
        self.settings: Mapping[str, Any] = options.recorded()
        self.reported_as, self.weights = options.reported_as, self.finder.weights
        self.items = options.max_boxes + options.whole_image
        noise = np.random.default_rng(0).integers(0, 256, (PROBE[1], PROBE[0], 3), np.uint8)
        self.dimension = self.extract([self.prepare(Image.fromarray(noise))], [PROBE])[0].features.shape[1]

    def prepare(self, image: Image.Image) -> Any:
        """Resize a photograph as the detector needs it."""
        if min(image.size) < SMALLEST:
            raise ImageError(f"{image.width} x {image.height} pixels are too few to look for objects in")
        return self.finder.prepare(image)

    @torch.inference_mode()
    def extract(self, batch: list[Any], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the items of each photograph; only those of one prepared shape share a pass."""
        items: dict[int, Computed] = {}
        shapes = [tuple(each.shape for each in prepared.values()) for prepared in batch]
        for group in of_one_shape(shapes, self.finder.at_once):
            found = self.finder.find([batch[place] for place in group], [sizes[place] for place in group])
            for place, each in zip(group, found, strict=True):
                items[place] = self._items(each, select(each, sizes[place], self.options))
        return [items[place] for place in range(len(batch))]

    def _items(self, found: Found, selected: Selected) -> Computed:
        extras = {"boxes": selected.boxes, "object": selected.labels.int(), "object_score": selected.scores}
        if self.options.items == "regions":
            return computed(self._map(found).pooled(selected.boxes), extras)
        if found.queries is None:
            raise InputError("items: queries: this detector has no vector for each query; set items: regions")
        if (selected.rows < 0).any():
            raise InputError("items: queries: no box is inside the photograph; set items: regions")
        return computed(found.queries[selected.rows], extras)

    def _map(self, found: Found) -> FeatureMap:
        if not found.maps:
            raise InputError("items: regions: this detector shows no map of its own; set items: queries")
        return min(found.maps, key=lambda each: abs(np.log(each.stride / self.options.stride)))


def finder(runtime: Runtime, options: DetectorOptions) -> Finder:
    """Load the detector that the options name."""
    if options.weights is None:
        raise InputError("no detector is named; set the option weights to a folder of transformers, such as that of "
                         "RF-DETR: -S features.light.detector.weights=FOLDER")
    return HuggingFace(Path(options.weights), runtime, options.prompts)

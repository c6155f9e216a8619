"""The engine `detector`: a detector's regions as items."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from PIL import Image

from pipeline.extensions.detector.options import DetectorOptions
from pipeline.extensions.detector.other_map import OtherMap
from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.extensions.detector.selection import WHOLE, Found, Selected, select
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.lazy import imported
from pipeline.make.features.extractors.base import Computed, Engine, computed, of_one_shape
from pipeline.make.features.extractors.given_boxes import GivenBoxes
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.store import Extra

SMALLEST = 16  # pixels a side, as BUTD's smallest box
GRAPHS = (".onnx", ".xml")
PROBE = (320, 240)  # width and height of the photograph by which the size of items is found


class Finder(Protocol):
    """A detector with its weights loaded, or boxes from a file."""

    weights: str  # SHA-256 of its tensors or files
    at_once: int  # how many photographs of one shape it takes

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """The network's inputs of an upright `image`, without a dimension of a batch; ImageError if
        it takes none.
        """

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """The objects that are found in each of a batch of photographs of one shape, of these sizes
        in pixels.
        """


class Prepared(NamedTuple):
    """A prepared photograph."""

    inputs: Mapping[str, torch.Tensor]  # the detector's
    square: torch.Tensor | None  # the other network's, uint8 [S, S, 3]


class Detector(Engine):
    """Regions, best first, with their boxes, classes and scores."""

    extras: Mapping[str, Extra] = {
        "boxes": Extra((4,), "float32"),
        "object": Extra((), "int32"),
        "object_score": Extra((), "float32"),
    }

    def __init__(self, runtime: Runtime, options: DetectorOptions) -> None:
        super().__init__(runtime, options)
        self.finder = finder(runtime, options)
        self.other = OtherMap(runtime, options) if options.map_network else None
        self.weights = self.finder.weights
        if self.other is not None:
            self.weights = digest([self.weights, self.other.network.digest])
            self.backend = runtime.backend
            self.trained &= self.other.network.trained
        self.items = options.max_boxes
        self.depends_on_id = isinstance(self.finder, Given)
        if isinstance(self.finder, Given):
            self.items = max(options.max_boxes, self.finder.unranked)
        self.items += options.whole_image
        self.dimension = self._dimension()

    def _dimension(self) -> int:
        """The size of an item, of a photograph of noise."""
        width, height = PROBE
        pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
        probe = Image.fromarray(pixels)
        # Given boxes are of no such photograph.
        if self.other is not None and isinstance(self.finder, Given):
            square = self.other.prepare(probe)
            (shown,) = self.other.maps([square], [PROBE])
            return len(shown.values)
        (items,) = self.extract([self.prepare(probe)], [PROBE])
        return int(items.features.shape[1])

    def prepare(self, image: Image.Image) -> Prepared:
        """Resize a photograph as the networks need it."""
        if min(image.size) < SMALLEST:
            raise ImageError(
                f"{image.width} x {image.height} pixels are too few to look for objects in"
            )
        inputs = self.finder.prepare(image)
        square = None
        if self.other is not None:
            square = self.other.prepare(image)
        return Prepared(inputs, square)

    @torch.inference_mode()
    def extract(self, batch: list[Prepared], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the items of each photograph; only those of one prepared shape share a pass."""
        items: dict[int, Computed] = {}
        shapes = []
        for prepared in batch:
            shapes.append(tuple(values.shape for values in prepared.inputs.values()))
        for group in of_one_shape(shapes, self.finder.at_once):
            of_group = [sizes[place] for place in group]
            detections = list(self.finder.find([batch[place].inputs for place in group], of_group))
            if self.other is not None:
                squares = [batch[place].square for place in group]
                maps = self.other.maps(
                    [square for square in squares if square is not None], of_group
                )
                detections = [
                    replace(found, maps=[shown])
                    for found, shown in zip(detections, maps, strict=True)
                ]
            for place, found in zip(group, detections, strict=True):
                items[place] = self._items(found, select(found, sizes[place], self.options))
        return [items[place] for place in range(len(batch))]

    def _items(self, found: Found, selected: Selected) -> Computed:
        extras = {
            "boxes": selected.boxes,
            "object": selected.labels.int(),
            "object_score": selected.scores,
        }
        if self.options.items == "regions":
            if not found.maps:
                raise InputError(
                    "items: regions: this detector shows no map of its own; set map_network"
                )
            return computed(
                _nearest(found.maps, self.options.stride).pooled(selected.boxes), extras
            )
        if found.queries is None:
            raise InputError(
                "items: queries: this detector has no vector for each query; set items: regions"
            )
        if (selected.rows < 0).any():
            raise InputError("items: queries: no box is inside a photograph; set items: regions")
        return computed(found.queries[selected.rows], extras)


def _nearest(maps: Sequence[FeatureMap], stride: int) -> FeatureMap:
    """The map whose stride is nearest to a wanted one."""

    def distance(shown: FeatureMap) -> float:
        return abs(math.log(shown.stride / stride))

    return min(maps, key=distance)


class Given:
    """Boxes from a file in place of a detector."""

    at_once = 16
    weights = ""

    def __init__(self, path: str, images: str | None) -> None:
        self.boxes = GivenBoxes(Path(path), Path(images) if images else None)
        unranked = [len(given.boxes) for given in self.boxes.boxes.values() if given.scores is None]
        self.unranked = max(unranked, default=0)

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Look up the boxes of a photograph, see `Finder.prepare`."""
        given = self.boxes.of(image)
        named = {"boxes": given.boxes, "scores": given.scores, "labels": given.labels}
        return {
            name: torch.from_numpy(values) for name, values in named.items() if values is not None
        }

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """Take the boxes as they are, see `Finder.find`."""
        for given in batch:
            count = len(given["boxes"])
            scores = given.get("scores", torch.ones(count))
            labels = given.get("labels", torch.full((count,), WHOLE))
            yield Found(given["boxes"], scores, labels, ranked="scores" in given)


def finder(runtime: Runtime, options: DetectorOptions) -> Finder:
    """Load the detector that the options name."""
    if options.unnamed:
        raise InputError(options.unnamed)
    if options.boxes is not None:
        return Given(options.boxes, options.box_images)
    assert options.weights is not None
    path = Path(options.weights)
    if path.suffix in GRAPHS:
        return _kind("graph:Graph", path)
    if options.network is not None and options.network.endswith((".yaml", ".yml")):
        return _kind("detectron2:Detectron2", Path(options.network), options.weights, runtime)
    if options.network is not None:
        return _kind("torchvision:TorchVision", options.network, options.weights, runtime)
    if path.is_file():
        raise InputError(
            f"{path}: is a file of weights; set network to its name in torchvision, or to "
            "detectron2's .yaml"
        )
    extras.require("training", f"the detector {path}", "transformers")
    return _kind("hugging_face:HuggingFace", path, runtime, options.prompts)


def _kind(place: str, *given: Any) -> Finder:
    """Build a kind of detector, whose library is imported only for it."""
    kind = imported(f"{__package__}.{place}")
    built: Finder = kind(*given)
    return built

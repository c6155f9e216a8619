"""The engine `detector`: a detector's regions as items."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from PIL import Image

from pipeline.features.extractors.base import Computed, Engine, computed, of_one_shape
from pipeline.features.extractors.detector.options import DetectorOptions
from pipeline.features.extractors.detector.other_map import OtherMap
from pipeline.features.extractors.detector.selection import WHOLE, Found, Selected, select
from pipeline.features.extractors.given_boxes import GivenBoxes
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.files.digest import digest
from pipeline.files.images import ImageError
from pipeline.parts import extras
from pipeline.parts.errors import InputError
from pipeline.parts.lazy import imported

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
            self.weights, self.backend = (
                digest([self.weights, self.other.network.digest]),
                runtime.backend,
            )
            self.trained &= self.other.network.trained
        self.items, self.depends_on_id = options.max_boxes, isinstance(self.finder, Given)
        if isinstance(self.finder, Given):  # which knows no boxes of the photograph below
            self.items = max(options.max_boxes, self.finder.unranked)
        self.items += options.whole_image
        probe = Image.fromarray(
            np.random.default_rng(0).integers(0, 256, (PROBE[1], PROBE[0], 3), np.uint8)
        )
        if self.other is not None and isinstance(self.finder, Given):
            self.dimension = len(self.other.maps([self.other.prepare(probe)], [PROBE])[0].values)
        else:
            self.dimension = self.extract([self.prepare(probe)], [PROBE])[0].features.shape[1]

    def prepare(self, image: Image.Image) -> Prepared:
        """Resize a photograph as the networks need it."""
        if min(image.size) < SMALLEST:
            raise ImageError(
                f"{image.width} x {image.height} pixels are too few to look for objects in"
            )
        return Prepared(
            self.finder.prepare(image), None if self.other is None else self.other.prepare(image)
        )

    @torch.inference_mode()
    def extract(self, batch: list[Prepared], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the items of each photograph; only those of one prepared shape share a pass."""
        items: dict[int, Computed] = {}
        shapes = [tuple(each.shape for each in prepared.inputs.values()) for prepared in batch]
        for group in of_one_shape(shapes, self.finder.at_once):
            of_group = [sizes[place] for place in group]
            found = [*self.finder.find([batch[place].inputs for place in group], of_group)]
            if self.other is not None:
                squares = [square for place in group if (square := batch[place].square) is not None]
                found = [
                    replace(each, maps=[shown])
                    for each, shown in zip(found, self.other.maps(squares, of_group), strict=True)
                ]
            for place, each in zip(group, found, strict=True):
                items[place] = self._items(each, select(each, sizes[place], self.options))
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
            nearest = min(
                found.maps, key=lambda each: abs(math.log(each.stride / self.options.stride))
            )
            return computed(nearest.pooled(selected.boxes), extras)
        if found.queries is None or (selected.rows < 0).any():
            raise InputError(
                "items: queries: "
                + (
                    "this detector has no vector for each query"
                    if found.queries is None
                    else "no box is inside a photograph"
                )
                + "; set items: regions"
            )
        return computed(found.queries[selected.rows], extras)


class Given:
    """Boxes from a file in place of a detector."""

    at_once, weights = 16, ""

    def __init__(self, path: str, images: str | None) -> None:
        self.boxes = GivenBoxes(Path(path), Path(images) if images else None)
        self.unranked = max(
            (len(each.boxes) for each in self.boxes.boxes.values() if each.scores is None),
            default=0,
        )

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
            yield Found(
                given["boxes"],
                given.get("scores", torch.ones(count)),
                given.get("labels", torch.full((count,), WHOLE)),
                ranked="scores" in given,
            )


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
    found: Finder = imported(f"{__package__}.{place}")(*given)
    return found

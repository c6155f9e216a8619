"""The engines butd-36 and butd-10-100: the items are regions that the network detects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from PIL import Image
from pydantic import model_validator

from pipeline.features.extractors.base import Computed
from pipeline.features.extractors.butd import detector, geometry, pixels
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.settings import Count


class Options(detector.Options):
    """Settings of detected regions."""

    min_boxes: Count = 36  # the fewest items of an image
    max_boxes: Count = 36  # the most items of an image
    boxes: Literal["proposals", "regressed"] = "proposals"  # the rule that selects them, see geometry.py
    proposals: Count = geometry.AFTER_NMS  # how many boxes of the region proposal network are considered
    ALWAYS_RECORDED = frozenset({*detector.Options.ALWAYS_RECORDED, "min_boxes", "max_boxes", "boxes", "proposals"})

    @model_validator(mode="after")
    def _enough(self) -> Options:
        if not self.min_boxes <= self.max_boxes <= self.proposals:
            raise ValueError("expected min_boxes <= max_boxes <= proposals")
        return self

    @property
    def reported_as(self) -> str:
        """The name under which the features are reported, such as butd-36-proposals."""
        counts = {self.min_boxes: str(self.min_boxes), self.max_boxes: str(self.max_boxes)}
        usual = (self.short_side, self.long_side) == (pixels.SHORT_SIDE, pixels.LONG_SIDE)
        return "-".join(["butd", *counts.values(), self.boxes]
                        + ([] if usual else [f"{self.short_side}px", f"{self.long_side}px"]))


class Detected:
    """Regions that the network detects, best first, with boxes, classes and attributes."""

    extras: Mapping[str, Extra] = detector.EXTRAS

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options = options
        self.detector = detector.Detector(options, runtime)
        self.settings: Mapping[str, Any] = options.recorded()
        self.reported_as, self.items = options.reported_as, options.max_boxes
        self.dimension = self.detector.dimension
        self.trained, self.weights = self.detector.trained, self.detector.digest
        self.backend = runtime.backend

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize the image and subtract the means: float32 [3, H, W]."""
        return self.detector.prepare(image)

    @torch.inference_mode()
    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute min_boxes to max_boxes items for each image, fewer where an image has fewer regions."""
        found = {place: self._one(feature_map, batch[place], self.detector.scale(sizes[place]))
                 for place, feature_map in self.detector.feature_maps(batch)}
        return [found[place] for place in range(len(batch))]

    def _one(self, feature_map: torch.Tensor, prepared: torch.Tensor, scale: float) -> Computed:
        height, width = prepared.shape[1:]
        found = geometry.propose(*self.detector.proposal_maps(feature_map), width, height, scale,
                                  self.options.proposals)
        regions = self.detector.regions(feature_map, found)
        select = geometry.RULES[self.options.boxes]
        rows, boxes = select(found, regions.objects, regions.deltas, (width, height), scale,
                             self.options.min_boxes, self.options.max_boxes)
        return detector.items(regions, rows, boxes / scale)

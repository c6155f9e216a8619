"""The engines butd-36 and butd-10-100: the items are regions that the network detects."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import model_validator

from pipeline.features.extractors.base import Computed
from pipeline.features.extractors.butd import detector, geometry, pixels
from pipeline.features.extractors.runtime import Runtime
from pipeline.settings import Count


class Options(detector.Options):
    """Settings of detected regions."""

    min_boxes: Count = 36  # the fewest items of an image
    max_boxes: Count = 36  # the most items of an image
    boxes: Literal["proposals", "regressed"] = "proposals"  # the rule that selects them, see geometry.py
    proposals: Count = geometry.AFTER_NMS  # how many boxes of the region proposal network are considered
    ALWAYS_RECORDED = detector.Options.ALWAYS_RECORDED | {"min_boxes", "max_boxes", "boxes", "proposals"}

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


class Detected(detector.Detector):
    """Regions that the network detects, best first, with boxes, classes and attributes.

    An image has min_boxes to max_boxes items, fewer where it has fewer regions.
    """

    def __init__(self, options: Options, runtime: Runtime) -> None:
        super().__init__(options, runtime)
        self.options: Options = options
        self.reported_as, self.items = options.reported_as, options.max_boxes

    def of_image(self, feature_map: torch.Tensor, prepared: torch.Tensor, scale: float) -> Computed:
        """Propose regions, and choose some by the rule."""
        height, width = prepared.shape[1:]
        proposed = geometry.propose(*self.proposal_maps(feature_map), width, height, scale, self.options.proposals)
        regions = self.regions(feature_map, proposed)
        select = geometry.RULES[self.options.boxes]
        rows, boxes = select(proposed, regions.objects, regions.deltas, (width, height), scale,
                             self.options.min_boxes, self.options.max_boxes)
        return detector.items(regions, rows, boxes / scale)

"""The options of the BUTD engines."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from pipeline.foundation.settings import Count
from pipeline.make.features.extractors.options import RESIZED, EngineOptions, of_sides

PROPOSALS = 300  # TEST.RPN_POST_NMS_TOP_N of Caffe's lib/fast_rcnn/config.py
DETECTRON2 = (
    "pip install --no-build-isolation 'git+https://github.com/facebookresearch/detectron2.git'"
)


class ButdOptions(EngineOptions):
    """Options that all BUTD engines share."""

    weights: str = "butd-36"  # A name in manifests/weights.yaml, a file, or "untrained"
    short_side: Count = RESIZED[0]  # Pixels to which the image's short side is resized
    long_side: Count = RESIZED[1]  # The most pixels that the long side may then have
    ALWAYS_RECORDED = frozenset({"weights", "short_side", "long_side"})
    PACKAGES: ClassVar[Mapping[str, str]] = {"detectron2": DETECTRON2}

    def named(self, *parts: str) -> str:
        """The name that begins with these parts; it ends with published weights other than the
        engine's own.
        """
        from pipeline.foundation.files.weights import checkpoints

        usual = {"butd-36", type(self).model_fields["weights"].default}
        if self.weights in checkpoints() and self.weights not in usual:
            parts = (*parts, self.weights)
        return "-".join(parts)


class DetectedOptions(ButdOptions):
    """Options of detected regions."""

    min_boxes: Count = 36  # The fewest items of an image
    max_boxes: Count = 36  # The most items of an image
    # The rule that selects them, see geometry.py.
    boxes: Literal["proposals", "regressed"] = "proposals"
    proposals: Count = PROPOSALS  # How many boxes of the region proposal network are considered
    ALWAYS_RECORDED = ButdOptions.ALWAYS_RECORDED | {"min_boxes", "max_boxes", "boxes", "proposals"}

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if not self.min_boxes <= self.max_boxes <= self.proposals:
            raise ValueError("expected min_boxes <= max_boxes <= proposals")
        return self

    @property
    def reported_as(self) -> str:
        counts = dict.fromkeys([str(self.min_boxes), str(self.max_boxes)])
        parts = ["butd", *counts, self.boxes, *of_sides(self.short_side, self.long_side)]
        if self.proposals != PROPOSALS:
            parts.append(f"rpn{self.proposals}")
        return self.named(*parts)


class Detected10To100Options(DetectedOptions):
    """10 to 100 regions, by the weights published with them."""

    weights: str = "butd-10-100"
    min_boxes: Count = 10
    max_boxes: Count = 100


class GivenOptions(ButdOptions):
    """Options of given boxes."""

    # A file or folder of boxes in pixels of the upright image, see `extractors.given_boxes`. In an
    # .npz the name of an array is that of the image file, preceded by as many folders as make it
    # unique.
    boxes: str
    FILES: ClassVar[tuple[str, ...]] = ("boxes",)

    @property
    def reported_as(self) -> str:
        return self.named("butd-given", *of_sides(self.short_side, self.long_side))

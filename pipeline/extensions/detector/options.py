"""The options of the engine `detector`."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from pipeline.foundation.files.digest import digest
from pipeline.foundation.settings import Count, Share
from pipeline.make.features.extractors.options import EngineOptions


class DetectorOptions(EngineOptions):
    """Which detector, which of its boxes become items, and what is pooled in them."""

    # A folder of `transformers`; a graph .onnx or .xml; weights of the detector that `network`
    # names
    weights: str | None = None
    network: str | None = None  # A name of torchvision's detectors, or a file .yaml of detectron2
    # A file or folder of boxes in place of a detector, see `extractors.given_boxes`
    boxes: str | None = None
    box_images: str | None = None  # A COCO data set's .json that names the images of COCO's results
    # What a detector that is asked by words looks for
    prompts: list[str] = Field(default_factory=list)
    min_boxes: Count = 36  # The fewest boxes of an image, if the detector gives as many
    max_boxes: Count = 36  # The most boxes of an image
    confidence: Share = 0.2  # What boxes beyond min_boxes must score
    # A box that overlaps a better one by more is left out
    overlap: Annotated[float, Field(ge=0, le=1)] = 0.5
    whole_image: bool = False  # Whether the whole image is an item, the first
    # regions: the mean of a map inside each box; queries: the vector from which the detector scored
    # each box
    items: Literal["regions", "queries"] = "regions"
    # Pixels a cell; of a detector's maps the one with the nearest stride is pooled
    stride: Count = 16
    # Any network of timm, whose map is pooled in place of the detector's own
    map_network: str | None = None
    map_weights: str = "untrained"  # A name in manifests/weights.yaml, a file, or "untrained"
    map_size: Count = 384  # Pixels a side of the square to which that network resizes
    LIBRARIES: ClassVar[tuple[str, ...]] = (*EngineOptions.LIBRARIES, "transformers")
    FILES: ClassVar[tuple[str, ...]] = ("boxes", "box_images")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.min_boxes > self.max_boxes:
            raise ValueError("expected min_boxes <= max_boxes")
        if self.items == "queries" and self.whole_image:
            raise ValueError(
                "the whole image has no query; set whole_image: false or items: regions"
            )
        if self.items == "queries" and (self.map_network or self.boxes):
            raise ValueError(
                "queries are the detector's; leave map_network and boxes out, or set items: regions"
            )
        if self.boxes and (self.weights or self.map_network is None):
            raise ValueError(
                "given boxes take the place of a detector: leave weights out, and set map_network"
            )
        return self

    @property
    def unnamed(self) -> str:
        if self.weights is not None or self.boxes is not None:
            return super().unnamed
        return (
            "no detector is named; set the option weights to a folder of transformers, such as that of RF-DETR: "
            "-S features.light.detector.weights=FOLDER"
        )

    @property
    def reported_as(self) -> str:
        usual = type(self)()
        network = []
        if self.network:
            network = [Path(self.network).stem]
        elif self.boxes:
            network = ["given"]
        counts = dict.fromkeys([str(self.min_boxes), str(self.max_boxes)])
        parts = ["detector", *network, *counts]
        for name in ("confidence", "overlap", "stride"):
            value = getattr(self, name)
            if value != getattr(usual, name):
                parts.append(f"{name}{value:g}")
        if self.whole_image:
            parts.append("whole")
        if self.items == "queries":
            parts.append("queries")
        if self.map_network:
            parts += [self.map_network, f"{self.map_size}px"]
        if self.prompts:
            parts.append(f"prompts{digest(self.prompts)[:8]}")
        return "-".join(parts)

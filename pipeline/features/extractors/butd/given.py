"""The engine butd-given: features, classes and attributes of given boxes.

The boxes are pooled as they are: none is proposed, moved or left out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from pipeline.features.extractors.base import Computed
from pipeline.features.extractors.butd import detector
from pipeline.features.extractors.runtime import Runtime
from pipeline.files import digest, images
from pipeline.parts.errors import InputError, refusing


class Options(detector.ButdOptions):
    """Settings of given boxes.

    Attributes:
        boxes: An .npz file with an array [n, 4] for each image, x1 y1 x2 y2 in pixels of the upright image. Its name is
            that of the image file, preceded by as many folders as make it unique.
    """

    boxes: str


class Prepared(NamedTuple):
    """A prepared image."""

    pixels: torch.Tensor  # the network's input, float32 [3, H, W]
    boxes: np.ndarray  # float32 [n, 4] in pixels of the image


class Given(detector.Detector):
    """One item for each given box, in their order."""

    reported_as = "butd-given"

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.boxes = read_boxes(Path(options.boxes))
        super().__init__(options, runtime)
        self.settings = {**options.recorded(), "boxes": digest.sha256(Path(options.boxes))}
        self.items = max(map(len, self.boxes.values()))

    def prepare(self, image: Image.Image) -> Prepared:
        """Resize the image and look up its boxes by the file name in `image.info["file"]`."""
        parts = PurePosixPath(str(image.info.get("file"))).parts
        names = ("/".join(parts[start:]) for start in range(len(parts)))  # the longest that is there is the nearest
        boxes = next((self.boxes[name] for name in names if name in self.boxes), None)
        if boxes is None:
            raise images.ImageError(f"no boxes are given for {parts[-1]}")
        if (boxes[:, 2:] < 0).any() or (boxes[:, :2] > np.array(image.size)).any():
            raise images.ImageError(f"a box lies outside the image, which has {image.width} x {image.height} pixels")
        return Prepared(super().prepare(image), boxes)

    def feature_maps(self, batch: Sequence[Any]) -> Iterator[tuple[int, torch.Tensor]]:
        """Compute the map of res4 of each image, see `MapEngine.feature_maps`."""
        return super().feature_maps([prepared.pixels for prepared in batch])

    def of_image(self, feature_map: torch.Tensor, prepared: Prepared, size: tuple[int, int]) -> Computed:
        """Pool the given boxes."""
        boxes = torch.from_numpy(prepared.boxes).to(feature_map.device)
        regions = self.regions(feature_map, boxes * self.scale(size))
        return detector.items(regions, torch.arange(len(boxes), device=boxes.device), boxes)


def read_boxes(path: Path) -> dict[str, np.ndarray]:
    """Read the file of boxes: image file name -> boxes, float32 [n, 4]."""
    # missing, not a zip file, pickled objects, broken headers
    with (refusing(Exception, lambda error: f"boxes {path}: not readable as .npz of numbers ({type(error).__name__})"),
          np.load(path, allow_pickle=False) as file):
        boxes = {name: np.asarray(file[name], dtype=np.float32) for name in file.files}
    for name, array in boxes.items():
        if array.ndim != 2 or array.shape[1] != 4 or not len(array):
            raise InputError(f"boxes {path}: {name}: expected shape (n, 4), n at least 1, got {array.shape}")
        if not np.isfinite(array).all() or (array[:, 2:] < array[:, :2]).any():
            raise InputError(f"boxes {path}: {name}: expected finite x1 y1 x2 y2 with x1 <= x2 and y1 <= y2")
    if not boxes:
        raise InputError(f"boxes {path}: holds no array")
    return boxes

"""The engine butd-given: features, classes and attributes of boxes that you bring.

The boxes are pooled as they are: no box is proposed, moved or left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.errors import InputError
from pipeline.extractors.base import Items
from pipeline.extractors.butd import detector
from pipeline.extractors.runtime import Runtime
from pipeline.files.digest import sha256
from pipeline.files.images import ImageError
from pipeline.store import Extra


class Options(detector.Options):
    """boxes: an .npz file with an array for each image, under the name of its file, with as many folders before it as
    tell it from others: [n, 4], x1 y1 x2 y2 in pixels of the upright image."""

    boxes: str


@dataclass(frozen=True)
class Prepared:
    """The network's input, float32 [3, H, W], and the boxes, float32 [n, 4] in pixels of the image."""

    pixels: torch.Tensor
    boxes: np.ndarray


class Given:
    """One item a given box, in the order in which they are given."""

    version = 1
    extras: Mapping[str, Extra] = detector.EXTRAS

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.boxes = read(Path(options.boxes))
        self.detector = detector.Detector(options, runtime)
        self.settings: Mapping[str, Any] = {**options.model_dump(), "boxes": sha256(Path(options.boxes))}
        self.reported_as = "butd-given"
        self.items = max(map(len, self.boxes.values()))
        self.dimension = self.detector.dimension
        self.trained, self.weights = self.detector.trained, self.detector.digest
        self.backend = runtime.backend

    def prepare(self, image: Image.Image) -> Prepared:
        """The network's input and the boxes of the file name in `image.info["file"]`.

        Raises ImageError for an image without boxes, or with one that lies outside it.
        """
        parts = PurePosixPath(str(image.info.get("file"))).parts
        names = ("/".join(parts[start:]) for start in range(len(parts)))  # the longest that is there is the nearest
        boxes = next((self.boxes[name] for name in names if name in self.boxes), None)
        if boxes is None:
            raise ImageError(f"no boxes are given for {parts[-1]}")
        if (boxes[:, 2:] < 0).any() or (boxes[:, :2] > np.array(image.size)).any():
            raise ImageError(f"a box lies outside the image, which has {image.width} x {image.height} pixels")
        return Prepared(self.detector.prepare(image), boxes)

    @torch.inference_mode()
    def extract(self, batch: list[Prepared], sizes: list[tuple[int, int]]) -> list[Items]:
        """As many items an image as it has boxes."""
        return [self._one(prepared, self.detector.scale(size))
                for prepared, size in zip(batch, sizes, strict=True)]

    def _one(self, prepared: Prepared, scale: float) -> Items:
        feature_map = self.detector.feature_map(prepared.pixels)
        boxes = torch.from_numpy(prepared.boxes).to(feature_map.device)
        regions = self.detector.regions(feature_map, boxes * scale)
        return detector.items(regions, torch.arange(len(boxes), device=boxes.device), boxes)


def read(path: Path) -> dict[str, np.ndarray]:
    """Image file name -> boxes [n, 4] float32. Raises InputError for anything else, naming the array."""
    try:
        with np.load(path, allow_pickle=False) as file:
            boxes = {name: np.asarray(file[name], dtype=np.float32) for name in file.files}
    except Exception as error:  # missing, not a zip file, pickled objects, broken headers
        raise InputError(f"boxes {path}: not readable as .npz of numbers ({type(error).__name__})") from None
    for name, array in boxes.items():
        if array.ndim != 2 or array.shape[1] != 4 or not len(array):
            raise InputError(f"boxes {path}: {name}: expected shape (n, 4), n at least 1, got {array.shape}")
        if not np.isfinite(array).all() or (array[:, 2:] < array[:, :2]).any():
            raise InputError(f"boxes {path}: {name}: expected finite x1 y1 x2 y2 with x1 <= x2 and y1 <= y2")
    if not boxes:
        raise InputError(f"boxes {path}: holds no array")
    return boxes

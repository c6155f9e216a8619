"""Items with their places in the image: six values after each item's features, as OSCAR reads them.

Stores of regions hold boxes and the images' sizes. For cells of a grid and patches of a square,
boxes are computed.
"""

from math import isqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.foundation.parts.errors import counted
from pipeline.make.features.store.item_format import ItemFormat
from pipeline.make.features.store.layout import StoreError
from pipeline.make.features.store.reader import FeatureStore

Floats = npt.NDArray[np.float32]
# x1 / W, y1 / H, x2 / W, y2 / H, width / W, height / H (Geigle et al., released code).
VALUES = 6
# Engines whose items are the cells of a square over the whole image, row by row.
SQUARE = ("grid", "patch")


class BoxedStore(FeatureStore):
    """A `FeatureStore` whose items are read with six more values each: their place in the image."""

    def __init__(self, path: Path, rows: np.ndarray | None = None) -> None:
        super().__init__(path, rows)
        self.cells = cells_of(ItemFormat.of(self), path)
        if self.cells is not None:
            return
        self.sizes = self.columns("sizes")
        has_no_size = (self.sizes <= 0).any(axis=1)
        unknown = np.flatnonzero(self.done & has_no_size)
        if len(unknown):
            number = counted(len(unknown), "image")
            first = self.ids[unknown[0]]
            raise StoreError(
                f"{path}: does not know the size of {number}, the first {first}, and boxes are "
                "shares of it; import features with image sizes, or set the recipe's "
                "architecture.boxes to false"
            )

    @property
    def width(self) -> int:
        """D + 6."""
        return self.layout.dimension + VALUES

    def read(
        self, rows: np.ndarray, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read features with boxes of rows, int64 [B]: float32 [B, N, D + 6], padding zero, and
        counts int64 [B].
        """
        items, counts = super().read(rows)
        if self.cells is None:
            six_values = six(self.extra("boxes", rows), self.sizes[rows])
        else:
            six_values = self.cells
        return join(items, counts, six_values, out), counts


def join(
    items: np.ndarray, counts: np.ndarray, six_values: Floats, out: np.ndarray | None = None
) -> Floats:
    """Append six values of each place [B, N, 6], or [N, 6] for cells of a square, to items [B, N,
    D]; padding zero.
    """
    images, slots, dimension = items.shape
    if out is None:
        out = np.empty((images, slots, dimension + VALUES), np.float32)
    out[..., :-VALUES] = items
    out[..., -VALUES:] = six_values
    is_padding = np.arange(slots) >= counts[:, None]
    out[is_padding] = 0
    return out


def six(boxes: npt.NDArray[np.float32], sizes: npt.NDArray[np.int32]) -> Floats:
    """Compute the six values of boxes [B, N, 4] (x1, y1, x2, y2) in images of sizes [B, 2], in
    pixels: [B, N, 6].
    """
    size_of_corners = np.tile(sizes, 2).astype(np.float32)
    shares = boxes / size_of_corners[:, None, :]
    sides = shares[..., 2:] - shares[..., :2]
    return np.concatenate([shares, sides], axis=2)


def cells_of(made: ItemFormat, path: Path) -> Floats | None:
    """The six values of each cell of a square, float32 [N, 6], of the whole image for a class
    token; None for boxes.
    """
    if made.boxes:
        return None
    settings = made.made.get("settings", {})
    class_tokens = 1 if settings.get("cls") else 0
    cells = made.items - class_tokens
    side = isqrt(cells)
    if made.made.get("engine") not in SQUARE or side**2 != cells:
        raise StoreError(
            f"{path}: does not say where its items are in the image; import features with boxes, or "
            "set the recipe's architecture.boxes to false"
        )
    row, column = np.divmod(np.arange(cells), side)
    corners = np.stack([column, row, column + 1, row + 1], axis=1) / side
    whole_image = np.tile([[0.0, 0.0, 1.0, 1.0]], (class_tokens, 1))
    boxes = np.concatenate([whole_image, corners]).astype(np.float32)
    size = np.ones((1, 2), np.int32)
    return six(boxes[None], size)[0]

"""From a map and boxes to items."""

from dataclasses import dataclass

import torch
from torchvision.ops import roi_align

STRIDES = (4, 8, 16, 32, 64, 128)  # pixels a cell, of convolutional networks


@dataclass(frozen=True)
class FeatureMap:
    """A network's map of a photograph, and where its cells are in it."""

    values: torch.Tensor  # float32 [C, h, w]
    stride: float  # pixels of the network's input a cell
    scale: tuple[float, float]  # cells a pixel of the photograph, across and down

    @classmethod
    def of_input(
        cls, values: torch.Tensor, given: tuple[int, int], shown: tuple[float, float]
    ) -> "FeatureMap":
        """Place a map: [C, h, w] of an input of a width and height that shows so many pixels of the
        photograph.
        """
        down, across = values.shape[1:]
        width, height = given
        stride = height / down
        cells: tuple[float, float] = (across, down)
        for usual in STRIDES:
            if (-(-width // usual), -(-height // usual)) == (across, down):
                stride = usual
                cells = (width / usual, height / usual)
                break
        return cls(values.float(), stride, (cells[0] / shown[0], cells[1] / shown[1]))

    def pooled(self, boxes: torch.Tensor) -> torch.Tensor:
        """Compute the mean of the map inside boxes [n, 4], pixels of the photograph: float32 [n, C]
        (RoIAlign).
        """
        cells = boxes * boxes.new_tensor(self.scale * 2)
        pooled = roi_align(self.values[None], [cells], output_size=1, aligned=True)
        return pooled.flatten(1)

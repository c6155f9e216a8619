"""From an image to the network's input, as Caffe's `lib/fast_rcnn/test.py` makes it."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

# Blue, green, red: PIXEL_MEANS of Caffe's lib/fast_rcnn/config.py. The values are not divided by anything.
MEANS = (102.9801, 115.9465, 122.7717)
SHORT_SIDE = 600  # TEST.SCALES, same file
LONG_SIDE = 1000  # TEST.MAX_SIZE, same file


def scale_of(width: int, height: int, short_side: int = SHORT_SIDE, long_side: int = LONG_SIDE) -> float:
    """How much an image is enlarged: its short side to `short_side`, the long one at most to `long_side`."""
    scale = short_side / min(width, height)
    return long_side / max(width, height) if round(scale * max(width, height)) > long_side else scale


def network_input(image: Image.Image, scale: float) -> torch.Tensor:
    """Pixels of an RGB image less the means, enlarged: float32 [3, H, W], blue first."""
    pixels = np.asarray(image, dtype=np.float32)[:, :, ::-1] - np.array(MEANS, dtype=np.float32)
    return enlarge(torch.from_numpy(pixels.transpose(2, 0, 1)), scale)


def square_input(image: Image.Image, size: int) -> torch.Tensor:
    """As `network_input`, but to a square whatever the aspect (VSE-infinity's grids): float32 [3, size, size]."""
    pixels = np.asarray(image, dtype=np.float32)[:, :, ::-1] - np.array(MEANS, dtype=np.float32)
    planes = torch.from_numpy(pixels.transpose(2, 0, 1))
    return _along_last(_along_last(planes, size / image.width).mT, size / image.height).mT.contiguous()


def enlarge(pixels: torch.Tensor, scale: float) -> torch.Tensor:
    """Bilinear, without smoothing first, of [..., H, W], as OpenCV does when it is given a factor.

    The result has round(scale * side) pixels a side, at least one; a pixel's place in the source follows from
    the factor itself, not from the rounded sizes.
    """
    return _along_last(_along_last(pixels, scale).mT, scale).mT.contiguous()


def _along_last(pixels: torch.Tensor, scale: float) -> torch.Tensor:
    size = pixels.shape[-1]
    places = (torch.arange(max(1, round(size * scale)), dtype=torch.float64) + 0.5) / scale - 0.5
    places = places.clamp(0, size - 1)
    left = places.floor().long()
    right = (left + 1).clamp(max=size - 1)
    share = (places - left).to(pixels.dtype)
    return pixels[..., left] * (1 - share) + pixels[..., right] * share

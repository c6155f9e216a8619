"""From an image to the network's input, as in Caffe's `lib/fast_rcnn/test.py`.

Caffe resizes by OpenCV, whose float32 differs from the values here in the last bit (3e-5 of 255).
"""

import numpy as np
import torch
from PIL import Image

# TEST.SCALES and TEST.MAX_SIZE of Caffe's lib/fast_rcnn/config.py.
from pipeline.make.features.extractors.options import RESIZED

# Blue, green, red: PIXEL_MEANS of Caffe's lib/fast_rcnn/config.py. The values are not divided by
# anything.
MEANS = (102.9801, 115.9465, 122.7717)


def scale_of(
    width: int, height: int, short_side: int = RESIZED[0], long_side: int = RESIZED[1]
) -> float:
    """Compute the factor by which an image is resized."""
    scale = short_side / min(width, height)
    longer = max(width, height)
    if round(scale * longer) > long_side:
        return long_side / longer
    return scale


def resized(image: Image.Image, across: float, down: float) -> torch.Tensor:
    """Subtract the means from an image's pixels and resize it by two factors: float32 [3, H, W],
    blue first.
    """
    # Bilinear and without antialiasing, as OpenCV does when it is given a factor: source positions
    # follow from the factor itself, not from the rounded sizes.
    blue_first = np.asarray(image, dtype=np.float32)[:, :, ::-1]
    pixels = torch.from_numpy(blue_first - np.array(MEANS, dtype=np.float32))
    wide = along(pixels, 1, across)
    return along(wide, 0, down).permute(2, 0, 1).contiguous()


def along(pixels: torch.Tensor, axis: int, scale: float) -> torch.Tensor:
    """Resize along one axis."""
    size = pixels.shape[axis]
    new_size = max(1, round(size * scale))
    places = torch.arange(new_size, dtype=torch.float64)
    last = size - 1
    centres = ((places + 0.5) / scale - 0.5).clamp(0, last)
    left = centres.floor().long()
    right = (left + 1).clamp(max=last)
    shape = [1] * pixels.ndim
    shape[axis] = -1
    share = (centres - left).to(pixels.dtype).view(shape)
    of_right = pixels.index_select(axis, right).mul_(share)
    of_left = pixels.index_select(axis, left).mul_(1 - share)
    return of_left.add_(of_right)

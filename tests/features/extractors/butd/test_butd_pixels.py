"""Resizing and means, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from pipeline.make.features.extractors.butd.pixels import MEANS, along, resized, scale_of

pytestmark = pytest.mark.slow


def enlarge(pixels: torch.Tensor, scale: float) -> torch.Tensor:
    return along(along(pixels, 1, scale), 0, scale)


@pytest.mark.specification
@pytest.mark.parametrize(
    ("size", "scale"),
    [
        ((640, 480), 1.25),  # 600 / 480
        ((500, 333), 600 / 333),
        ((1200, 1200), 0.5),
        ((640, 360), 1.5625),  # 600 / 360 would make 1067: 1000 / 640
        ((360, 640), 1.5625),
        ((600, 1000), 1.0),
        ((600, 1001), 1000 / 1001),
    ],
)
def test_short_side_600_long_side_at_most_1000(size: tuple[int, int], scale: float) -> None:
    assert scale_of(*size) == pytest.approx(scale)


@pytest.mark.specification
def test_channels_are_blue_green_red_less_their_means() -> None:
    prepared = resized(Image.new("RGB", (2, 3), (255, 16, 0)), 1.0, 1.0)
    assert prepared.shape == (3, 3, 2)
    assert prepared.dtype == torch.float32
    torch.testing.assert_close(
        prepared[:, 0, 0], torch.tensor([-102.9801, 16 - 115.9465, 255 - 122.7717])
    )


def test_enlarging_twofold_is_linear_between_pixel_centres() -> None:
    # A new pixel's centre lies at (i + 0.5) / 2 - 0.5: -0.25, 0.25, 0.75, 1.25; outside, the edge
    # goes on.
    torch.testing.assert_close(
        enlarge(torch.tensor([[0.0, 10.0]]), 2.0), torch.tensor([[0, 2.5, 7.5, 10.0]] * 2)
    )


def test_places_follow_the_factor_not_the_rounded_size() -> None:
    # 3 * 1.5 = 4.5 rounds to the even 4; centres lie at (i + 0.5) / 1.5 - 0.5 = -1/6, 1/2, 7/6,
    # 11/6.
    column = torch.tensor([[0.0], [6.0], [12.0]])
    expected = torch.tensor([[0.0], [3.0], [7.0], [11.0]]).expand(4, 2)
    torch.testing.assert_close(enlarge(column, 1.5), expected)


def test_shrinking_does_not_smooth_first() -> None:
    # Halved, the centres lie at 0.5, 2.5 and 4.5: each is the mean of its two nearest pixels,
    # nothing further.
    row = torch.tensor([[0.0, 0.0, 0.0, 100.0, 0.0, 0.0]]).expand(2, 6)
    torch.testing.assert_close(enlarge(row, 0.5), torch.tensor([[0.0, 50.0, 0.0]]))


@pytest.mark.parametrize(
    ("width", "height", "expected"), [(640, 513, (749, 600)), (407, 640, (600, 943))]
)
def test_sizes_are_rounded(width: int, height: int, expected: tuple[int, int]) -> None:
    prepared = resized(Image.new("RGB", (width, height)), *[scale_of(width, height)] * 2)
    assert (prepared.shape[2], prepared.shape[1]) == expected


def plainly(image: Image.Image, across: float, down: float) -> torch.Tensor:
    """As the first version computed it, plane by plane: stores were made by these bits."""
    pixels = np.asarray(image, np.float32)[:, :, ::-1] - np.array(MEANS, np.float32)
    planes = torch.from_numpy(pixels.transpose(2, 0, 1))

    def along_last(pixels: torch.Tensor, scale: float) -> torch.Tensor:
        size = pixels.shape[-1]
        places = (
            torch.arange(max(1, round(size * scale)), dtype=torch.float64) + 0.5
        ) / scale - 0.5
        places = places.clamp(0, size - 1)
        left = places.floor().long()
        share = (places - left).to(pixels.dtype)
        return pixels[..., left] * (1 - share) + pixels[..., (left + 1).clamp(max=size - 1)] * share

    return along_last(along_last(planes, across).mT, down).mT.contiguous()


@pytest.mark.parametrize("size", [(640, 480), (333, 500), (97, 203), (1, 1), (3, 700), (1024, 768)])
def test_every_bit_is_as_it_was(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    image, scale = Image.fromarray(pixels), scale_of(*size)
    assert torch.equal(resized(image, scale, scale), plainly(image, scale, scale))
    assert torch.equal(
        resized(image, 512 / size[0], 512 / size[1]), plainly(image, 512 / size[0], 512 / size[1])
    )
    assert resized(image, scale, scale).is_contiguous()

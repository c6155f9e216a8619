"""Thumbnails within a page: whole photographs, small, in their own shape."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from pipeline.report import examples


@pytest.mark.parametrize(("size", "small"), [((800, 400), (100, 50)), ((30, 60), (30, 60)), ((4000, 3), (100, 1))])
def test_a_thumbnail_is_the_whole_photograph_and_never_enlarged(size: tuple[int, int], small: tuple[int, int]) -> None:
    left_red = np.zeros((size[1], size[0], 3), np.uint8)
    left_red[:, : size[0] // 2, 0] = 255
    photograph = Image.fromarray(left_red)
    kind, data = examples.data_uri(photograph, 100).split(",")
    shown = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (kind, shown.size, photograph.size) == ("data:image/webp;base64", small, size)
    red = np.asarray(shown.convert("RGB"))[..., 0].mean(0)
    assert red[: small[0] // 3].min() > 200
    assert red[-(small[0] // 3):].max() < 50

"""What resizing images takes: the largest copy that Pillow makes of an image, half resized or
whole.
"""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image


class Resizes:
    """Watches all resizing by Pillow, also that of other libraries.

    Attributes:
        most_pixels: Of the largest copy.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most_pixels, resize = 0, Image.Image.resize

        def watched(
            image: Image.Image, size: tuple[int, int], *arguments: Any, **options: Any
        ) -> Image.Image:
            across = size[0] * image.height  # Pillow resizes across first
            self.most_pixels = max(self.most_pixels, across, size[0] * size[1])
            assert self.most_pixels < 50_000_000, (
                f"{image.size} to {size}"
            )  # before the memory is taken
            return resize(image, size, *arguments, **options)

        monkeypatch.setattr(Image.Image, "resize", watched)

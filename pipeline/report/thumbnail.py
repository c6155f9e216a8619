"""A photograph made small enough to stand within an HTML page."""

from __future__ import annotations

import base64
import io

from PIL import Image

QUALITY = 70  # of WebP: some 4 kB at 128 pixels


def data_uri(image: Image.Image, side: int) -> str:
    """The whole photograph, its longer side at most `side` pixels, as a `data:` address. `image` is left as it is."""
    small, file = image.copy(), io.BytesIO()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.save(file, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode("ascii")

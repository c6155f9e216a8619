"""Thumbnails inside HTML pages."""

from __future__ import annotations

import base64
import io

from PIL import Image

QUALITY = 70  # of WebP: about 4 kB at 128 pixels


def data_uri(image: Image.Image, side: int) -> str:
    """Scale a photograph down and encode it for an HTML page.

    Args:
        image: The photograph; it is not changed.
        side: The longer side of the thumbnail, in pixels; of a strip of frames, of one frame. Smaller photographs are
            not enlarged.

    Returns:
        A `data:` address of a WebP image.
    """
    small, file = image.copy(), io.BytesIO()
    columns = image.info.get("columns", 1)
    small.thumbnail((side * columns, side * columns), Image.Resampling.LANCZOS)
    small.save(file, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode("ascii")

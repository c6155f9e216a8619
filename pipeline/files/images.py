"""Decode an image file into upright RGB pixels, or give the reason in one line why that is not possible."""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

# Larger ones are refused before a pixel is decoded: 3 bytes a pixel, so at most 360 MB.
MAX_PIXELS = 120_000_000
# Formats that Pillow reads without calling other programs (EPS and the like start Ghostscript).
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")

MISSING = "no such file"

# Pillow warns of sizes below our limit and of broken EXIF, which we ignore. The filter is for all threads and stays,
# because the warnings module cannot restore filters for one thread.
warnings.filterwarnings("ignore", module=r"PIL\.")
Image.init()  # registers all formats; without it only those seen so far can be named


class ImageError(Exception):
    """An image file that cannot be decoded. The message is the reason, in one line."""


def decode(path: Path, content: bytes | None = None) -> Image.Image:
    """Read an image as upright 8-bit RGB: EXIF orientation applied, first frame, alpha on white.

    Args:
        path: The file.
        content: Its bytes, where they have been read already.

    Returns:
        The image; its `info["file"]` is the path.

    Raises:
        ImageError: If it is missing, empty, truncated, too large or not an image.
    """
    try:
        if (path.stat().st_size if content is None else len(content)) == 0:
            raise ImageError("the file is empty")
        with Image.open(path if content is None else io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ImageError(f"{image.width} x {image.height} pixels, more than {MAX_PIXELS:,}")
            image.seek(0)
            image.load()
            decoded = upright_rgb(image)
            decoded.info["file"] = path.as_posix()  # engines that are given boxes find them by it
            return decoded
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(MISSING) from None
    except UnidentifiedImageError:
        raise ImageError("not an image or of an unknown format") from None
    except Image.DecompressionBombError as error:
        raise ImageError(str(error)) from None
    except Exception as error:  # a decoder may raise anything on bytes made to break it
        raise ImageError(f"{type(error).__name__}: {error}".splitlines()[0]) from None


def upright_rgb(image: Image.Image) -> Image.Image:
    """Turn an image of any mode upright, into 8-bit RGB: EXIF orientation applied, alpha on white."""
    with contextlib.suppress(Exception):  # broken EXIF says nothing about orientation
        image = ImageOps.exif_transpose(image)
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        # 16-bit grey holds 0-65535, which Pillow's own conversion clips at 255; other ranges are stretched.
        values = np.nan_to_num(np.asarray(image, dtype=np.float32))
        low, high = (0.0, 65535.0) if values.min() >= 0 and values.max() <= 65535 and image.mode != "F" \
            else (values.min(), max(values.max(), values.min() + 1e-12))
        grey = np.round((values - low) * (255.0 / (high - low))).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        opaque = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(opaque, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


def resize(image: Image.Image, width: int, height: int) -> np.ndarray:
    """Resize an RGB image with bicubic interpolation, to uint8 [height, width, 3]."""
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)

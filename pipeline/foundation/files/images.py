"""Decode an image file into upright RGB pixels, or give the reason in one line why that is not
possible.

What a browser or an ordinary viewer shows is decoded, whatever the file's suffix. A photograph that
is cut off is refused, though browsers show a part of it: half a photograph would have features like
any other.
"""

import contextlib
import io
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError, features

from pipeline.foundation.files import not_images, png, regular
from pipeline.foundation.parts.errors import ANYTHING, refusing

# Larger ones are refused before a pixel is decoded: 3 bytes a pixel, so at most 360 MB.
MAX_PIXELS = 120_000_000
# JPEG's own limit. Pillow resizes across before it resizes down, so a narrow image takes memory by
# its height.
MAX_SIDE = 65_535
MAX_BYTES = 2_000_000_000  # of a file, which is read whole: those pixels as floats
# Formats that Pillow reads without calling other programs (EPS and the like start Ghostscript).
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO")

# tags of TIFF
DNG_VERSION = 50706
SUBFILE_TYPE = 254
SUB_IFDS = 330

MISSING = "no such file"
TRUNCATED = "truncated: the end of the file is missing"

# Pillow warns of sizes below our limit and of broken EXIF, which we ignore. The filter is for all
# threads and stays, because the warnings module cannot restore filters for one thread.
warnings.filterwarnings("ignore", module=r"PIL\.")
Image.init()  # registers all formats; without it only those seen so far can be named


class ImageError(Exception):
    """An image file that cannot be decoded. The message is the reason, in one line."""


def decode(path: Path, content: bytes | None = None) -> Image.Image:
    """Read an image as upright 8-bit RGB: EXIF orientation applied, first frame, alpha on white;
    ImageError if damaged.

    content: the file's bytes, if they were read already. The image's `info["file"]` is the path.
    """
    decoded = _read(path, content, lambda image: upright_rgb(_without_empty_alpha(image)))
    decoded.info["file"] = path.as_posix()  # engines that are given boxes find them by it
    return decoded


def upright(path: Path) -> Image.Image:
    """Read an image in its own mode, EXIF orientation applied; ImageError if damaged."""
    return _read(path, None, ImageOps.exif_transpose)


def _read(
    path: Path, content: bytes | None, converted: Callable[[Image.Image], Image.Image]
) -> Image.Image:
    """The first frame of a file, converted."""
    try:
        if content is None:
            with regular.opened(path) as file:
                _check_size(os.fstat(file.fileno()).st_size)
                content = file.read()
        _check_size(len(content))
        with (
            refusing(ANYTHING, partial(_reason, content), ImageError),
            Image.open(_picture(content), formats=FORMATS + _heif(content)) as image,
        ):
            _check(image)
            image.seek(0)
            image.load()
            return converted(image)
    except FileNotFoundError:
        raise ImageError(MISSING) from None
    except OSError as error:
        raise ImageError(f"cannot be read ({error.strerror or error})") from None


def _check_size(size: int) -> None:
    if size == 0:
        raise ImageError("the file is empty")
    if size > MAX_BYTES:
        raise ImageError(f"{size:,} bytes, more than {MAX_BYTES:,}")


def _reason(content: bytes, error: Exception) -> str:
    """The reason why a decoder refuses a file, by its error."""
    if isinstance(error, UnidentifiedImageError):
        avif = ("AVIF",) if features.check("avif") else ()
        return not_images.named(content, avif + _heif(content))
    message = (
        str(error)
        if isinstance(error, Image.DecompressionBombError)
        else f"{type(error).__name__}: {error}"
    )
    if "truncated" in message.lower():
        return TRUNCATED
    return message.splitlines()[0]


def _picture(content: bytes) -> io.BytesIO:
    if content.startswith(png.SIGNATURE):
        content = png.picture(content)
    return io.BytesIO(content)


def _heif(content: bytes) -> tuple[str, ...]:
    return _registered() if content[4:8] == b"ftyp" and content[8:12] in not_images.HEIC else ()


@cache
def _registered() -> tuple[str, ...]:
    """The name of HEIC's decoder in Pillow, where it is installed."""
    try:
        import_module("pillow_heif").register_heif_opener()
    except ImportError:
        return ()
    return ("HEIF",)


def _check(image: Image.Image) -> None:
    """Refuse an image, before its pixels are decoded, that is too large, or of which only a preview
    is read.
    """
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(f"{image.width} x {image.height} pixels, more than {MAX_PIXELS:,}")
    if max(image.size) > MAX_SIDE:
        raise ImageError(f"{image.width} x {image.height} pixels, more than {MAX_SIDE:,} on a side")
    tags = getattr(
        image, "tag_v2", {}
    )  # of TIFF, as which cameras write raw photographs, behind a preview
    if DNG_VERSION in tags or (tags.get(SUBFILE_TYPE, 0) & 1 and SUB_IFDS in tags):
        raise ImageError(not_images.RAW)


def _without_empty_alpha(image: Image.Image) -> Image.Image:
    """Take a BMP whose alpha is zero everywhere as opaque, as viewers do: old programs leave these
    bytes empty.
    """
    if (
        image.format == "BMP"
        and image.mode == "RGBA"
        and image.getchannel("A").getextrema() == (0, 0)
    ):
        return image.convert("RGB")
    return image


def upright_rgb(image: Image.Image) -> Image.Image:
    """Turn an image of any mode upright, into 8-bit RGB: EXIF orientation applied, alpha on
    white.
    """
    with contextlib.suppress(Exception):  # broken EXIF says nothing about orientation
        image = ImageOps.exif_transpose(image)
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        # 16-bit grey holds 0-65535, which Pillow's own conversion clips at 255; other ranges are
        # stretched.
        values = np.nan_to_num(np.asarray(image, dtype=np.float32))
        low = 0.0
        high = 65535.0
        if image.mode == "F" or values.min() < low or values.max() > high:
            low = values.min()
            high = max(values.max(), low + 1e-12)
        grey = np.round((values - low) * (255.0 / (high - low))).astype(np.uint8)
        clear = image.info.get("transparency")  # the value of pixels that are transparent
        if isinstance(clear, int):
            grey[values == clear] = 255
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

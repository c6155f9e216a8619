"""What browsers and viewers show is decoded, though Pillow alone would refuse it, and what is not
is named.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from pipeline.foundation.files import images

RED = (255, 0, 0)
PLACE = Path("folder/a.jpg")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(picture: Image.Image, *beside: bytes) -> bytes:
    """A PNG with further chunks behind its header."""
    content = saved(picture, "PNG")
    return content[:33] + b"".join(beside) + content[33:]


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def noise(width: int = 32, height: int = 16) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)
    )


LONG = zlib.compress(bytes(3_000_000))  # three times what Pillow takes
BESIDE = {
    "a profile of 3 MB": chunk(b"iCCP", b"name\0\0" + LONG),
    "a compressed text of 3 MB": chunk(b"zTXt", b"Comment\0\0" + LONG),
    "a description of 3 MB": chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + LONG),
    "many texts": 80 * chunk(b"tEXt", b"Comment\0" + bytes(1_000_000)),
    "a damaged text": chunk(b"tEXt", b"Comment\0text")[:-1] + b"?",
    "damaged EXIF": chunk(b"eXIf", b"MM\0*")[:-1] + b"?",
    "frames without an order": chunk(b"acTL", struct.pack(">II", 0, 1)) + chunk(b"fcTL", bytes(26)),
    "another program's data": chunk(b"teST", bytes(1000)),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_what_stands_beside_a_pngs_picture_does_not_matter(beside: str) -> None:
    decoded = images.decode(PLACE, png(noise(), BESIDE[beside]))
    np.testing.assert_array_equal(decoded, noise())


def test_a_png_without_an_end_is_whole_and_one_that_lacks_pixels_is_not() -> None:
    content = png(noise())
    np.testing.assert_array_equal(images.decode(PLACE, content[:-12]), noise())
    start = content.index(b"IDAT") - 4
    half = content[:start] + chunk(b"IDAT", content[start + 8 : -16][:500])
    for cut in (half, half + content[-12:], content[:-200], content[:45]):
        with pytest.raises(images.ImageError, match="the end of the file is missing"):
            images.decode(PLACE, cut)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_images_are_turned_upright(kind: str) -> None:
    stored = Image.new("RGB", (32, 16), "blue")
    stored.paste(RED, (0, 0, 16, 16))
    exif = Image.Exif()
    exif[0x0112] = 6
    decoded = images.decode(PLACE, saved(stored, kind, exif=exif))
    assert decoded.size == (16, 32)
    assert decoded.getpixel((8, 4))[0] > 200  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    [
        chunk(b"iTXt", b'XML:com.adobe.xmp\0\0\0\0\0<x tiff:Orientation="6"/>'),
        chunk(
            b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(b'<x tiff:Orientation="6"/>')
        ),
    ],
)
def test_a_pngs_text_may_say_how_it_is_turned(text: bytes) -> None:
    assert images.decode(PLACE, png(noise(32, 16), text)).size == (16, 32)


@pytest.mark.parametrize(
    "picture",
    [
        Image.new("1", (8, 8), 1),
        Image.new("P", (8, 8), 0),
        Image.new("LA", (8, 8), (9, 0)),
        Image.new("RGBA", (8, 8), (9, 9, 9, 0)),
    ],
    ids=lambda picture: picture.mode,
)
def test_white_in_every_mode(picture: Image.Image) -> None:
    if picture.mode == "P":
        picture.putpalette([0, 0, 0])
        picture.info["transparency"] = 0
    assert images.decode(PLACE, saved(picture, "PNG")).getpixel((4, 4)) == (255, 255, 255)


def test_transparent_values_of_sixteen_bits_are_white() -> None:
    deep = Image.fromarray(np.array([[0, 500]], dtype=np.uint16))
    decoded = images.decode(PLACE, png(deep, chunk(b"tRNS", struct.pack(">H", 500))))
    assert np.asarray(decoded)[0, :, 0].tolist() == [0, 255]


def test_a_phones_photograph_with_a_second_picture() -> None:
    content = saved(noise(), "MPO", save_all=True, append_images=[noise(8, 8)])
    np.testing.assert_array_equal(
        images.decode(PLACE, content), images.decode(PLACE, saved(noise(), "JPEG"))
    )
    broken = content.replace(b"MPF\0II*\0", b"MPF\0II*\xff")
    assert broken != content
    assert images.decode(PLACE, broken).size == (32, 16)


def test_cmyk_of_adobe_is_inverted() -> None:
    """Pillow writes CMYK as Adobe does."""
    content = saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=100)
    assert b"Adobe" in content
    assert images.decode(PLACE, content).getpixel((4, 4)) == RED


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_an_animation_gives_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, "blue", "lime")]
    content = saved(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
    assert images.decode(PLACE, content).getpixel((4, 4)) == RED


@pytest.mark.parametrize("kind", ["AVIF", "ICO", "JPEG2000", "PPM", "BMP"])
def test_other_formats_are_read_under_any_name(kind: str) -> None:
    assert (
        max(
            abs(a - b)
            for a, b in zip(
                images.decode(PLACE, saved(Image.new("RGB", (32, 32), RED), kind)).getpixel((9, 9)),
                RED,
                strict=True,
            )
        )
        <= 3
    )  # type: ignore[arg-type]


def test_a_bmp_with_an_empty_alpha_is_opaque() -> None:
    masks = struct.pack("<4I", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 56, 1, 1, 1, 32, 3, 4, 0, 0, 0, 0) + masks
    pixels = bytes([255, 0, 0, 0])
    start = 14 + len(header)
    content = b"BM" + struct.pack("<IHHI", start + 4, 0, 0, start) + header + pixels
    assert images.decode(PLACE, content).getpixel((0, 0)) == RED


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b"<!DOCTYPE html><html><body>404",
            "an HTML or XML page, such as a site's error message; fetch the image again",
        ),
        (
            b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>',
            "SVG drawing, which has no pixels",
        ),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00",
            "a pointer of Git LFS; .* git lfs pull",
        ),
        (bytes(5000), "zeros alone"),
        (b"8BPS\0\1" + bytes(100), "Photoshop"),
        (b"%PDF-1.7", "PDF document"),
        (
            b"\0\0\0\x18ftypheic" + bytes(100),
            r"HEIC, which needs a decoder: pip install '.*\[heic\]'",
        ),
        (b"\0\0\0\x18ftypmp42" + bytes(100), "a video"),
        (b"\xff\x0a" + bytes(9), "JPEG XL"),
        (b"\0\0\0\x18ftypavif" + bytes(100), "damaged"),
        (b"\xff\xd8\xff and text", "damaged, or of a rare kind"),
        (b"PK\3\4" + bytes(99), "zip archive"),
        (b"MM or nothing", "unknown format"),
    ],
)
def test_what_is_no_image_is_named(
    monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    monkeypatch.setattr(images, "_registered", lambda: ())  # no decoder of HEIC
    with pytest.raises(images.ImageError, match=reason) as caught:
        images.decode(PLACE, content)
    assert "\n" not in str(caught.value)


def test_heic_is_read_by_the_decoder_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder by the package's interface: it registers itself with Pillow when it is asked to."""
    decoder = ModuleType("pillow_heif")

    class Heif(Image.Image):
        def __init__(self, file: io.BytesIO, name: str) -> None:
            super().__init__()
            self.im, self._mode, self._size, self.format = (
                Image.new("RGB", (4, 2), RED).im,
                "RGB",
                (4, 2),
                "HEIF",
            )

    def register() -> None:
        Image.register_open("HEIF", Heif, lambda prefix: prefix[4:12] == b"ftypheic")

    decoder.register_heif_opener = register  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pillow_heif", decoder)
    monkeypatch.setattr(Image, "OPEN", dict(Image.OPEN))
    monkeypatch.setattr(Image, "ID", list(Image.ID))
    images._registered.cache_clear()
    try:
        decoded = images.decode(PLACE, b"\0\0\0\x18ftypheic" + bytes(100))
        with pytest.raises(images.ImageError, match="damaged, or of a rare kind"):
            images.decode(PLACE, b"\0\0\0\x18ftypheix" + bytes(100))
    finally:
        images._registered.cache_clear()
    assert (decoded.size, decoded.getpixel((0, 0))) == ((4, 2), RED)


@pytest.mark.parametrize("tags", [{50706: b"\1\4\0\0"}, {254: 1, 330: 8}])
def test_of_a_raw_photograph_the_preview_is_not_taken(tags: dict[int, object]) -> None:
    with pytest.raises(images.ImageError, match="a camera's raw photograph; develop it"):
        images.decode(PLACE, saved(noise(), "TIFF", tiffinfo=tags))


def test_a_side_beyond_jpegs_limit_is_refused_before_it_is_decoded() -> None:
    tall = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 65_536, 8, 2, 0, 0, 0))
    with pytest.raises(images.ImageError, match="1 x 65536 pixels, more than 65,535 on a side"):
        images.decode(PLACE, b"\x89PNG\r\n\x1a\n" + tall + chunk(b"IDAT", zlib.compress(bytes(9))))

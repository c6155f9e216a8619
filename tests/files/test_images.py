"""Every kind of image file is either decoded right or refused with a reason."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipeline.foundation.files import images

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def quarters() -> Image.Image:
    """Red, green / blue, white, 32 x 16 pixels."""
    picture = Image.new("RGB", (32, 16))
    for number, colour in enumerate((RED, GREEN, BLUE, WHITE)):
        picture.paste(
            colour,
            (16 * (number % 2), 8 * (number // 2), 16 * (number % 2) + 16, 8 * (number // 2) + 8),
        )
    return picture


def corners(picture: Image.Image) -> list[tuple[int, ...]]:
    right, bottom = picture.width - 2, picture.height - 2
    return [
        tuple(round(v / 255) * 255 for v in picture.getpixel(place))  # type: ignore[union-attr]
        for place in ((1, 1), (right, 1), (1, bottom), (right, bottom))
    ]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("a.jpg", "RGB"),
        ("a.png", "RGB"),
        ("a.webp", "RGB"),
        ("a.gif", "P"),
        ("a.bmp", "RGB"),
        ("a.tif", "CMYK"),
        ("cmyk.jpg", "CMYK"),
        ("palette.png", "P"),
        ("alpha.png", "RGBA"),
        ("with space ü 图.png", "RGB"),
    ],
)
def test_modes_and_names(tmp_path: Path, name: str, mode: str) -> None:
    quarters().convert(mode).save(tmp_path / name)
    decoded = images.decode(tmp_path / name)
    assert (decoded.mode, decoded.size) == ("RGB", (32, 16))
    assert corners(decoded) == [RED, GREEN, BLUE, WHITE]


@pytest.mark.specification
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int) -> None:
    undo = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    stored = quarters() if undo is None else quarters().transpose(undo)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored.save(tmp_path / "turned.jpg", exif=exif, quality=95)
    decoded = images.decode(tmp_path / "turned.jpg")
    assert decoded.size == (32, 16)
    assert corners(decoded) == [RED, GREEN, BLUE, WHITE]


def test_grey_and_transparency(tmp_path: Path) -> None:
    Image.new("L", (4, 4), 77).save(tmp_path / "grey.jpg")
    assert images.decode(tmp_path / "grey.jpg").getpixel((0, 0)) == (77, 77, 77)
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert images.decode(tmp_path / "clear.png").getpixel((0, 0)) == WHITE


@pytest.mark.specification
def test_sixteen_bits_keep_their_range(tmp_path: Path) -> None:
    values = np.array([[0, 32768], [65535, 257]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    decoded = np.asarray(images.decode(tmp_path / "deep.png"))[..., 0]
    assert decoded.tolist() == [[0, 128], [255, 1]]
    Image.fromarray(np.array([[-1.0, 1.0], [0.0, np.nan]], dtype=np.float32)).save(
        tmp_path / "float.tif"
    )
    assert np.asarray(images.decode(tmp_path / "float.tif"))[..., 0].tolist() == [
        [0, 255],
        [128, 128],
    ]


def test_animation_gives_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN)]
    frames[0].save(tmp_path / "moves.gif", save_all=True, append_images=frames[1:])
    assert images.decode(tmp_path / "moves.gif").getpixel((0, 0)) == RED


@pytest.mark.parametrize("size", [(1, 1), (20_000, 3), (3, 20_000)])
def test_odd_sizes(tmp_path: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, GREEN).save(tmp_path / "odd.png")
    decoded = images.decode(tmp_path / "odd.png")
    assert decoded.size == size
    assert images.resize(decoded, 16, 8).shape == (8, 16, 3)


def bomb() -> bytes:
    """A PNG of a few hundred bytes that says it has 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def jpeg() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(
        file, "JPEG"
    )
    return file.getvalue()


@pytest.mark.specification
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"this is text", "not an image"),
        (jpeg()[:700], "truncated"),
        (jpeg()[:20], "."),
        (bomb(), "pixels"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
    ],
)
def test_refused_with_a_reason(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "bad.jpg").write_bytes(content)
    with pytest.raises(images.ImageError, match=said) as caught:
        images.decode(tmp_path / "bad.jpg")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_called_so_and_not_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "device.jpg").symlink_to("/dev/null")
    for name in ("pipe.jpg", "folder.jpg", "device.jpg"):
        with pytest.raises(images.ImageError, match="is no regular file"):
            images.decode(tmp_path / name)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(images.ImageError, match="no such file"):
        images.decode(tmp_path / "nowhere.jpg")

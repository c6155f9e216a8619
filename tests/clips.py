"""Clips that tests encode by real codecs. Every frame has a colour of its own."""

from __future__ import annotations

import io
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

MILLISECOND = Fraction(1, 1000)


def shade(number: int) -> int:
    """The grey of a frame, told apart from its neighbours after lossy coding."""
    return 20 + 8 * number % 220


def picture(number: int, width: int = 64, height: int = 48) -> Image.Image:
    return Image.new("RGB", (width, height), (shade(number),) * 3)


def number_of(frame: Image.Image) -> int:
    """Which `picture` a decoded frame is."""
    return round((float(np.asarray(frame).mean()) - 20) / 8)


def encode(
    path: Path,
    pictures: Sequence[Image.Image],
    times: Sequence[int] | None = None,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    unit: Fraction = MILLISECOND,
    rotation: int = 0,
    aspect: Fraction | None = None,
    **options: Any,
) -> Path:
    """Write a clip. Its frames are shown at `times`, in a `unit` of seconds; by default 25 a
    second.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as film:
        stream = film.add_stream(
            codec, rate=25, options={key: str(value) for key, value in options.items()}
        )
        stream.width, stream.height = pictures[0].size
        stream.pix_fmt = pix_fmt
        stream.codec_context.time_base = stream.time_base = unit
        step = int(Fraction(1, 25) / unit)
        if aspect:
            stream.codec_context.sample_aspect_ratio = aspect
        if rotation:
            stream.set_display_rotation(rotation)
        for time, shown in zip(
            times or range(0, step * len(pictures), step), pictures, strict=True
        ):
            frame = av.VideoFrame.from_image(shown).reformat(format=pix_fmt, threads=1)
            frame.pts, frame.time_base = time, unit
            film.mux(stream.encode(frame))
        film.mux(stream.encode())
    return path


def sound(path: Path, cover: bool = False) -> Path:
    """Half a second of silence, without a picture, or with one on the cover."""
    with av.open(str(path), "w") as film:
        stream = film.add_stream("aac", rate=16000, layout="mono")
        art = film.add_stream("mjpeg", rate=1) if cover else None
        if art is not None:
            art.width = art.height = 32
            art.pix_fmt, art.disposition = "yuvj420p", av.stream.Disposition.attached_pic
            content = io.BytesIO()
            Image.new("RGB", (32, 32)).save(content, "JPEG")
            packet = av.Packet(content.getvalue())
            packet.stream, packet.pts, packet.dts = art, 0, 0
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), "fltp", "mono")
        silence.sample_rate = 16000
        film.mux(stream.encode(silence))
        film.mux(stream.encode())
        if art is not None:
            film.mux(packet)
    return path

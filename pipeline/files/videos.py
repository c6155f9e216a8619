"""Decode frames of a clip, evenly in time, or give the reason in one line why that is not possible.

A clip is a video file or a part of one. Its frames are RGB as a player shows them: in order of time, upright, with
square pixels. Of a clip that is damaged before its last wanted frame, none is given: frames of another time in the
place of those that cannot be read would be no even sample.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.sidedata.sidedata import Type as SideData
from PIL import Image

from pipeline.files import film as films
from pipeline.files.film import Film
from pipeline.files.images import MAX_PIXELS, ImageError

# Signs of a display matrix (a, b, c, d), by which x' = ax + cy and y' = bx + dy -> how the picture is turned.
TURNS = {
    (-1, 0, 0, -1): Image.Transpose.ROTATE_180,
    (0, 1, -1, 0): Image.Transpose.ROTATE_270,
    (0, -1, 1, 0): Image.Transpose.ROTATE_90,
    (-1, 0, 0, 1): Image.Transpose.FLIP_LEFT_RIGHT,
    (1, 0, 0, -1): Image.Transpose.FLIP_TOP_BOTTOM,
    (0, 1, 1, 0): Image.Transpose.TRANSPOSE,
    (0, -1, -1, 0): Image.Transpose.TRANSVERSE,
}


def frames(path: Path, most: int, start: float | None = None, end: float | None = None) -> list[Image.Image]:
    """Decode a clip's frames.

    The clip is cut into `most` parts of one length; of each the frame is taken that is shown in its middle. A frame
    that is shown through several parts comes once. A clip of no more than `most` frames gives them all.
    """
    try:
        times = _times(path, start, end)
        with films.opened(path) as film:
            wanted = _evenly(times, film.ticks(start), film.ticks(end), most)
            if not wanted:
                raise ImageError(f"no frame from {start or 0:g} s to {'the end' if end is None else f'{end:g} s'}")
            found = _decoded(film, films.packets(film, start, end), times, wanted)
            return [_as_shown(frame, film.pixel_aspect) for frame in found]
    except ImageError:
        raise
    except Exception as error:  # a decoder may raise anything on bytes made to break it
        said = (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
        raise ImageError(f"cannot be decoded as a video: {said}") from None


def _times(path: Path, start: float | None, end: float | None) -> list[int]:
    """When each frame is first shown, ascending, in ticks, and when the last one ends."""
    with films.opened(path) as film:
        read = [(packet.pts, packet.duration or 0, packet.dts, packet.is_discard)
                for packet in films.packets(film, start, end)]
        films.refuse_lost(film, [time for time, *_ in read if time is not None], whole=end is None)
    shown = [(time, lasts) for time, lasts, _, discarded in read if not discarded]
    if (start or end) and read and all(time is None and decoded is None for time, _, decoded, _ in read):
        raise ImageError("holds no times, so a part of it cannot be found; put it into a container: ffmpeg -i FILE -c "
                         "copy FILE.mp4")
    if any(time is None for time, _ in shown):  # old containers do not tell: the decoder finds out
        with films.opened(path) as film:
            times = sorted({time for time, _ in _frames(film, films.packets(film, start, end))})
    else:
        times = sorted({int(time) for time, _ in shown if time is not None})
    if not times:
        raise ImageError("holds no frame")
    lasts = max((duration for time, duration in shown if time == times[-1]), default=0)
    return [*times, times[-1] + (lasts or round((times[-1] - times[0]) / max(1, len(times) - 1)) or 1)]


def _evenly(times: Sequence[int], start: Fraction | None, end: Fraction | None, most: int) -> list[int]:
    """Places in `times` of the wanted frames, ascending."""
    first = 0 if start is None else max(0, bisect_right(times, start) - 1)
    begin = Fraction(times[0]) if start is None else max(start, Fraction(times[0]))
    finish = Fraction(times[-1]) if end is None else min(end, Fraction(times[-1]))
    if begin >= finish:
        return []
    shown = [place for place in range(first, len(times) - 1) if times[place] < finish]
    if len(shown) <= most:
        return shown
    middles = [begin + (finish - begin) * Fraction(2 * part + 1, 2 * most) for part in range(most)]
    return sorted({bisect_right(times, middle) - 1 for middle in middles})


def _frames(film: Film, packets: Iterable[av.Packet]) -> Iterator[tuple[int, av.VideoFrame]]:
    """Decode; yields each frame with its time in ticks."""
    context, number = film.stream.codec_context, 0
    for packet in chain(packets, [None]):
        for frame in context.decode(packet):
            time = frame.pts if frame.pts is not None else frame.dts
            yield (time if time is not None else number), frame
            number += 1


def _decoded(film: Film, packets: Iterable[av.Packet], times: Sequence[int], wanted: Sequence[int]
             ) -> list[av.VideoFrame]:
    """The frames at the places `wanted` of `times`; nothing behind the last one is decoded."""
    found: dict[int, av.VideoFrame] = {}
    waiting, before, now = list(reversed(wanted)), None, times[0]
    try:
        for now, frame in _frames(film, packets):
            while waiting and now > times[waiting[-1]]:  # a packet that showed nothing, as VP8 has them
                place = waiting.pop()
                if before is None or (place and before[0] < times[place - 1]):
                    raise ImageError(f"lacks the frame at {film.seconds(times[place]):.2f} s")
                found[before[0]] = before[1]
            if waiting and now == times[waiting[-1]]:
                waiting.pop()
                found[now] = frame
            before = now, frame
            if not waiting:
                break
    except av.FFmpegError as error:
        raise ImageError(f"is damaged after {film.seconds(now):.2f} s: {error.strerror}") from None
    if waiting:
        raise ImageError(f"decoding ends at {film.seconds(now):.2f} s, of {film.seconds(times[-1]):.2f} s")
    if any(frame.is_corrupt for frame in found.values()):
        raise ImageError("holds a damaged frame")
    return [found[time] for time in sorted(found)]


def _as_shown(frame: av.VideoFrame, pixel_aspect: Fraction) -> Image.Image:
    """A frame as a player shows it."""
    width = max(1, round(frame.width * pixel_aspect))
    if width * frame.height > MAX_PIXELS:
        raise ImageError(f"{width} x {frame.height} pixels, more than {MAX_PIXELS:,}")
    image = frame.reformat(width, frame.height, "rgb24", threads=1, interpolation="BICUBIC").to_image()
    beside: Any = frame.side_data
    matrix = beside.get(SideData.DISPLAYMATRIX)
    if matrix is None:
        return image
    turned = np.frombuffer(matrix, np.int32)[[0, 1, 3, 4]].astype(float)
    signs = np.where(np.abs(turned) > 0.5 * np.abs(turned).max(), np.sign(turned), 0).astype(int)
    turn = TURNS.get(tuple(signs.tolist()))
    return image if turn is None else image.transpose(turn)

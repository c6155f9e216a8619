"""Decode frames of a clip, evenly in time, or give the reason in one line why that is not possible.

A clip is a video file or a part of one. Its frames are RGB as a player shows them: in order of
time, upright, with square pixels. A clip that is damaged before its last wanted frame is refused:
with other frames instead of the unreadable ones, the sample would not be even.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.container import InputContainer
from av.sidedata.sidedata import Type as SideData
from PIL import Image

from pipeline.foundation.files.images import MAX_PIXELS, MISSING, ImageError
from pipeline.foundation.parts.errors import ANYTHING, refusing

# Containers that hold one film. FFmpeg also knows playlists, which open other files and addresses.
CONTAINERS = (
    *("mov", "matroska", "avi", "mpeg", "mpegts", "mpegvideo", "m4v", "h264", "hevc", "obu"),
    *("ivf", "flv", "asf", "ogg", "mxf", "nut", "rm", "dv", "gif", "yuv4mpegpipe"),
)
SAFE = {"format_whitelist": ",".join(CONTAINERS), "protocol_whitelist": "file"}
# Times are fractions with at most this denominator: the float 0.6 is less than three fifths
FINEST = 10**6
# seconds by which a file may end before its header says; a short file a twentieth of its length
ENDS_EARLY = 1.0
# Signs of a display matrix (a, b, c, d), by which x' = ax + cy and y' = bx + dy -> how the picture
# is turned.
TURNS = {
    (-1, 0, 0, -1): Image.Transpose.ROTATE_180,
    (0, 1, -1, 0): Image.Transpose.ROTATE_270,
    (0, -1, 1, 0): Image.Transpose.ROTATE_90,
    (-1, 0, 0, 1): Image.Transpose.FLIP_LEFT_RIGHT,
    (1, 0, 0, -1): Image.Transpose.FLIP_TOP_BOTTOM,
    (0, 1, 1, 0): Image.Transpose.TRANSPOSE,
    (0, -1, -1, 0): Image.Transpose.TRANSVERSE,
}


def frames(
    path: Path, most: int, start: float | None = None, end: float | None = None
) -> list[Image.Image]:
    """Decode a clip's frames."""
    # The clip is cut into `most` parts of equal length, and the frame shown at the middle of each
    # part is taken. A frame that is shown at several middles comes once. A clip of at most `most`
    # frames gives all of them.
    with refusing(ANYTHING, _why_undecoded, ImageError):
        times = _times(path, start, end)
        with _opened(path) as film:
            wanted = _evenly(times, film.ticks(start), film.ticks(end), most)
            if not wanted:
                until = "the end" if end is None else f"{end:g} s"
                raise ImageError(f"no frame from {start or 0:g} s to {until}")
            pictures = _decoded(film, _packets(film, start, end), times, wanted)
            return [_as_shown(picture, film.pixel_aspect) for picture in pictures]


def _why_undecoded(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be decoded as a video: {reason.splitlines()[0]}"


def _times(path: Path, start: float | None, end: float | None) -> list[int]:
    """When each frame is first shown, ascending, in ticks, and when the last one ends."""
    count = 0
    has_times = False
    known: list[int] = []  # of all packets that tell it
    shown: list[tuple[int | None, int]] = []  # time and duration of those that are shown
    with _opened(path) as film:
        for packet in _packets(film, start, end):
            count += 1
            has_times = has_times or packet.pts is not None or packet.dts is not None
            if packet.pts is not None:
                known.append(packet.pts)
            if not packet.is_discard:
                shown.append((packet.pts, packet.duration or 0))
        _refuse_lost(film, known, whole=end is None)
    if (start or end) and count and not has_times:
        raise ImageError(
            "holds no times, so a part of it cannot be found; put it into a container: ffmpeg -i FILE -c "
            "copy FILE.mp4"
        )
    # Old containers do not tell: the decoder finds out.
    if any(time is None for time, _ in shown):
        with _opened(path) as film:
            frames_of_part = _frames(film, _packets(film, start, end))
            times = sorted({time for time, _ in frames_of_part})
    else:
        times = sorted({int(time) for time, _ in shown if time is not None})
    if not times:
        raise ImageError("holds no frame")
    first = times[0]
    last = times[-1]
    lasts = max((duration for time, duration in shown if time == last), default=0)
    if not lasts:
        intervals = max(1, len(times) - 1)
        lasts = round((last - first) / intervals) or 1
    return [*times, last + lasts]


def _evenly(
    times: Sequence[int], start: Fraction | None, end: Fraction | None, most: int
) -> list[int]:
    """Places in `times` of the wanted frames, ascending."""
    first = 0
    begin = Fraction(times[0])
    finish = Fraction(times[-1])
    if start is not None:
        first = max(0, bisect_right(times, start) - 1)
        begin = max(start, begin)
    if end is not None:
        finish = min(end, finish)
    if begin >= finish:
        return []
    shown = [place for place in range(first, len(times) - 1) if times[place] < finish]
    if len(shown) <= most:
        return shown
    half = (finish - begin) / (2 * most)  # of a part
    middles = [begin + (2 * part + 1) * half for part in range(most)]
    return sorted({bisect_right(times, middle) - 1 for middle in middles})


def _frames(film: _Film, packets: Iterable[av.Packet]) -> Iterator[tuple[int, av.VideoFrame]]:
    """Decode; yields each frame with its time in ticks."""
    context = film.stream.codec_context
    number = 0
    for packet in chain(packets, [None]):
        for frame in context.decode(packet):
            time = frame.pts
            if time is None:
                time = frame.dts
            if time is None:
                time = number
            yield time, frame
            number += 1


def _decoded(
    film: _Film, packets: Iterable[av.Packet], times: Sequence[int], wanted: Sequence[int]
) -> list[av.VideoFrame]:
    """The frames at the places `wanted` of `times`; decoding ends with the last one."""
    pictures: dict[int, av.VideoFrame] = {}
    waiting = list(reversed(wanted))
    before = None
    shown = times[0]

    def why(error: av.FFmpegError) -> str:
        return f"is damaged after {film.seconds(shown):.2f} s: {error.strerror}"

    with refusing(av.FFmpegError, why, ImageError):
        for shown, frame in _frames(film, packets):
            # A packet without a picture, which VP8 allows.
            while waiting and shown > times[waiting[-1]]:
                place = waiting.pop()
                if before is None or (place and before[0] < times[place - 1]):
                    raise ImageError(f"lacks the frame at {film.seconds(times[place]):.2f} s")
                pictures[before[0]] = before[1]
            if waiting and shown == times[waiting[-1]]:
                waiting.pop()
                pictures[shown] = frame
            before = shown, frame
            if not waiting:
                break
    if waiting:
        ends_at = film.seconds(shown)
        length = film.seconds(times[-1])
        raise ImageError(f"decoding ends at {ends_at:.2f} s, of {length:.2f} s")
    if any(frame.is_corrupt for frame in pictures.values()):
        raise ImageError("holds a damaged frame")
    return [pictures[time] for time in sorted(pictures)]


def _as_shown(frame: av.VideoFrame, pixel_aspect: Fraction) -> Image.Image:
    """A frame as a player shows it."""
    width = max(1, round(frame.width * pixel_aspect))
    if width * frame.height > MAX_PIXELS:
        raise ImageError(f"{width} x {frame.height} pixels, more than {MAX_PIXELS:,}")
    picture = frame.reformat(width, frame.height, "rgb24", threads=1, interpolation="BICUBIC")
    image = picture.to_image()
    beside: Any = frame.side_data
    matrix = beside.get(SideData.DISPLAYMATRIX)
    if matrix is None:
        return image
    turned = np.frombuffer(matrix, np.int32)[[0, 1, 3, 4]].astype(float)
    lengths = np.abs(turned)
    is_long = lengths > 0.5 * lengths.max()
    signs = np.where(is_long, np.sign(turned), 0).astype(int)
    turn = TURNS.get(tuple(signs.tolist()))
    if turn is None:
        return image
    return image.transpose(turn)


@dataclass(frozen=True)
class _Film:
    container: InputContainer  # the file
    stream: av.VideoStream  # its video stream; a tick is the unit of the stream's clock

    @property
    def origin(self) -> Fraction:
        """The time at which the file begins, in seconds."""
        begin = Fraction(self.container.start_time or 0, av.time_base)  # rounded to microseconds
        declared = (self.stream.start_time or 0) * self.unit
        if abs(declared - begin) * av.time_base < 1:
            return declared
        return begin

    @property
    def unit(self) -> Fraction:
        """Seconds of a tick."""
        return self.stream.time_base or Fraction(1)

    @property
    def stated_length(self) -> float:
        """How long the file is by its header, in seconds; 0 where it does not say."""
        duration = (self.container.duration or 0) / av.time_base
        rate = self.stream.average_rate
        if self.container.format.name == "avi" and rate:
            # FFmpeg shortens the duration of a cut AVI.
            return max(float(self.stream.frames / rate), duration)
        return duration

    @property
    def pixel_aspect(self) -> Fraction:
        """A pixel's width by its height."""
        return (
            self.stream.sample_aspect_ratio
            or self.stream.codec_context.sample_aspect_ratio
            or Fraction(1)
        )

    def ticks(self, seconds: float | None) -> Fraction | None:
        """Convert a time to ticks."""
        if seconds is None:
            return None
        return (Fraction(seconds).limit_denominator(FINEST) + self.origin) / self.unit

    def seconds(self, ticks: float) -> float:
        """Convert ticks to a time."""
        return float(ticks) * float(self.unit) - float(self.origin)


@contextmanager
def _opened(path: Path) -> Iterator[_Film]:
    """Open a video file for a decoder on one core: several clips are decoded at once."""
    if not path.is_file():
        raise ImageError(MISSING)
    if path.stat().st_size == 0:
        raise ImageError("the file is empty")
    # Absolute, so that FFmpeg takes no name for an address.
    with av.open(str(path.absolute()), options=SAFE, metadata_errors="ignore") as container:
        cover = av.stream.Disposition.attached_pic  # of a song, which is no film
        films = [stream for stream in container.streams.video if not stream.disposition & cover]
        if not films:
            sound = ", sound alone" if container.streams.audio else ""
            raise ImageError(f"holds no video{sound}")
        films = [stream for stream in films if stream.codec_context is not None]
        if not films:
            raise ImageError("holds a video of an unknown codec")
        stream = max(films, key=_rank)
        if stream.width * stream.height > MAX_PIXELS:
            raise ImageError(f"{stream.width} x {stream.height} pixels, more than {MAX_PIXELS:,}")
        stream.codec_context.thread_count = 1
        yield _Film(container, stream)


def _rank(stream: av.VideoStream) -> tuple[bool, int]:
    """How a stream ranks among those of a file, as in ffmpeg: those that a player shows by default
    first, then by size.
    """
    is_default = bool(stream.disposition & av.stream.Disposition.default)
    return is_default, stream.width * stream.height


def _packets(film: _Film, start: float | None, end: float | None) -> Iterator[av.Packet]:
    """Read the compressed frames of a part of a file, one after the other: a film may not fit in
    memory.
    """
    begin = film.ticks(start) if start else None
    finish = film.ticks(end)
    last = 0.0
    if begin is not None:
        with _opened(Path(film.container.name)) as trial:
            reached = _reaches(trial, begin)
        if reached:
            film.container.seek(int(begin), stream=film.stream, backward=True)
    for packet in film.container.demux():
        if not packet.size:
            continue
        dts = packet.dts
        times = [time for time in (packet.pts, dts) if time is not None]
        if times:
            ends = (max(times) + (packet.duration or 0)) * packet.time_base
            last = max(last, float(ends - film.origin))
        if packet.stream is not film.stream:
            continue
        yield packet
        # No later packet is shown before its dts.
        if finish is not None and dts is not None and dts > finish:
            return
    length = film.stated_length
    tolerance = max(0.1, min(ENDS_EARLY, 0.05 * length))
    if last < length - tolerance:
        raise ImageError(f"ends at {last:.1f} s, its header says {length:.1f} s")


def _refuse_lost(film: _Film, times: Sequence[int], whole: bool) -> None:
    """Refuse a Matroska file if a key frame that its index names was not read."""
    # Frames before the first one read are not checked, and those after the last one only if `whole`
    # says that the file was read to its end. FFmpeg skips a damaged cluster without an error. Other
    # containers are read by their index.
    if not times or "matroska" not in film.container.format.name:
        return
    with suppress(av.FFmpegError):
        film.container.seek(0, stream=film.stream)  # this reads the index
    index = getattr(film.stream, "index_entries", ())  # an older PyAV has none
    named = {entry.timestamp for entry in index if entry.is_keyframe}
    first = min(times)
    last = max(times)
    for time in sorted(named - set(times)):
        if first < time and (whole or time < last):
            raise ImageError(
                f"is damaged: the frame at {film.seconds(time):.2f} s, which its index names, is missing"
            )


def _reaches(film: _Film, start: Fraction) -> bool:
    """Whether reading can begin at a key frame at or before `start`. The file is not usable after a
    failed attempt.
    """
    try:
        film.container.seek(int(start), stream=film.stream, backward=True)
        first = next(packet for packet in film.container.demux(film.stream) if packet.size)
    except (av.FFmpegError, StopIteration):
        return False
    return first.pts is not None and first.pts <= start and first.is_keyframe

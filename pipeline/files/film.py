"""An opened video file: its picture, its clock, and the compressed frames of a part of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer

from pipeline.files.images import MAX_PIXELS, MISSING, ImageError

# Containers that hold one film. FFmpeg also knows playlists, which open other files and addresses.
CONTAINERS = ("mov", "matroska", "avi", "mpeg", "mpegts", "mpegvideo", "m4v", "h264", "hevc", "obu", "ivf", "flv",
              "asf", "ogg", "mxf", "nut", "rm", "dv", "gif", "yuv4mpegpipe")
SAFE = {"format_whitelist": ",".join(CONTAINERS), "protocol_whitelist": "file"}
FINEST = 10**6  # parts of a second that a time is taken to be in: 0.6 as a float is less than three fifths
ENDS_EARLY = 1.0  # seconds that a long file may end before the time in its header; a shorter one a twentieth of it


@dataclass(frozen=True)
class Film:
    """An opened video file."""

    container: InputContainer  # the file
    stream: av.VideoStream  # its picture. A tick is the unit of the stream's clock

    @property
    def origin(self) -> Fraction:
        """The time at which the file begins, in seconds."""
        begin = Fraction(self.container.start_time or 0, av.time_base)  # rounded to microseconds
        own = (self.stream.start_time or 0) * self.unit
        return own if abs(own - begin) * av.time_base < 1 else begin

    @property
    def unit(self) -> Fraction:
        """Seconds of a tick."""
        return self.stream.time_base or Fraction(1)

    @property
    def told(self) -> float:
        """How long the file is by its header, in seconds; 0 where it does not say."""
        rate = self.stream.average_rate if self.container.format.name == "avi" else None
        counted = float(self.stream.frames / rate) if rate else 0.0  # FFmpeg shortens the duration of a cut AVI
        return max(counted, (self.container.duration or 0) / av.time_base)

    @property
    def pixel_aspect(self) -> Fraction:
        """A pixel's width by its height."""
        return self.stream.sample_aspect_ratio or self.stream.codec_context.sample_aspect_ratio or Fraction(1)

    def ticks(self, seconds: float | None) -> Fraction | None:
        """Convert a time to ticks."""
        if seconds is None:
            return None
        return (Fraction(seconds).limit_denominator(FINEST) + self.origin) / self.unit

    def seconds(self, ticks: float) -> float:
        """Convert ticks to a time."""
        return float(ticks) * float(self.unit) - float(self.origin)


@contextmanager
def opened(path: Path) -> Iterator[Film]:
    """Open a video file for a decoder on one core: several clips are decoded at once."""
    if not path.is_file():
        raise ImageError(MISSING)
    if path.stat().st_size == 0:
        raise ImageError("the file is empty")
    # Absolute, so that no name is taken for an address.
    with av.open(str(path.absolute()), options=SAFE, metadata_errors="ignore") as container:
        pictures = [stream for stream in container.streams.video
                    if not stream.disposition & av.stream.Disposition.attached_pic]  # a song's cover is no film
        if not pictures:
            raise ImageError("holds no video" + (", sound alone" if container.streams.audio else ""))
        pictures = [stream for stream in pictures if stream.codec_context is not None]
        if not pictures:
            raise ImageError("holds a video of an unknown codec")
        # As ffmpeg: of those that a player shows by default the largest.
        stream = max(pictures, key=lambda each: (bool(each.disposition & av.stream.Disposition.default),
                                                 each.width * each.height))
        if stream.width * stream.height > MAX_PIXELS:
            raise ImageError(f"{stream.width} x {stream.height} pixels, more than {MAX_PIXELS:,}")
        stream.codec_context.thread_count = 1
        yield Film(container, stream)


def packets(film: Film, start: float | None, end: float | None) -> Iterator[av.Packet]:
    """Read the compressed frames of a part of a file, one after the other: a film may not fit in memory."""
    begin = film.ticks(start) if start else None
    if begin is not None:
        with opened(Path(film.container.name)) as trial:
            begin = begin if _reaches(trial, begin) else None
    yield from _read(film, begin, film.ticks(end))


def refuse_lost(film: Film, times: Sequence[int], whole: bool) -> None:
    """Check that the frames which a Matroska file's index names from the first that was read on were all read.

    `whole` says that reading went on to the file's end, not to the last of these frames. FFmpeg goes on behind a
    damaged cluster as if its frames had never been. Other containers are read by their index.
    """
    if not times or "matroska" not in film.container.format.name:
        return
    with suppress(av.FFmpegError):
        film.container.seek(0, stream=film.stream)  # which reads the index
    index = getattr(film.stream, "index_entries", ())  # an older PyAV has none
    named = {each.timestamp for each in index if each.is_keyframe}
    if lost := sorted(time for time in named - set(times) if min(times) < time and (whole or time < max(times))):
        raise ImageError(f"is damaged: the frame at {film.seconds(lost[0]):.2f} s, which its index names, is not there")


def _reaches(film: Film, start: Fraction) -> bool:
    """Whether the file can be read from a key frame before `start` on. It is not as it was after a vain attempt."""
    try:
        film.container.seek(int(start), stream=film.stream, backward=True)
        first = next(packet for packet in film.container.demux(film.stream) if packet.size)
    except (av.FFmpegError, StopIteration):
        return False
    return first.pts is not None and first.pts <= start and first.is_keyframe


def _read(film: Film, start: Fraction | None, end: Fraction | None) -> Iterator[av.Packet]:
    """As `packets`, in ticks, from a `start` that the file reaches."""
    if start is not None:
        film.container.seek(int(start), stream=film.stream, backward=True)
    last = 0.0
    for packet in film.container.demux():
        if not packet.size:
            continue
        at = max((time for time in (packet.pts, packet.dts) if time is not None), default=None)
        if at is not None:
            last = max(last, float((at + (packet.duration or 0)) * packet.time_base - film.origin))
        if packet.stream is not film.stream:
            continue
        dts = packet.dts
        yield packet
        if end is not None and dts is not None and dts > end:  # no later packet is shown before its dts
            return
    if last < film.told - max(0.1, min(ENDS_EARLY, 0.05 * film.told)):
        raise ImageError(f"ends at {last:.1f} s, its header says {film.told:.1f} s")

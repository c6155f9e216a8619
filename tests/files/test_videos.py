"""Every kind of clip is either decoded right or refused with a reason."""

from __future__ import annotations

import gc
import os
import re
import struct
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from pipeline.foundation.files import videos
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.files.images import ImageError
from tests.clips import encode, number_of, picture, sound


def numbers(
    path: Path, most: int, start: float | None = None, end: float | None = None
) -> list[int]:
    return [number_of(frame) for frame in videos.frames(path, most, start, end)]


def pictures(count: int) -> list[Image.Image]:
    return [picture(number) for number in range(count)]


@pytest.mark.specification
@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "libx264", {}),
        ("b-frames.mkv", "libx264", {"bf": 3, "g": 250, "b-adapt": 0}),
        ("a.ts", "libx264", {}),
        ("a.avi", "mpeg4", {"b": "4M"}),
        ("a.mov", "mjpeg", {"pix_fmt": "yuvj420p"}),
        ("a.h264", "libx264", {}),
        ("a.webm", "libvpx", {"auto-alt-ref": 1, "lag-in-frames": 16, "b": "4M"}),
        ("a.mp4", "libx265", {"x265-params": "log-level=none"}),
        ("with space ü 图.mp4", "libx264", {}),
        ("a.mpg", "mpeg2video", {"unit": Fraction(1, 25), "bf": 2, "b": "4M"}),
    ],
)
def test_frames_come_evenly_in_order_of_time(
    tmp_path: Path, name: str, codec: str, options: dict[str, Any]
) -> None:
    made = encode(tmp_path / name, pictures(20), codec=codec, **options)
    assert numbers(made, 5) == [2, 6, 10, 14, 18]  # the middles of five parts of four frames
    assert numbers(made, 20) == numbers(made, 100) == list(range(20))


def test_frames_are_those_of_a_whole_decode(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (12, 48, 64, 3), np.uint8)
    made = encode(tmp_path / "a.mp4", [Image.fromarray(each) for each in noise], bf=2)
    with av.open(str(made)) as film:
        whole = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    chosen = videos.frames(made, 4)
    assert [
        np.array_equal(each, whole[place])
        for each, place in zip(chosen, (1, 4, 7, 10), strict=True)
    ] == [True] * 4


def test_times_count_and_not_numbers(tmp_path: Path) -> None:
    """Frames 0 to 9 in the first 0.1 s, 10 and 11 in the 0.49 s after: most of the time the clip
    shows 10 and 11.
    """
    times = [*range(0, 100, 10), 100, 550]
    made = encode(tmp_path / "variable.mkv", pictures(12), times)
    assert numbers(made, 10) == [2, 8, 10, 11]
    assert numbers(made, 12) == list(range(12))


def test_part_of_a_file(tmp_path: Path) -> None:
    made = encode(
        tmp_path / "a.mp4", pictures(25), g=10
    )  # a key frame every 0.4 s, a frame each 0.04 s
    assert numbers(made, 20, 0.2, 0.36) == [5, 6, 7, 8]
    assert numbers(made, 20, 0.5, 0.6) == [12, 13, 14]  # what is shown at 0.5 s began at 0.48 s
    assert numbers(made, 2, 0.6) == [17, 22]
    assert numbers(made, 20, None, 0.1) == [0, 1, 2]
    assert numbers(made, 20, 0.9, 60) == [22, 23, 24]
    with pytest.raises(ImageError, match=r"no frame from 7 s to 9 s"):
        videos.frames(made, 20, 7, 9)


@pytest.mark.parametrize(
    ("name", "options"),
    [("a.mp4", {"bf": 2}), ("a.ts", {"bf": 2, "g": 8}), ("a.ts", {"bf": 0, "g": 8})],
)
@pytest.mark.parametrize("unit", [Fraction(1, 25), Fraction(1001, 30000)])
def test_a_part_begins_with_the_frame_of_its_start_and_ends_before_that_of_its_end(
    tmp_path: Path, name: str, options: dict[str, Any], unit: Fraction
) -> None:
    made = encode(tmp_path / name, pictures(20), range(20), unit=unit, **options)
    found = {
        (start, end): numbers(made, 20, float(start * unit), float(end * unit))
        for start, end in ((1, 3), (3, 4), (6, 12), (15, 20))
    }
    assert found == {(start, end): list(range(start, end)) for start, end in found}


def test_a_film_that_was_trimmed_by_its_edit_list_begins_where_that_says(tmp_path: Path) -> None:
    """As cameras and `ffmpeg -ss 0.12 -c copy` trim: the frames before are there, for others to be
    decoded from.
    """
    made = encode(tmp_path / "a.mp4", pictures(20), range(20), unit=Fraction(1, 25), bf=2)
    content = bytearray(made.read_bytes())
    for name, offset in ((b"mvhd", 20), (b"tkhd", 24), (b"elst", 12)):  # 680 of 800 ms
        struct.pack_into(">I", content, content.index(name) + offset, 680)
    media_time = content.index(b"elst") + 16
    (begin,) = struct.unpack_from(">I", content, media_time)
    struct.pack_into(">I", content, media_time, begin + 3 * 512)  # 12,800 ticks a second
    made.write_bytes(content)
    assert numbers(made, 20) == list(range(3, 20))
    assert numbers(made, 20, 0.2, 0.28) == [8, 9]


@pytest.mark.parametrize(("aspect", "pixels"), [(None, 64 * 48), (Fraction(4, 3), 85 * 48)])
def test_frames_of_too_many_pixels_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aspect: Fraction | None, pixels: int
) -> None:
    """Of the stored picture before it is decoded, of the one with square pixels before that is
    made.
    """
    made = encode(tmp_path / "a.mp4", pictures(3), aspect=aspect)
    monkeypatch.setattr(videos, "MAX_PIXELS", pixels)
    assert numbers(made, 3) == [0, 1, 2]
    monkeypatch.setattr(videos, "MAX_PIXELS", pixels - 1)
    with pytest.raises(ImageError, match=f"x 48 pixels, more than {pixels - 1:,}"):
        videos.frames(made, 3)


def corners() -> Image.Image:
    shown = Image.new("RGB", (64, 32), "white")
    shown.paste((255, 0, 0), (0, 0, 32, 16))
    shown.paste((0, 0, 255), (32, 16, 64, 32))
    return shown


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_turned_phones(tmp_path: Path, turn: int) -> None:
    """The stored picture is turned by the file's own word back to the same upright one."""
    stored = corners().rotate(-turn, expand=True)
    made = encode(tmp_path / "phone.mov", [stored] * 3, rotation=turn, qp=0)
    frame = videos.frames(made, 1)[0]
    assert frame.size == (64, 32)
    inside = (
        (slice(2, 14), slice(2, 30)),
        (slice(18, 30), slice(34, 62)),
    )  # away from edges, which chroma blurs
    for rows, columns in inside:
        difference = (
            np.asarray(frame)[rows, columns].astype(int) - np.asarray(corners())[rows, columns]
        )
        assert abs(difference).max() <= 3


@pytest.mark.parametrize(
    ("matrix", "shown"),
    [
        ((-1, 0, 0, 1), lambda upright: upright[:, ::-1]),
        ((1, 0, 0, -1), lambda upright: upright[::-1]),
        ((-1, 0, 0, -1), lambda upright: upright[::-1, ::-1]),
        ((0, 1, 1, 0), lambda upright: upright.transpose(1, 0, 2)),
        ((0, 1, -1, 0), lambda upright: np.rot90(upright, -1)),
        ((0, -1, 1, 0), np.rot90),
        ((0, -1, -1, 0), lambda upright: upright[::-1, ::-1].transpose(1, 0, 2)),
    ],
)
def test_a_file_is_shown_as_its_matrix_says(
    tmp_path: Path, matrix: tuple[int, ...], shown: Any
) -> None:
    """x' = ax + cy and y' = bx + dy, where y goes down (ISO/IEC 14496-12, 6.2.2)."""
    made = encode(tmp_path / "a.mov", [corners()] * 3, qp=0)
    upright, content = arrays(made, 1)[0], bytearray(made.read_bytes())
    place = content.index(b"tkhd") + 4 + 40
    a, b, c, d = (each * 0x10000 for each in matrix)
    struct.pack_into(">9i", content, place, a, b, 0, c, d, 0, 0, 0, 0x40000000)
    made.write_bytes(content)
    assert np.array_equal(arrays(made, 1)[0], shown(upright))


def test_pixels_that_are_no_squares(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(3), aspect=Fraction(4, 3))
    assert videos.frames(made, 1)[0].size == (85, 48)


def test_odd_sizes_and_ten_bits(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "odd.mkv"), "w") as film:
        stream = film.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 33, 17, "yuv444p10le"
        stream.codec_context.thread_count = (
            1  # FFV1 on several threads now and then writes eight grey pixels
        )
        film.mux(
            stream.encode(av.VideoFrame.from_image(Image.new("RGB", (33, 17), (200, 100, 50))))
        )
        film.mux(stream.encode())
    frame = videos.frames(tmp_path / "odd.mkv", 5)[0]
    assert frame.size == (33, 17)
    assert np.abs(np.asarray(frame).astype(int) - (200, 100, 50)).max() <= 2


def test_high_definition_has_its_own_colours(tmp_path: Path) -> None:
    """Y 81, Cb 90, Cr 240 is pure red by BT.601 and another red by BT.709, of which the file
    speaks.
    """
    made = tmp_path / "hd.mp4"
    with av.open(str(made), "w") as film:
        stream = film.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt, stream.codec_context.colorspace = (
            64,
            64,
            "yuv444p",
            1,
        )
        frame = av.VideoFrame(64, 64, "yuv444p")
        for plane, value in zip(frame.planes, (81, 90, 240), strict=True):
            plane.update(bytes([value]) * plane.buffer_size)
        film.mux(stream.encode(frame))
        film.mux(stream.encode())
    assert videos.frames(made, 1)[0].getpixel((5, 5)) == (255, 24, 0)


def test_of_several_pictures_that_which_players_show(tmp_path: Path) -> None:
    """The larger one is another view of a disc, for instance."""
    made = tmp_path / "two.mkv"
    with av.open(str(made), "w") as film:
        streams = [film.add_stream("libx264", rate=25), film.add_stream("libx264", rate=25)]
        for stream, (width, height) in zip(streams, [(64, 48), (128, 96)], strict=True):
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        streams[0].disposition = av.stream.Disposition.default
        for stream in streams:
            film.mux(
                stream.encode(
                    av.VideoFrame.from_image(Image.new("RGB", (stream.width, stream.height)))
                )
            )
            film.mux(stream.encode())
    assert videos.frames(made, 1)[0].size == (64, 48)


def test_no_picture(tmp_path: Path) -> None:
    for made in (sound(tmp_path / "a.m4a"), sound(tmp_path / "a.mp4", cover=True)):
        with pytest.raises(ImageError, match="holds no video, sound alone"):
            videos.frames(made, 5)


def test_no_frame(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "none.mkv"), "w") as film:
        stream = film.add_stream("libx264", rate=25)
        stream.width = stream.height = 64
        film.start_encoding()
    with pytest.raises(ImageError):
        videos.frames(tmp_path / "none.mkv", 5)


def noisy(path: Path, count: int, **options: Any) -> Path:
    """A clip whose frames are all of about one size in bytes."""
    noise = np.random.default_rng(0).integers(0, 256, (count, 48, 64, 3), np.uint8)
    return encode(path, [Image.fromarray(each) for each in noise], **options)


@pytest.mark.parametrize(
    ("name", "codec", "share", "reason"),
    [
        *(
            ("a.mp4", "libx264", share, "cannot be decoded as a video") for share in (0.3, 0.9)
        ),  # its index is at the end
        ("a.mkv", "libx264", 0.3, r"ends at 0\.6 s, its header says 2\.0 s"),
        ("a.mkv", "libx264", 0.9, r"ends at 1\.8 s, its header says 2\.0 s"),
        ("a.avi", "mpeg4", 0.3, r"ends at 0\.6 s, its header says 2\.0 s"),
        ("a.avi", "mpeg4", 0.9, None),
    ],
)
def test_cut_files_give_the_right_frames_or_the_reason(
    tmp_path: Path, name: str, codec: str, share: float, reason: str | None
) -> None:
    """Of the last one the index is cut off, which a decoder can do without, and no wanted frame."""
    made = noisy(tmp_path / name, 50, codec=codec, g=10)
    right = arrays(made, 5)
    os.truncate(made, int(share * made.stat().st_size))
    if reason is None:
        assert np.array_equal(arrays(made, 5), right)
    else:
        with pytest.raises(ImageError, match=reason):
            videos.frames(made, 5)


@pytest.mark.parametrize("start", [None, 0.2])
def test_a_part_before_the_place_where_a_file_was_cut(tmp_path: Path, start: float | None) -> None:
    made = noisy(tmp_path / "a.mkv", 50, g=5, bf=0)
    right = arrays(made, 3, start, 0.6)
    os.truncate(made, made.stat().st_size // 2)
    with pytest.raises(ImageError, match=r"its header says 2\.0 s|damaged after"):
        videos.frames(made, 3)
    assert np.array_equal(arrays(made, 3, start, 0.6), right)


def arrays(
    file: Path, most: int, start: float | None = None, end: float | None = None
) -> list[np.ndarray]:
    return [np.asarray(frame) for frame in videos.frames(file, most, start, end)]


@pytest.mark.parametrize(
    ("begin", "end", "reason"),
    [(0.5, 0.75, "ends at"), (0.93, 0.95, "is damaged after 1.36 s"), (0.97, 0.98, None)],
)
def test_spoilt_bytes_are_seen_where_a_wanted_frame_is_in_them(
    tmp_path: Path, begin: float, end: float, reason: str | None
) -> None:
    made = encode(tmp_path / "a.mkv", pictures(40), g=10, bf=2)
    right, content = arrays(made, 4), made.read_bytes()
    first, last = (int(share * len(content)) for share in (begin, end))
    made.write_bytes(content[:first] + b"\x55" * (last - first) + content[last:])
    if reason is None:
        assert np.array_equal(arrays(made, 4), right)
    else:
        with pytest.raises(ImageError, match=reason):
            videos.frames(made, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "part"),
    [(1, (None, None)), (40, (0.5, None)), (-1, (0.5, None)), (40, (0.5, 15.0))],
)
def test_a_lost_cluster_of_a_matroska_file_is_seen(
    tmp_path: Path, cluster: int, part: tuple[float | None, float | None]
) -> None:
    """FFmpeg goes on behind it, so other frames would be taken as if they were the right ones."""
    made = noisy(tmp_path / "a.mkv", 400, g=10, bf=0)
    content = bytearray(made.read_bytes())
    places = [found.start() for found in re.finditer(b"\x1f\x43\xb6\x75", bytes(content))]
    assert len(places) > 100
    assert videos.frames(made, 5, *part)
    content[places[cluster] : places[cluster] + 12] = bytes(12)
    made.write_bytes(content)
    with pytest.raises(ImageError, match="is damaged: the frame at"):
        videos.frames(made, 5, *part)


@pytest.mark.parametrize("part", [(0.4, None), (None, 0.8), (0.4, 0.8)])
def test_a_part_of_a_raw_stream_is_refused_for_it_has_no_times(
    tmp_path: Path, part: tuple[float | None, float | None]
) -> None:
    made = encode(tmp_path / "a.h264", pictures(40), g=10)
    assert len(videos.frames(made, 5)) == 5
    with pytest.raises(ImageError, match=r"holds no times, .*: ffmpeg -i FILE"):
        videos.frames(made, 5, *part)


def test_an_unknown_codec_is_said(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(3))
    made.write_bytes(made.read_bytes().replace(b"avc1", b"xyz1"))
    with pytest.raises(ImageError, match="unknown codec"):
        videos.frames(made, 5)


@pytest.mark.slow
def test_broken_bytes_give_frames_or_a_reason(tmp_path: Path) -> None:
    """Of 60 files that differ in five bytes, of which every third is cut besides."""
    content = encode(tmp_path / "a.mp4", pictures(12), bf=2).read_bytes()
    rng, broken, given, reasons = np.random.default_rng(0), tmp_path / "broken.mp4", [], []
    for number in range(60):
        spoilt = bytearray(
            content[: int(rng.integers(1, len(content)))] if number % 3 == 0 else content
        )
        for place in rng.integers(0, len(spoilt), 5):
            spoilt[place] = rng.integers(256)
        broken.write_bytes(spoilt)
        try:
            given.append(numbers(broken, 5))
        except ImageError as error:
            reasons.append(str(error))
    assert given.count([1, 3, 6, 8, 10]) >= 10
    assert all(found == sorted(found) and len(found) <= 5 for found in given)
    assert len(reasons) >= 30
    assert all(map(str.isprintable, reasons))


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "empty"), (b"no video" * 99, "cannot be decoded as a video")]
)
def test_other_files(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.mp4").write_bytes(content)
    with pytest.raises(ImageError, match=reason):
        videos.frames(tmp_path / "a.mp4", 5)
    with pytest.raises(ImageError, match="no such file"):
        videos.frames(tmp_path / "b.mp4", 5)


def test_playlists_open_no_other_file(tmp_path: Path) -> None:
    encode(tmp_path / "secret.ts", pictures(5))
    for name, text in (
        ("list.mp4", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.ts\n#EXT-X-ENDLIST\n"),
        ("list.ffconcat", "ffconcat version 1.0\nfile secret.ts\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ImageError, match="cannot be decoded as a video"):
            videos.frames(tmp_path / name, 5)


@pytest.mark.slow
def test_decoding_starts_no_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codecs and scalers start as many as there are cores, in each worker and for each clip, unless
    told not to.
    """
    made = encode(tmp_path / "a.mp4", [picture(0, 640, 480)] * 30, bf=2)
    before, looks = foreign_threads(), []
    decoded, shown = videos._frames, videos._as_shown

    def decoding(*arguments: Any) -> Iterator[Any]:
        for each in decoded(*arguments):
            looks.append(foreign_threads() - before)
            yield each

    def showing(*arguments: Any) -> Image.Image:
        image = shown(*arguments)
        looks.append(foreign_threads() - before)  # a frame keeps its scaler, and that its threads
        return image

    monkeypatch.setattr(videos, "_frames", decoding)
    monkeypatch.setattr(videos, "_as_shown", showing)
    assert len(videos.frames(made, 5)) == 5
    assert len(looks) > 10
    assert not set().union(*looks)


def foreign_threads() -> set[str]:
    """The threads of this process that are not Python's."""
    return set(os.listdir("/proc/self/task")) - {
        str(thread.native_id) for thread in threading.enumerate()
    }


def test_a_strip_of_frames(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(8))
    strip = GalleryFile(str(made), "video").picture()
    assert strip.info["columns"] == 2
    assert strip.size == (2 * 64 + 2, 2 * 48 + 2)
    corners = [(0, 0), (66, 0), (0, 50), (66, 50)]
    assert [number_of(strip.crop((x + 8, y + 8, x + 56, y + 40))) for x, y in corners] == [
        1,
        3,
        5,
        7,
    ]
    assert GalleryFile(str(made), "video", 0.04, 0.12).title == "a.mp4, 0.04 s to 0.12 s"


@pytest.mark.slow
def test_a_film_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = encode(tmp_path / "long.mkv", pictures(20) * 20, g=10)
    alive, decoded = [], videos._frames

    def counted(film: Any, packets: Any) -> Any:
        for number, each in enumerate(decoded(film, packets)):
            if number == 5:
                alive.append(sum(type(known) is av.Packet for known in gc.get_objects()))
            yield each

    monkeypatch.setattr(videos, "_frames", counted)
    assert len(videos.frames(made, 4)) == len(videos.frames(made, 4, 1.0)) == 4
    assert len(alive) == 2
    assert max(alive) < 20  # of 400

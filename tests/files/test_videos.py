"""Every kind of clip is either decoded right or refused with a reason."""

from __future__ import annotations

import gc
import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from pipeline.files import videos
from pipeline.files.gallery_file import GalleryFile
from pipeline.files.images import ImageError
from tests.clips import encode, number_of, picture, sound


def numbers(path: Path, most: int, start: float | None = None, end: float | None = None) -> list[int]:
    return [number_of(frame) for frame in videos.frames(path, most, start, end)]


def pictures(count: int) -> list[Image.Image]:
    return [picture(number) for number in range(count)]


@pytest.mark.parametrize(("name", "codec", "options"), [
    ("a.mp4", "libx264", {}), ("b-frames.mkv", "libx264", {"bf": 3, "g": 250, "b-adapt": 0}), ("a.ts", "libx264", {}),
    ("a.avi", "mpeg4", {"b": "4M"}), ("a.mov", "mjpeg", {"pix_fmt": "yuvj420p"}), ("a.h264", "libx264", {}),
    ("a.webm", "libvpx", {"auto-alt-ref": 1, "lag-in-frames": 16, "b": "4M"}),
    ("a.mp4", "libx265", {"x265-params": "log-level=none"}), ("with space ü 图.mp4", "libx264", {}),
    ("a.mpg", "mpeg2video", {"unit": Fraction(1, 25), "bf": 2, "b": "4M"}),
])
def test_frames_come_evenly_in_order_of_time(tmp_path: Path, name: str, codec: str, options: dict[str, Any]) -> None:
    made = encode(tmp_path / name, pictures(20), codec=codec, **options)
    assert numbers(made, 5) == [2, 6, 10, 14, 18]  # the middles of five parts of four frames
    assert numbers(made, 20) == numbers(made, 100) == list(range(20))


def test_frames_are_those_of_a_whole_decode(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (12, 48, 64, 3), np.uint8)
    made = encode(tmp_path / "a.mp4", [Image.fromarray(each) for each in noise], bf=2)
    with av.open(str(made)) as film:
        whole = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    chosen = videos.frames(made, 4)
    assert [np.array_equal(each, whole[place]) for each, place in zip(chosen, (1, 4, 7, 10), strict=True)] == [True] * 4


def test_times_count_and_not_numbers(tmp_path: Path) -> None:
    """Frames 0 to 9 in the first 0.1 s, 10 and 11 in the 0.49 s after: most of the time the clip shows 10 and 11."""
    times = [*range(0, 100, 10), 100, 550]
    made = encode(tmp_path / "variable.mkv", pictures(12), times)
    assert numbers(made, 10) == [2, 8, 10, 11]
    assert numbers(made, 12) == list(range(12))


def test_part_of_a_file(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(25), g=10)  # a key frame every 0.4 s, a frame each 0.04 s
    assert numbers(made, 20, 0.2, 0.36) == [5, 6, 7, 8]
    assert numbers(made, 20, 0.5, 0.6) == [12, 13, 14]  # what is shown at 0.5 s began at 0.48 s
    assert numbers(made, 2, 0.6) == [17, 22]
    assert numbers(made, 20, None, 0.1) == [0, 1, 2]
    assert numbers(made, 20, 0.9, 60) == [22, 23, 24]
    with pytest.raises(ImageError, match=r"no frame from 7 s to 9 s"):
        videos.frames(made, 20, 7, 9)


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
    inside = (slice(2, 14), slice(2, 30)), (slice(18, 30), slice(34, 62))  # away from edges, which chroma blurs
    for rows, columns in inside:
        difference = np.asarray(frame)[rows, columns].astype(int) - np.asarray(corners())[rows, columns]
        assert abs(difference).max() <= 3


def test_pixels_that_are_no_squares(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(3), aspect=Fraction(4, 3))
    assert videos.frames(made, 1)[0].size == (85, 48)


def test_odd_sizes_and_ten_bits(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "odd.mkv"), "w") as film:
        stream = film.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 33, 17, "yuv444p10le"
        film.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (33, 17), (200, 100, 50)))))
        film.mux(stream.encode())
    frame = videos.frames(tmp_path / "odd.mkv", 5)[0]
    assert frame.size == (33, 17)
    assert np.abs(np.asarray(frame).astype(int) - (200, 100, 50)).max() <= 2


def test_high_definition_has_its_own_colours(tmp_path: Path) -> None:
    """Y 81, Cb 90, Cr 240 is pure red by BT.601 and another red by BT.709, of which the file speaks."""
    made = tmp_path / "hd.mp4"
    with av.open(str(made), "w") as film:
        stream = film.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt, stream.codec_context.colorspace = 64, 64, "yuv444p", 1
        frame = av.VideoFrame(64, 64, "yuv444p")
        for plane, value in zip(frame.planes, (81, 90, 240), strict=True):
            plane.update(bytes([value]) * plane.buffer_size)
        film.mux(stream.encode(frame))
        film.mux(stream.encode())
    assert videos.frames(made, 1)[0].getpixel((5, 5)) == (255, 24, 0)


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


@pytest.mark.parametrize(("name", "container_options"), [("a.mp4", {}), ("a.mkv", {}), ("a.avi", {"codec": "mpeg4"})])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_cut_files_give_nothing_or_the_right_frames(tmp_path: Path, name: str, container_options: dict[str, str],
                                                    share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 48, 64, 3), np.uint8)
    made = encode(tmp_path / name, [Image.fromarray(each) for each in noise], g=10, **container_options)
    right = [np.asarray(frame) for frame in videos.frames(made, 5)]
    os.truncate(made, int(share * made.stat().st_size))
    found = frames_or_reason(made, 5)
    if isinstance(found, str):
        assert found.isprintable()
    else:
        assert all(np.array_equal(*each) for each in zip(found, right, strict=True))


@pytest.mark.parametrize("start", [None, 0.2])
def test_a_part_before_the_place_where_a_file_was_cut(tmp_path: Path, start: float | None) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 48, 64, 3), np.uint8)
    made = encode(tmp_path / "a.mkv", [Image.fromarray(each) for each in noise], g=5, bf=0)
    right = [np.asarray(frame) for frame in videos.frames(made, 3, start, 0.6)]
    os.truncate(made, made.stat().st_size // 2)
    with pytest.raises(ImageError, match=r"its header says 2\.0 s|damaged after"):
        videos.frames(made, 3)
    assert all(np.array_equal(*each) for each in zip(videos.frames(made, 3, start, 0.6), right, strict=True))


def frames_or_reason(file: Path, most: int) -> list[np.ndarray] | str:
    try:
        return [np.asarray(frame) for frame in videos.frames(file, most)]
    except ImageError as error:
        return str(error)


def test_a_spoilt_end_is_seen_where_a_wanted_frame_is_in_it(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mkv", pictures(40), g=10, bf=0)
    right = [np.asarray(frame) for frame in videos.frames(made, 4)]
    content = made.read_bytes()
    made.write_bytes(content[:len(content) // 2] + b"\x55" * (len(content) // 4) + content[len(content) * 3 // 4:])
    found = frames_or_reason(made, 4)
    if isinstance(found, str):
        assert found.isprintable()
    else:
        assert all(np.array_equal(*each) for each in zip(found, right, strict=True))


def test_an_unknown_codec_is_said(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(3))
    made.write_bytes(made.read_bytes().replace(b"avc1", b"xyz1"))
    with pytest.raises(ImageError, match="unknown codec"):
        videos.frames(made, 5)


def test_broken_bytes_give_frames_or_a_reason(tmp_path: Path) -> None:
    content = encode(tmp_path / "a.mp4", pictures(12), bf=2).read_bytes()
    rng = np.random.default_rng(0)
    for number in range(60):
        broken = bytearray(content[:int(rng.integers(1, len(content)))] if number % 3 == 0 else content)
        for place in rng.integers(0, len(broken), 5):
            broken[place] = rng.integers(256)
        (tmp_path / "broken.mp4").write_bytes(broken)
        found = frames_or_reason(tmp_path / "broken.mp4", 5)
        assert found if not isinstance(found, str) else found.isprintable()


@pytest.mark.parametrize(("content", "reason"), [(b"", "empty"), (b"no video" * 99, "cannot be decoded as a video")])
def test_other_files(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.mp4").write_bytes(content)
    with pytest.raises(ImageError, match=reason):
        videos.frames(tmp_path / "a.mp4", 5)
    with pytest.raises(ImageError, match="no such file"):
        videos.frames(tmp_path / "b.mp4", 5)


def test_playlists_open_no_other_file(tmp_path: Path) -> None:
    encode(tmp_path / "secret.ts", pictures(5))
    for name, text in (("list.mp4", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.ts\n#EXT-X-ENDLIST\n"),
                       ("list.ffconcat", "ffconcat version 1.0\nfile secret.ts\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ImageError, match="cannot be decoded as a video"):
            videos.frames(tmp_path / name, 5)


def test_decoding_starts_no_threads(tmp_path: Path) -> None:
    """Codecs start as many as there are cores, in each worker and for each clip, unless they are told not to."""
    made = encode(tmp_path / "a.mp4", [picture(0, 640, 480)] * 30, bf=2)
    before, seen = threads(), []
    watch = threading.Event()

    def look() -> None:
        while not watch.wait(0.0005):
            seen.append(threads())

    watcher = threading.Thread(target=look)
    watcher.start()
    videos.frames(made, 5)
    watch.set()
    watcher.join()
    assert seen
    assert max(seen) <= before + 1


def threads() -> int:
    return len(os.listdir(f"/proc/{os.getpid()}/task"))


def test_a_strip_of_frames(tmp_path: Path) -> None:
    made = encode(tmp_path / "a.mp4", pictures(8))
    strip = GalleryFile(made, "video").picture()
    assert strip.info["columns"] == 2
    assert strip.size == (2 * 64 + 2, 2 * 48 + 2)
    corners = [(0, 0), (66, 0), (0, 50), (66, 50)]
    assert [number_of(strip.crop((x + 8, y + 8, x + 56, y + 40))) for x, y in corners] == [1, 3, 5, 7]
    assert GalleryFile(made, "video", 0.04, 0.12).title == "a.mp4, 0.04 s to 0.12 s"


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

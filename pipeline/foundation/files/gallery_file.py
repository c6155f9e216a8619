"""The file of a gallery item: a photograph, or a clip, which is a video file or a part of one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.foundation.files import containers, remote
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import refusing

if TYPE_CHECKING:
    from PIL import Image

Kind = Literal["image", "video"]
# Of all formats that `images.decode` reads, some of them with a package that decodes them.
IMAGE_SUFFIXES = {
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".png",
    ".apng",
    ".webp",
    ".gif",
    ".bmp",
    ".dib",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pnm",
    ".jp2",
    ".j2k",
    ".jpx",
    ".avif",
    ".heic",
    ".heif",
    ".ico",
}
VIDEO_SUFFIXES = {
    ".mp4",
    ".m4v",
    ".mov",
    ".mkv",
    ".webm",
    ".avi",
    ".mpg",
    ".mpeg",
    ".ts",
    ".flv",
    ".wmv",
    ".3gp",
    ".ogv",
}
STRIP = 4  # frames of a strip


@dataclass(frozen=True)
class GalleryFile:
    """A photograph, or a clip."""

    # Its path is kept as text: to make a `Path` takes longer than to ask the system about the file.

    place: str  # the file's path
    kind: Kind = "image"  # "image" or "video"
    start: float | None = (
        None  # seconds from the file's beginning at which a clip begins; None for the beginning
    )
    end: float | None = None  # seconds at which it ends; None for the file's end

    @classmethod
    def named(cls, path: Path) -> GalleryFile:
        """Make one of a whole file: a clip if its suffix is in `VIDEO_SUFFIXES`, else a
        photograph.
        """
        return cls(str(path), "video" if path.suffix.lower() in VIDEO_SUFFIXES else "image")

    @property
    def path(self) -> Path:
        """Its path."""
        return Path(self.place)

    @property
    def part(self) -> str:
        """Which part of a video file it is, "" for all of the file."""
        if self.start is None and self.end is None:
            return ""
        return f"{self.start or 0:g} s to {'the end' if self.end is None else f'{self.end:g} s'}"

    @property
    def title(self) -> str:
        """Its name for people."""
        if not self.part:
            return self.path.name
        return f"{self.path.name}, {self.part}"

    def content(self) -> bytes:
        """Read the file's bytes, also from a tar, Parquet or an object store; OSError if that is
        not possible.
        """
        within = containers.inside(self.place)
        if within is not None:
            return containers.opened(within[0]).read(within[1])
        return (
            remote.read_bytes(self.path) if remote.address(self.place) else self.path.read_bytes()
        )

    def changed_at(self) -> int | None:
        """The file's change time (ctime) in nanoseconds; for an image in a tar or Parquet, that
        file's change time.
        """
        # None for an object store, whose files count as unchanged while the manifest is. OSError if
        # the file is missing.
        within = containers.inside(self.place)
        place = self.place if within is None else within[0]
        return None if remote.address(place) else os.stat(place).st_ctime_ns

    def decoded(self) -> Image.Image:
        """Decode a photograph to RGB; ImageError if that is not possible."""
        from pipeline.foundation.files import images

        if self.path.is_file():
            return images.decode(self.path)
        with refusing(OSError, images.MISSING, images.ImageError):
            return images.decode(self.path, self.content())

    def picture(self) -> Image.Image:
        """Decode a picture for people: the photograph, or a few frames of the clip in rows, in the
        order of time.
        """
        # The strip's `info["columns"]` says how many frames are side by side. ImageError if it
        # cannot be decoded.
        if self.kind == "image":
            return self.decoded()
        return _strip(self.frames(STRIP))

    def frames(self, most: int) -> list[Image.Image]:
        """Decode frames, at least one, see `videos.frames`; a photograph is one frame. ImageError
        as `decoded`.
        """
        if self.kind == "image":
            return [self.decoded()]
        extras.require("video", "a clip", "av")
        from pipeline.foundation.files import videos

        return videos.frames(self.path, most, self.start, self.end)


def _strip(frames: list[Image.Image]) -> Image.Image:
    """Frames in rows of two with a narrow white gap, which fills a square better than one long
    row.
    """
    from PIL import Image

    if len(frames) == 1:
        return frames[0]
    (width, height) = frames[0].size
    gap = max(2, frames[0].width // 40)
    rows = -(-len(frames) // 2)
    strip = Image.new("RGB", (2 * width + gap, rows * height + gap * (rows - 1)), "white")
    for place, frame in enumerate(frames):
        strip.paste(frame, (place % 2 * (width + gap), place // 2 * (height + gap)))
    strip.info["columns"] = 2
    return strip

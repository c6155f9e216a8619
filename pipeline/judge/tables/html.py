"""HTML pages of one file each, which need no network: photographs are embedded, text from data is
escaped.

The page of search results is here; that of a run's results is in `page/`.
"""

import base64
import functools
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image

from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts.wrapping import printable

QUALITY = 70  # of WebP: about 4 kB at 128 pixels
# A script or style, which stays as it is, or the space before a percent sign.
PERCENT = re.compile(r"<(script|style)\b.*?</\1>|(?<=\d)\s+%", re.DOTALL)
SIDE = 320  # pixels, the longer side of a thumbnail among search results


def page(template: str, finalize: Callable[[Any], Any] | None = None, **shown: Any) -> str:
    """Fill a template, a file below `pipeline`. finalize: changes each value before it is escaped.

    Characters that are not shown (NUL, ESC, those that reverse text) become escapes such as \\x1b.
    No line ends within 5 %.
    """
    folder, _, name = template.rpartition("/")
    text = _environment(folder, finalize).get_template(name).render(shown)
    # Filters such as join give mark-up, which is not finalized: the whole page is made printable.
    lines = map(printable, text.split("\n"))
    return PERCENT.sub(_unbroken, "\n".join(lines))


@functools.lru_cache(maxsize=8)
def _environment(folder: str, finalize: Callable[[Any], Any] | None) -> Environment:
    """The templates of a folder below `pipeline`; each is compiled once, however many pages it
    fills.
    """
    return Environment(
        loader=PackageLoader("pipeline", folder),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=finalize,
    )


def _unbroken(match: re.Match[str]) -> str:
    """A script or style as it is; the space before a percent sign as one at which no line ends."""
    if match[1]:
        return match[0]
    return "\u00a0%"


def data_uri(image: Image.Image, side: int) -> str:
    """A `data:` address of a photograph as WebP, its longer side (of a strip, a frame's) at most so
    many pixels.
    """
    small = image.copy()
    largest = side * image.info.get("columns", 1)
    small.thumbnail((largest, largest), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.save(file, "WEBP", quality=QUALITY)
    encoded = base64.b64encode(file.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{encoded}"


def thumbnail(read: Callable[[], Image.Image], side: int) -> tuple[str, str]:
    """The `data:` address of a photograph, and why it cannot be shown; one of both is empty."""
    try:
        return data_uri(read(), side), ""
    except ImageError as error:
        return "", str(error)


@dataclass(frozen=True)
class Hit:
    """One search result."""

    rank: int  # its rank, from 1
    similarity: float  # its similarity to the query
    image_id: int  # the image's id in the manifest
    file: GalleryFile | None  # the photograph or clip; None for a caption that belongs to no image
    captions: Sequence[str]  # the image's captions
    found: str | None = None  # the caption that was found, None in a search for images


@dataclass(frozen=True)
class Section:
    """The results of one query, best first. query: its text or name as shown; image: the query, if
    it is an image.
    """

    query: str
    hits: Sequence[Hit]
    image: GalleryFile | None = None


def search(title: str, sections: Sequence[Section]) -> str:
    """The page of one query's results, or of several, a section each below a list of all."""
    return page(
        "judge/tables/search.html",
        title=title,
        sections=sections,
        thumbnail=lambda file: thumbnail(file.picture, SIDE),
    )

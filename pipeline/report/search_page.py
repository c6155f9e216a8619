"""The page of search results: one HTML file with thumbnails that needs no network. All text from data is escaped."""

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline.files.gallery_file import GalleryFile
from pipeline.report import examples

SIDE = 320  # pixels, the longer side of a thumbnail


@dataclass(frozen=True)
class Hit:
    """One search result."""

    rank: int  # its rank, from 1
    similarity: float  # its similarity to the query
    image_id: int  # the image's id in the manifest
    file: GalleryFile  # the photograph or clip
    captions: Sequence[str]  # the image's captions
    found: str | None = None  # the caption that was found, None in a search for images


@dataclass(frozen=True)
class Section:
    """The results of one query, best first. query: as it is shown; image: the query itself, where it is one."""

    query: str
    hits: Sequence[Hit]
    image: GalleryFile | None = None


def page(title: str, sections: Sequence[Section]) -> str:
    """The page of one query's results, or of several, a section each below a list of all."""
    environment = Environment(loader=PackageLoader("pipeline.report", "page"), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=StrictUndefined)
    return environment.get_template("search.html").render(
        title=title, sections=sections, thumbnail=lambda file: examples.thumbnail(file.picture, SIDE))

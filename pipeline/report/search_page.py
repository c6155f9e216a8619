"""The page of search results: one HTML file with thumbnails that needs no network. All text from data is escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pipeline.files import images
from pipeline.files.gallery_file import GalleryFile
from pipeline.report import examples

SIDE = 320  # pixels, the longer side of a thumbnail

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { border-top: 1px solid var(--line); font-size: 1.2rem; overflow-wrap: anywhere; padding-top: 1rem; }
nav { overflow-wrap: anywhere; }
.hits { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); }
.hits { list-style: none; padding: 0; }
.hits li { border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; }
img, .missing { aspect-ratio: 4 / 3; background: var(--line); display: block; object-fit: contain; width: 100%; }
.missing { display: grid; padding: 1rem; place-items: center; box-sizing: border-box; }
.query img { max-width: 20rem; }
.hits li div { padding: .5rem .75rem; overflow-wrap: anywhere; }
p { margin: .25rem 0; }
small { opacity: .75; }
"""


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
    if len(sections) == 1:
        content = _results(sections[0])
    else:
        links = "".join(f'<li><a href="#query-{number}">{escape(each.query)}</a></li>'
                        for number, each in enumerate(sections, start=1))
        content = f'<nav aria-label="Queries"><ol>{links}</ol></nav>\n' + "\n".join(
            f'<section id="query-{number}">\n<h2>{escape(each.query)}</h2>\n{_results(each)}\n</section>'
            for number, each in enumerate(sections, start=1))
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
            f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n{content}\n"
            f"</main>\n</body>\n</html>\n")


def _results(section: Section) -> str:
    shown = ""
    if section.image:
        shown = f'<figure class="query">{_picture(section.image, "The image that was searched with")}</figure>\n'
    items = "\n".join(_item(hit) for hit in section.hits)
    return f'{shown}<ol class="hits">\n{items}\n</ol>'


def _item(hit: Hit) -> str:
    others = "".join(f"<p>{escape(caption)}</p>" for caption in hit.captions if caption != hit.found)
    found = f"<p><strong>{escape(hit.found)}</strong></p>" if hit.found is not None else ""
    described = hit.found or next(iter(hit.captions), "") or f"Image {hit.image_id}"
    return (f"<li>{_picture(hit.file, described)}<div><small>{hit.rank}. similarity {hit.similarity:.3f}, image "
            f"{hit.image_id}, {escape(hit.file.title)}</small>{found}"
            + (f"<details{'' if found else ' open'}><summary>Captions</summary>{others}</details>" if others else "")
            + "</div></li>")


def _picture(file: GalleryFile, described: str) -> str:
    """The thumbnail, or the reason why there is none."""
    try:
        image = file.picture()
    except images.ImageError as error:
        reason = escape(f"{file.title}: {error}")
        return f'<div class="missing" role="img" aria-label="{escape(described)}">{reason}</div>'
    return f'<img src="{examples.data_uri(image, SIDE)}" alt="{escape(described)}">'

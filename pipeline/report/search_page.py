"""The page of search results: one HTML file with thumbnails that needs no network. All text from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pipeline.files import images
from pipeline.report import thumbnail

SIDE = 320  # pixels, the longer side of a thumbnail

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
ol { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); }
ol { list-style: none; padding: 0; }
li { border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; }
img, .missing { aspect-ratio: 4 / 3; background: var(--line); display: block; object-fit: contain; width: 100%; }
.missing { display: grid; padding: 1rem; place-items: center; box-sizing: border-box; }
.query img { max-width: 20rem; }
li div { padding: .5rem .75rem; overflow-wrap: anywhere; }
p { margin: .25rem 0; }
small { opacity: .75; }
"""


@dataclass(frozen=True)
class Hit:
    """One search result.

    Attributes:
        rank: Its rank, from 1.
        similarity: Its similarity to the query.
        image_id: The image's id in the manifest.
        file: The image file.
        captions: The image's captions.
        found: The caption that was found, None in a search for images.
    """

    rank: int
    similarity: float
    image_id: int
    file: Path
    captions: Sequence[str]
    found: str | None = None


def page(title: str, hits: Sequence[Hit], query_image: Path | None = None) -> str:
    """Render the page.

    Args:
        title: What was searched, and where.
        hits: The results, best first.
        query_image: The image that was searched with, if any.

    Returns:
        An HTML document.
    """
    shown = f'<figure class="query">{_picture(query_image, "The image that was searched with")}</figure>' \
        if query_image else ""
    items = "\n".join(_item(hit) for hit in hits)
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
            f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n{shown}\n"
            f"<ol>\n{items}\n</ol>\n</main>\n</body>\n</html>\n")


def _item(hit: Hit) -> str:
    others = "".join(f"<p>{escape(caption)}</p>" for caption in hit.captions if caption != hit.found)
    found = f"<p><strong>{escape(hit.found)}</strong></p>" if hit.found is not None else ""
    described = hit.found or next(iter(hit.captions), "") or f"Image {hit.image_id}"
    return (f"<li>{_picture(hit.file, described)}<div><small>{hit.rank}. similarity {hit.similarity:.3f}, image "
            f"{hit.image_id}, {escape(hit.file.name)}</small>{found}"
            + (f"<details{'' if found else ' open'}><summary>Captions</summary>{others}</details>" if others else "")
            + "</div></li>")


def _picture(file: Path, described: str) -> str:
    """The thumbnail, or the reason why there is none."""
    try:
        image = images.decode(file)
    except images.ImageError as error:
        reason = escape(f"{file.name}: {error}")
        return f'<div class="missing" role="img" aria-label="{escape(described)}">{reason}</div>'
    return f'<img src="{thumbnail.data_uri(image, SIDE)}" alt="{escape(described)}">'

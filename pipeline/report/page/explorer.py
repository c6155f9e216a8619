"""The data of explorer.js: queries with their ranks and first candidates under several systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.files.images import ImageError
from pipeline.report import names, thumbnail
from pipeline.report.examples import Gallery, digest_order, expected_ranks, top_candidates
from pipeline.report.networks import stand_ins_of
from pipeline.retrieval import rank
from pipeline.retrieval.similarity import Direction
from pipeline.settings import Report


def gather(galleries: Mapping[str, Gallery], settings: Report,
           progress: Callable[[str], object] = lambda what: None) -> dict[str, Any]:
    """Choose queries, and collect the images and captions that they need.

    The first `settings.queries` images by the SHA-256 digest of their file names are queries, and all their captions.

    Args:
        galleries: Name -> scored system.
        settings: Number of queries, number of candidates, side of a thumbnail in pixels.
        progress: Called with the file name before each thumbnail is made.

    Returns:
        JSON values. `systems`: names. `made`: what the systems are, in words. `total`: numbers of ranked images and
        captions. `images`: file, alt (its first caption, or the file name), thumb (a data URI, or null). `captions`:
        text and image. `t2i` and `i2t`: query, and by system its rank and its first candidates. Queries, images and
        candidates are positions in `images` and `captions`.

    Raises:
        InputError: If the systems do not rank the same images and captions.
    """
    first = _alike(galleries)
    rows = np.array(digest_order(first.files, np.unique(first.caption_image))[:settings.queries], np.int64)
    columns = np.flatnonzero(np.isin(first.caption_image, rows))
    images, captions = _Kept(), _Kept()
    ranks = [rank(each.scores, each.caption_image) for each in galleries.values()]
    by_caption = _answers(galleries, "t2i", [expected_ranks(each.t2i) for each in ranks], columns, settings.top)
    by_image = _answers(galleries, "i2t", [expected_ranks(each.i2t) for each in ranks], rows, settings.top)
    t2i = [{"query": captions(query), "ranks": of, "top": [list(map(images, places)) for places in found]}
           for query, of, found in by_caption]
    i2t = [{"query": images(query), "ranks": of, "top": [list(map(captions, places)) for places in found]}
           for query, of, found in by_image]
    owners = [images(row) for row in first.caption_image[captions.kept]]
    return {"systems": list(galleries), "made": _made(galleries),
            "total": {"images": len(first.files), "captions": len(first.captions)},
            "images": [_image(first, row, settings.thumbnail, progress) for row in images.kept],
            "captions": [{"text": first.captions[column], "image": owner}
                         for column, owner in zip(captions.kept, owners, strict=True)],
            "t2i": t2i, "i2t": i2t}


def _made(galleries: Mapping[str, Gallery]) -> dict[str, Any]:
    """Each system's features, the recipe, text encoder and seed that they share, and the stand-ins."""
    first = next(iter(galleries.values())).made_from
    return {"systems": {name: names.features(name) if name.isupper() else f"{name} alone" for name in galleries},
            "of": f"{names.method(first['recipe'])}, {names.encoder(first['text'])}, seed {first['seed']}",
            "stand_ins": stand_ins_of(member for gallery in galleries.values() for member in gallery.members)}


class _Kept:
    """The rows or columns that the page needs. Calling it with one returns its position on the page."""

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}

    def __call__(self, index: int) -> int:
        return self.positions.setdefault(int(index), len(self.positions))

    @property
    def kept(self) -> list[int]:
        return list(self.positions)


def _alike(galleries: Mapping[str, Gallery]) -> Gallery:
    first, *others = galleries.values()
    for other in others:
        if list(other.files) != list(first.files) or list(other.captions) != list(first.captions):
            raise InputError(f"{other.system}: ranks other images and captions than {first.system}; score both anew")
    return first


def _answers(galleries: Mapping[str, Gallery], way: Direction, ranks: Sequence[Mapping[int, float]],
             queries: np.ndarray, count: int) -> list[tuple[int, list[float], list[list[int]]]]:
    """Each query, its rank by system, and its first candidates by system."""
    places = [top_candidates(each.scores, way, queries, count).tolist() for each in galleries.values()]
    return [(query, [of[query] for of in ranks], [found[number] for found in places])
            for number, query in enumerate(queries.tolist())]


def _image(gallery: Gallery, row: int, size: int, progress: Callable[[str], object]) -> dict[str, Any]:
    progress(gallery.files[row])
    own = gallery.relevant("i2t", row)
    alt = gallery.captions[int(own[0])] if len(own) else ""
    return {"file": gallery.files[row], "alt": alt if alt.strip() else gallery.files[row],
            "thumb": _thumbnail(gallery, row, size)}


def _thumbnail(gallery: Gallery, row: int, size: int) -> str | None:
    """None where the photograph cannot be read any more."""
    try:
        return thumbnail.data_uri(gallery.open(row), size)
    except ImageError:
        return None

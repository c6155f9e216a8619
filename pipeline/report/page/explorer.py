"""The data of explorer.js: queries with their ranks and first candidates under several systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.files.images import ImageError
from pipeline.report import thumbnail
from pipeline.report.examples import Gallery, digest_order, expected_ranks, top_candidates
from pipeline.report.networks import STAND_IN, stand_ins_of
from pipeline.retrieval import rank
from pipeline.retrieval.similarity import Direction
from pipeline.settings import Report


def gather(galleries: Mapping[str, Gallery], default: tuple[str, str], settings: Report,
           progress: Callable[[str], object] = lambda what: None) -> dict[str, Any]:
    """Choose queries, and collect the images and captions that they need.

    The first `settings.queries` images by the SHA-256 digest of their file names are queries, and all their captions.

    Args:
        galleries: Name -> scored system.
        default: The two systems that are compared at first.
        settings: Number of queries, number of candidates, side of a thumbnail in pixels.
        progress: Called with the file name before each thumbnail is made.

    Returns:
        JSON values. `systems`: name and title. `default`: positions of two of them. `stand_ins`: in words. `total`:
        numbers of ranked images and captions. `images`: file, alt (its first caption, or the file name), thumb (a data
        URI, or null). `captions`: text and image. `t2i` and `i2t`: query, and by system its rank, the similarity of its
        best relevant candidate, its first candidates and their similarities. Queries, images and candidates are
        positions in `images` and `captions`. `ranks`: by direction the ids of all queries, and their ranks by system.

    Raises:
        InputError: If the systems do not rank the same images and captions.
    """
    first = _alike(galleries)
    rows = np.array(digest_order(first.files, np.unique(first.caption_image))[:settings.queries], np.int64)
    columns = np.flatnonzero(np.isin(first.caption_image, rows))
    images, captions = _Kept(), _Kept()
    ranks = [rank(each.scores, each.caption_image) for each in galleries.values()]
    of_captions, of_images = ([expected_ranks(each) for each in way] for way in zip(
        *((each.t2i, each.i2t) for each in ranks), strict=True))
    t2i = _answers(galleries, "t2i", of_captions, columns, settings.top, captions, images)
    i2t = _answers(galleries, "i2t", of_images, rows, settings.top, images, captions)
    owners = [images(row) for row in first.caption_image[captions.kept]]
    return {"systems": [{"name": name, "title": _title(gallery)} for name, gallery in galleries.items()],
            "default": [list(galleries).index(name) for name in default],
            "stand_ins": stand_ins_of(member for gallery in galleries.values() for member in gallery.members),
            "total": {"images": len(first.files), "captions": len(first.captions)},
            "images": [_image(first, row, settings.thumbnail, progress) for row in images.kept],
            "captions": [{"text": first.captions[column], "image": owner}
                         for column, owner in zip(captions.kept, owners, strict=True)],
            "t2i": t2i, "i2t": i2t,
            "ranks": {"t2i": _all_ranks(first.caption_ids, of_captions), "i2t": _all_ranks(first.image_ids, of_images)}}


def _title(gallery: Gallery) -> str:
    return f"{gallery.title} {STAND_IN}" if stand_ins_of(gallery.members) else gallery.title


def _all_ranks(ids: np.ndarray | None, ranks: Sequence[Mapping[int, float]]) -> dict[str, Any]:
    """Every query's id, and its rank by system."""
    queries = sorted(ranks[0])
    return {"ids": [query if ids is None else int(ids[query]) for query in queries],
            "systems": [[round(of[query], 2) for query in queries] for of in ranks]}


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
             queries: np.ndarray, count: int, asked: _Kept, candidates: _Kept) -> list[dict[str, Any]]:
    """Each query, and what each system answers."""
    found = [top_candidates(each.scores, way, queries, count, each.caption_image) for each in galleries.values()]
    return [{"query": asked(query), "ranks": [of[query] for of in ranks],
             "own": [_short(top.relevant[number]) for top in found],
             "top": [list(map(candidates, top.places[number])) for top in found],
             "similarity": [list(map(_short, top.similarity[number])) for top in found]}
            for number, query in enumerate(queries.tolist())]


def _short(similarity: float) -> float:
    return float(f"{similarity:.4g}")


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

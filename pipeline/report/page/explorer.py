"""The data of explorer.js: all queries with their ranks under several systems, and some with their
candidates.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, permutations, zip_longest
from typing import Any

import numpy as np

from pipeline.evaluation.retrieval import Direction, rank
from pipeline.evaluation.retrieval.top import best_of_each
from pipeline.parts.errors import InputError
from pipeline.report import html
from pipeline.report.examples import Gallery, digest_order, expected_ranks, top_candidates
from pipeline.report.names import STAND_IN, stand_ins
from pipeline.settings import Report
from pipeline.systems.scores.reranked import Folded


def kept_images(
    files: Sequence[str],
    owners: Sequence[np.ndarray],
    ranks: Sequence[np.ndarray],
    default: tuple[int, int],
    count: int,
    top: int,
) -> np.ndarray:
    """Choose rows of images, int64, by three rules and not by hand.

    owners and ranks: by direction, the row of each query's image, int64 [Q], and its rank by
    system, float [S, Q].

    A quarter are images whose queries most systems miss. Half are images whose queries gain most
    from one system to another, in turn for every two systems (the default two first) and both
    directions. The rest, and what a rule does not use up, are the first by the SHA-256 digests of
    their file names.
    """
    order = digest_order(files, np.unique(np.concatenate(list(owners))))
    pairs = sorted(
        permutations(range(len(ranks[0])), 2), key=lambda pair: set(pair) != set(default)
    )
    ways = list(zip(owners, ranks, strict=True))
    missed = (
        _largest(owner, (of > top).sum(axis=0) + of.mean(axis=0) / (1 + of.max()), 1.0, count)
        for owner, of in ways
    )
    gains = (
        _largest(owner, of[before] - of[after], 0.0, count)
        for before, after in pairs
        for owner, of in ways
    )
    chosen: dict[int, None] = {}
    _keep(chosen, order, count - count // 2 - count // 4)
    _keep(chosen, chain.from_iterable(zip_longest(*missed)), len(chosen) + count // 4)
    _keep(chosen, chain.from_iterable(zip_longest(*gains)), count)
    _keep(chosen, order, count)
    return np.array(list(chosen), np.int64)


def _keep(chosen: dict[int, None], rows: Iterable[int | None], most: int) -> None:
    """Add rows until there are `most`. None is skipped: `zip_longest` gives it for lists that have
    ended.
    """
    for row in rows:
        if len(chosen) >= most:
            return
        if row is not None:
            chosen.setdefault(row)


def _largest(owner: np.ndarray, value: np.ndarray, above: float, count: int) -> Iterator[int]:
    """Rows of the images whose queries have a value above this, the largest first."""
    first = best_of_each(np.zeros(len(value), np.int64), value, np.arange(len(value)), count)
    yield from owner[first[value[first] > above]].tolist()


def gather(
    galleries: Mapping[str, Gallery],
    default: tuple[str, str],
    settings: Report,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """Collect the ranks of all queries, and for some queries their best images and captions.

    JSON values. `systems`: name, title and, for a reranked one, the position of its retriever
    (`before`, or null).
    `default`: positions of the two shown first. `stand_ins`: in words. `top`: how many candidates
        are kept. `whole`: whether they are kept for all queries. `judged`: whether a caption may
        have other right images than its own.
    `languages`: tags; empty where captions have none. `files`: all file names. `queries`: by
        direction all queries: ids, captions' texts and languages (positions in `languages`) or
        images' positions in `files`, the right images of each caption (positions in `files`), and
        ranks by system. `thumbnail`: pixels of a thumbnail's longer side at most.
    `images`: file, alt (its first right caption, or the file name), thumb (a data URI, or null).
        `captions`: text and language. `t2i` and `i2t`: the queries whose candidates are kept, those
        of `settings.queries` images and their captions (`kept_images`): number (a position in
        `queries`), query, right candidates (the best, the first `top` and all that were found), and
        by system the similarity of its best relevant candidate, its first candidates and their
        similarities; similarities are null for a reranked system, which only orders. Query and
        candidates are positions in `images` and `captions`.
    """
    first = _alike(galleries)
    images, captions = _Kept(), _Kept()
    ranks = [rank(each.pool.scores, each.truth) for each in galleries.values()]
    of_captions, of_images = (
        [expected_ranks(each) for each in way]
        for way in zip(*((each.t2i, each.i2t) for each in ranks), strict=True)
    )
    asked = {
        "t2i": np.array(sorted(of_captions[0]), np.int64),
        "i2t": np.array(sorted(of_images[0]), np.int64),
    }
    position = {name: place for place, name in enumerate(galleries)}
    compared = position[default[0]], position[default[1]]
    pool = first.pool
    languages = [] if pool.languages is None else sorted(set(pool.languages.tolist()))
    place = None if pool.languages is None else np.searchsorted(languages, pool.languages)
    every = {
        "t2i": _queries(asked["t2i"], pool.caption_ids, of_captions),
        "i2t": _queries(asked["i2t"], pool.image_ids, of_images),
    }
    every["t2i"] |= {
        "texts": [first.captions[column] for column in asked["t2i"].tolist()],
        "right": [first.relevant("t2i", column).tolist() for column in asked["t2i"].tolist()],
        "languages": None if place is None else place[asked["t2i"]].tolist(),
    }
    every["i2t"]["files"] = asked["i2t"].tolist()
    owner = first.truth.drawn_with
    rows = kept_images(
        first.files,
        (owner[asked["t2i"]], asked["i2t"]),
        [np.array(every[way]["ranks"]) for way in asked],
        compared,
        settings.queries,
        settings.top,
    )
    of_kept = {
        "t2i": np.flatnonzero(np.isin(owner[asked["t2i"]], rows)),
        "i2t": np.searchsorted(asked["i2t"], rows[np.isin(rows, asked["i2t"])]),
    }
    t2i = _answers(galleries, "t2i", asked["t2i"], of_kept["t2i"], settings.top, captions, images)
    i2t = _answers(galleries, "i2t", asked["i2t"], of_kept["i2t"], settings.top, images, captions)
    return {
        "judged": pool.relevance is not None,
        "languages": languages,
        "files": list(first.files),
        "systems": [
            {
                "name": name,
                "title": gallery.title + f" {STAND_IN}" * bool(stand_ins(gallery.members)),
                "before": position.get(gallery.retriever or ""),
            }
            for name, gallery in galleries.items()
        ],
        "default": list(compared),
        "top": settings.top,
        "queries": every,
        "whole": all(len(of_kept[way]) == len(asked[way]) for way in asked),
        "stand_ins": stand_ins(
            member for gallery in galleries.values() for member in gallery.members
        ),
        **_images(first, images.kept, settings.thumbnail, progress),
        "captions": [
            {
                "text": first.captions[column],
                "language": None if place is None else int(place[column]),
            }
            for column in captions.kept
        ],
        "t2i": t2i,
        "i2t": i2t,
    }


def _queries(
    queries: np.ndarray, ids: np.ndarray, ranks: Sequence[Mapping[int, float]]
) -> dict[str, Any]:
    """Every query's id, and its rank by system."""
    return {
        "ids": ids[queries].tolist(),
        "ranks": [[round(of[query], 2) for query in queries.tolist()] for of in ranks],
    }


class _Kept:
    """The rows or columns that the page needs. Calling it with one returns its position on the
    page.
    """

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}

    def __call__(self, index: int) -> int:
        return self.positions.setdefault(int(index), len(self.positions))

    @property
    def kept(self) -> list[int]:
        return list(self.positions)


def _alike(galleries: Mapping[str, Gallery]) -> Gallery:
    first, *rest = galleries.values()
    for other in rest:
        if list(other.files) != list(first.files) or list(other.captions) != list(first.captions):
            raise InputError(
                f"{other.pool.name}: ranks other items than {first.pool.name}; score both again"
            )
    return first


def _answers(
    galleries: Mapping[str, Gallery],
    way: Direction,
    every: np.ndarray,
    numbers: np.ndarray,
    count: int,
    asked: _Kept,
    candidates: _Kept,
) -> list[dict[str, Any]]:
    """Each kept query with its position among all, the right candidates, and each system's first
    candidates.
    """
    queries = every[numbers]
    tops = [
        top_candidates(each.pool.scores, way, queries, count, each.right(way))
        for each in galleries.values()
    ]
    reranked = [isinstance(each.pool.scores, Folded) for each in galleries.values()]
    answers = []
    for place, (number, query) in enumerate(zip(numbers.tolist(), queries.tolist(), strict=True)):
        right = next(iter(galleries.values())).relevant(way, query)
        seen = np.concatenate(
            [
                [top.best[place] for top in tops],
                right[:count],
                *(np.intersect1d(top.places[place], right) for top in tops),
            ]
        )
        shown = list(dict.fromkeys(seen.tolist()))
        answers.append(
            {
                "number": number,
                "query": asked(query),
                "right": list(map(candidates, shown)),
                "own": [
                    None if order else _short(top.relevant[place])
                    for top, order in zip(tops, reranked, strict=True)
                ],
                "top": [list(map(candidates, top.places[place])) for top in tops],
                "similarity": [
                    [None if order else _short(each) for each in top.similarity[place]]
                    for top, order in zip(tops, reranked, strict=True)
                ],
            }
        )
    return answers


def _short(similarity: float) -> float:
    return float(f"{similarity:.4g}")


ESTIMATED = 100  # images
# characters of all thumbnails: the page of COCO's 25,000 queries then has less than 12 MB
THUMBNAILS = 9_000_000


def _images(
    gallery: Gallery, rows: Sequence[int], size: int, progress: Callable[[str], object]
) -> dict[str, Any]:
    """Images with thumbnails, the longer side `size` pixels, or fewer if all would take more than
    THUMBNAILS.
    """
    some = [_image(gallery, row, size, progress) for row in rows[:: max(1, len(rows) // ESTIMATED)]]
    taken = sum(len(image["thumb"] or "") for image in some) * len(rows) / max(1, len(some))
    if taken > THUMBNAILS:
        size = max(16, int(size * (THUMBNAILS / taken) ** 0.6))
    return {"thumbnail": size, "images": [_image(gallery, row, size, progress) for row in rows]}


def _image(
    gallery: Gallery, row: int, size: int, progress: Callable[[str], object]
) -> dict[str, Any]:
    progress(gallery.files[row])
    relevant = gallery.relevant("i2t", row)
    alt = gallery.captions[int(relevant[0])] if len(relevant) else ""
    thumb, _ = html.thumbnail(lambda: gallery.open(row), size)
    return {
        "file": gallery.files[row],
        "alt": alt if alt.strip() else gallery.files[row],
        "thumb": thumb or None,
    }

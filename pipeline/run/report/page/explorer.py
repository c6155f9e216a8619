"""The data of explorer.js: all queries with their ranks under several systems, and some with their
candidates.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations, zip_longest
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, rank
from pipeline.foundation.evaluation.retrieval.top import best_of_each
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Report
from pipeline.judge.systems.scores.reranked import Folded
from pipeline.judge.tables import html
from pipeline.run.report.examples import Gallery, Top, digest_order, expected_ranks, top_candidates
from pipeline.run.report.names import STAND_IN, stand_ins


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

    A quarter are images whose queries most systems miss. Half are images for whose queries 1/rank
    rises most from one system to another, in turn for every two systems (the default two first)
    and both directions. The rest, and what a rule does not use up, are the first by the SHA-256
    digests of their file names.
    """
    order = digest_order(files, np.unique(np.concatenate(list(owners))))
    systems = range(len(ranks[0]))
    pairs = sorted(permutations(systems, 2), key=lambda pair: set(pair) != set(default))
    missed = []
    for owner, of_way in zip(owners, ranks, strict=True):
        misses = (of_way > top).sum(axis=0) + of_way.mean(axis=0) / (1 + of_way.max())
        missed.append(_largest(owner, misses, 1.0, count))
    gains = []
    for before, after in pairs:
        for owner, of_way in zip(owners, ranks, strict=True):
            gain = 1 / of_way[after] - 1 / of_way[before]
            gains.append(_largest(owner, gain, 0.0, count))
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
    query_numbers = np.arange(len(value))
    largest_values = best_of_each(np.zeros(len(value), np.int64), value, query_numbers, count)
    yield from owner[largest_values[value[largest_values] > above]].tolist()


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
    first_gallery = _alike(galleries)
    pool = first_gallery.pool
    relevance = first_gallery.truth
    positions = {name: place for place, name in enumerate(galleries)}
    compared = (positions[default[0]], positions[default[1]])
    ranks = [rank(gallery.pool.scores, gallery.truth) for gallery in galleries.values()]
    of_captions = [expected_ranks(of_system.t2i) for of_system in ranks]
    of_images = [expected_ranks(of_system.i2t) for of_system in ranks]
    columns = np.array(sorted(of_captions[0]), np.int64)
    rows = np.array(sorted(of_images[0]), np.int64)
    tags, language = _languages(pool.languages)
    queries = {
        "t2i": _queries(columns, pool.caption_ids, of_captions),
        "i2t": _queries(rows, pool.image_ids, of_images),
    }
    caption_columns = columns.tolist()
    queries["t2i"]["texts"] = [first_gallery.captions[column] for column in caption_columns]
    queries["t2i"]["right"] = [
        first_gallery.relevant("t2i", column).tolist() for column in caption_columns
    ]
    queries["t2i"]["languages"] = None
    if language is not None:
        queries["t2i"]["languages"] = language[columns].tolist()
    queries["i2t"]["files"] = rows.tolist()
    owner = relevance.drawn_with[columns]
    chosen = kept_images(
        first_gallery.files,
        (owner, rows),
        [np.array(queries[way]["ranks"]) for way in ("t2i", "i2t")],
        compared,
        settings.queries,
        settings.top,
    )
    numbers_t2i = np.flatnonzero(np.isin(owner, chosen))
    numbers_i2t = np.searchsorted(rows, chosen[np.isin(chosen, rows)])
    images = _Shown()
    captions = _Shown()
    t2i = _Answers(galleries, "t2i", settings.top, captions, images)
    i2t = _Answers(galleries, "i2t", settings.top, images, captions)
    answers = {"t2i": t2i.of(columns, numbers_t2i), "i2t": i2t.of(rows, numbers_i2t)}
    page_captions = []
    for column in captions.items:
        tag = None
        if language is not None:
            tag = int(language[column])
        page_captions.append({"text": first_gallery.captions[column], "language": tag})
    members = chain.from_iterable(gallery.members for gallery in galleries.values())
    is_whole = len(numbers_t2i) == len(columns) and len(numbers_i2t) == len(rows)
    return {
        "judged": pool.relevance is not None,
        "languages": tags,
        "files": list(first_gallery.files),
        "systems": _systems(galleries, positions),
        "default": list(compared),
        "top": settings.top,
        "queries": queries,
        "whole": is_whole,
        "stand_ins": stand_ins(members),
        **_images(first_gallery, images.items, settings.thumbnail, progress),
        "captions": page_captions,
        **answers,
    }


def _languages(languages: np.ndarray | None) -> tuple[list[str], np.ndarray | None]:
    """The tags of captions' languages, and the position of each caption's; [] and None without."""
    if languages is None:
        return [], None
    tags = sorted(set(languages.tolist()))
    return tags, np.searchsorted(tags, languages)


def _systems(
    galleries: Mapping[str, Gallery], positions: Mapping[str, int]
) -> list[dict[str, Any]]:
    systems = []
    for name, gallery in galleries.items():
        title = gallery.title
        if stand_ins(gallery.members):
            title += f" {STAND_IN}"
        before = positions.get(gallery.retriever or "")
        systems.append({"name": name, "title": title, "before": before})
    return systems


def _queries(
    queries: np.ndarray, ids: np.ndarray, ranks: Sequence[Mapping[int, float]]
) -> dict[str, Any]:
    """Every query's id, and its rank by system."""
    rounded = []
    for of_system in ranks:
        rounded.append([round(of_system[query], 2) for query in queries.tolist()])
    return {"ids": ids[queries].tolist(), "ranks": rounded}


class _Shown:
    """The rows or columns that the page needs. Calling it with one returns its position on the
    page.
    """

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}

    def __call__(self, index: int) -> int:
        return self.positions.setdefault(int(index), len(self.positions))

    @property
    def items(self) -> list[int]:
        return list(self.positions)


def _alike(galleries: Mapping[str, Gallery]) -> Gallery:
    first_gallery, *other_galleries = galleries.values()
    files = list(first_gallery.files)
    captions = list(first_gallery.captions)
    for other_gallery in other_galleries:
        if list(other_gallery.files) != files or list(other_gallery.captions) != captions:
            raise InputError(
                f"{other_gallery.pool.name}: ranks other items than {first_gallery.pool.name}; score both again"
            )
    return first_gallery


@dataclass(frozen=True)
class _Answers:
    """What the page shows of the chosen queries of one direction."""

    galleries: Mapping[str, Gallery]
    way: Direction
    count: int  # how many candidates of a system are shown
    asked: _Shown
    candidates: _Shown

    def of(self, queries: np.ndarray, numbers: np.ndarray) -> list[dict[str, Any]]:
        """Each chosen query with its position among all, the right candidates, and each system's
        first candidates.
        """
        chosen = queries[numbers]
        tops = []
        for gallery in self.galleries.values():
            right = gallery.right(self.way)
            tops.append(top_candidates(gallery.pool.scores, self.way, chosen, self.count, right))
        first = next(iter(self.galleries.values()))
        answers = []
        for place, (number, query) in enumerate(
            zip(numbers.tolist(), chosen.tolist(), strict=True)
        ):
            relevant = first.relevant(self.way, query)
            answer = {"number": number, "query": self.asked(query)}
            answers.append(answer | self._candidates(place, relevant, tops))
        return answers

    def _candidates(self, place: int, relevant: np.ndarray, tops: Sequence[Top]) -> dict[str, Any]:
        """The candidates of the query in this place among the chosen."""
        seen = [top.best[place] for top in tops]
        seen += relevant[: self.count].tolist()
        for top in tops:
            seen += np.intersect1d(top.places[place], relevant).tolist()
        right = [self.candidates(candidate) for candidate in dict.fromkeys(map(int, seen))]
        own: list[float | None] = []
        shown = []
        similarity: list[list[float | None]] = []
        for gallery, top in zip(self.galleries.values(), tops, strict=True):
            shown.append([self.candidates(candidate) for candidate in top.places[place]])
            # A reranked system only orders its candidates.
            if isinstance(gallery.pool.scores, Folded):
                own.append(None)
                similarity.append([None] * len(top.places[place]))
            else:
                own.append(_short(top.relevant[place]))
                similarity.append([_short(score) for score in top.similarity[place]])
        return {"right": right, "own": own, "top": shown, "similarity": similarity}


def _short(similarity: float) -> float:
    return float(f"{similarity:.4g}")


ESTIMATED = 100  # images
# Characters of all thumbnails: the page of COCO's 25,000 queries then has less than 12 MB.
THUMBNAILS = 9_000_000


def _images(
    gallery: Gallery, rows: Sequence[int], size: int, progress: Callable[[str], object]
) -> dict[str, Any]:
    """Images with thumbnails, the longer side `size` pixels, or fewer if all would take more than
    THUMBNAILS.
    """
    step = max(1, len(rows) // ESTIMATED)
    estimated_images = [_image(gallery, row, size, progress) for row in rows[::step]]
    characters = sum(len(image["thumb"] or "") for image in estimated_images)
    estimated_characters = characters * len(rows) / max(1, len(estimated_images))
    if estimated_characters > THUMBNAILS:
        size = max(16, int(size * (THUMBNAILS / estimated_characters) ** 0.6))
    images = [_image(gallery, row, size, progress) for row in rows]
    return {"thumbnail": size, "images": images}


def _image(
    gallery: Gallery, row: int, size: int, progress: Callable[[str], object]
) -> dict[str, Any]:
    file = gallery.files[row]
    progress(file)
    alt = file
    relevant = gallery.relevant("i2t", row)
    if len(relevant):
        caption = gallery.captions[int(relevant[0])]
        if caption.strip():
            alt = caption
    thumb, _ = html.thumbnail(lambda: gallery.open(row), size)
    return {"file": file, "alt": alt, "thumb": thumb or None}

"""Queries shown one by one: which, what they retrieve, and whether it is right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pipeline.errors import InputError
from pipeline.files.images import decode
from pipeline.manifest import Manifest
from pipeline.provenance.head_record import Member
from pipeline.retrieval import PerDirection, QueryRanks, Similarity, rank
from pipeline.retrieval.similarity import Direction
from pipeline.scores.similarity_store import SimilarityStore

WORDS: dict[Direction, dict[str, str]] = {
    "t2i": {"query": "caption", "first": "found the right image first", "missed": "did not find it among the first",
            "none missed": "every one found it among the first", "texts": "the captions"},
    "i2t": {"query": "image", "first": "found a right caption first", "missed": "found none among the first",
            "none missed": "every one found one among the first", "texts": "the images' file names"},
}
CELLS = 16_000_000  # similarities held at once


@dataclass(frozen=True)
class Gallery:
    """A system's scores with what its rows and columns look like.

    Attributes:
        system: its name.
        scores: [I images, C captions].
        caption_image: int64 [C], each caption's image as a row.
        captions: [C] texts; files: [I] file names.
        open: from a row to that image, decoded. Raises ImageError where the file cannot be read any more.
        made_from: what the store says of itself, its recipe, text encoder, seed and members.
    """

    system: str
    scores: Similarity | PerDirection = field(repr=False)
    caption_image: np.ndarray = field(repr=False)
    captions: Sequence[str] = field(repr=False)
    files: Sequence[str] = field(repr=False)
    open: Callable[[int], Image.Image] = field(repr=False)
    made_from: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, store: SimilarityStore, manifest: Manifest, images_folder: Path) -> Gallery:
        """A scored system, shown with the manifest's captions and the photographs in a folder.

        Raises InputError where it was scored on another manifest.
        """
        if store.made_from["manifest"] != manifest.digest:
            raise InputError(f"{store.path}: was scored with another manifest than is there now; score it again")
        texts = dict(zip(manifest.table["caption_id"].tolist(), manifest.table["caption"].tolist(), strict=True))
        names = dict(zip(manifest.images["image_id"].tolist(), manifest.images["file"].tolist(), strict=True))
        files = [names[image] for image in store.image_ids.tolist()]
        return cls(store.path.stem, store.scores, store.caption_image,
                   [texts[caption] for caption in store.caption_ids.tolist()], files,
                   lambda row: decode(images_folder / files[row]), store.made_from)

    @property
    def members(self) -> tuple[Member, ...]:
        """The heads behind it. Raises InputError where it was scored before scores said this."""
        try:
            return tuple(Member.of(entry) for entry in self.made_from["members"])
        except (KeyError, TypeError):
            raise InputError(f"{self.system}: does not say which networks made it; run `pipeline score` again, and its "
                             "ensembles") from None

    def right(self, direction: Direction, query: int) -> np.ndarray:
        """What is right for a query: rows of images (t2i) or columns of captions (i2t)."""
        if direction == "t2i":
            return self.caption_image[query:query + 1]
        return np.flatnonzero(self.caption_image == query)


@dataclass(frozen=True)
class Example:
    """One query: its rank (from 1, ties by expectation), and the candidates in first to last place shown."""

    query: int
    rank: float
    shown: tuple[int, ...]


def examples(gallery: Gallery, direction: Direction, each: int, shown: int) -> tuple[list[Example], list[Example]]:
    """Successes (the right one comes first) and failures (it is not among the `shown` first), at most `each`.

    Of either, those are taken that come first by `digest_order`.
    """
    ranks = rank(gallery.scores, gallery.caption_image)
    queries = ranks.t2i if direction == "t2i" else ranks.i2t
    order = digest_order([gallery.captions, gallery.files][direction == "i2t"], queries.query)
    of = expected(queries)

    def shown_for(chosen: list[int]) -> list[Example]:
        places = top(gallery.scores, direction, np.array(chosen, np.int64), shown).tolist()
        return [Example(query, of[query], tuple(row)) for query, row in zip(chosen, places, strict=True)]

    return (shown_for([query for query in order if of[query] == 1][:each]),
            shown_for([query for query in order if of[query] > shown][:each]))


def how_chosen(direction: Direction, successes: Sequence[Example], failures: Sequence[Example], shown: int) -> str:
    """A sentence for a caption on how `examples` chose."""
    w = WORDS[direction]
    queries = [f"the first {len(found)} {w['query']}{'s' * (len(found) > 1)} that {how}"
               for found, how in ((successes, w["first"]), (failures, f"{w['missed']} {shown}")) if found]
    if not successes:
        queries.append(f"no others, as none {w['first']}")
    if not failures:
        queries.append(f"no others, as {w['none missed']} {shown}")
    return f"Not picked by hand: {' and '.join(queries)}; in the order of the SHA-256 digests of {w['texts']}."


def expected(queries: QueryRanks) -> dict[int, float]:
    """Query -> its rank, from 1, ties by their exact expectation."""
    return dict(zip(queries.query.tolist(), queries.ranks().tolist(), strict=True))


def digest_order(texts: Sequence[str], queries: np.ndarray) -> list[int]:
    """The queries in the order of the SHA-256 digests of their texts; equal texts by position."""
    return sorted(queries.tolist(), key=lambda query: (hashlib.sha256(texts[query].encode()).digest(), query))


def top(scores: Similarity | PerDirection, direction: Direction, queries: np.ndarray, count: int) -> np.ndarray:
    """The most similar candidates of each query [Q], the best first, ties by position: int64 [Q, count or all]."""
    source = scores.direction(direction, CELLS * 4) if isinstance(scores, PerDirection) else scores
    candidates = source.shape[0 if direction == "t2i" else 1]
    places = np.empty((len(queries), min(count, candidates)), np.int64)
    at_once = max(1, CELLS // candidates)
    for start in range(0, len(queries), at_once):
        part = queries[start:start + at_once]
        block = source.block(slice(0, candidates), part).T if direction == "t2i" else source.block(
            part, slice(0, candidates))
        places[start:start + at_once] = (-block).argsort(axis=1, kind="stable")[:, :count]
    return places

"""Captions that several images have, in one collection or in two."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from pipeline.studies.audit.collection import Collection

WORDS = re.compile(r"\w+")


class EqualCaptions(NamedTuple):
    """Captions that images of both collections have; of one collection beside itself, that several of its images have.

    Attributes:
        texts: Each text once, that of most images first: its words, and the rows of its images in both collections.
        captions: How many captions of the first collection are among them.
    """

    texts: list[tuple[str, list[int], list[int]]]
    captions: int


def equal_captions(one: Collection, other: Collection) -> EqualCaptions:
    """Find equal captions. Capital letters, punctuation and blanks are not compared.

    Args:
        one: The first collection.
        other: The second collection, or the same object.

    Returns:
        The texts, as the first image has them.
    """
    first, second = _images(one), _images(other)
    alone = one is other
    shared = [key for key in first if (len(first[key]) > 1 if alone else key in second)]
    shared.sort(key=lambda key: (-len(first[key]) - len(second[key]), key))
    known = set(shared)
    count = sum(_plain(caption) in known for caption in one.captions)
    return EqualCaptions([(key, sorted(first[key]), sorted(second[key])) for key in shared], count)


def _images(collection: Collection) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for caption, image in zip(collection.captions, collection.caption_image.tolist(), strict=True):
        if key := _plain(caption):
            found[key].add(image)
    return found


def _plain(caption: str) -> str:
    return " ".join(WORDS.findall(caption.casefold()))

"""Pairs of images that are one photograph, by their names or contents, or that look alike."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipeline.studies.audit import fingerprints
from pipeline.studies.audit.collection import Collection, photograph
from pipeline.studies.audit.fingerprints import Fingerprints

NAME, CONTENT, LOOK = "photo number", "content", "look"
UNLIKE = 64
"""Images that differ in more of 256 bits are not taken for one photograph because of a number alone: anybody may number
files. Copies differ in few bits, other photographs in about half."""


class Pair(NamedTuple):
    """Two images."""

    one: int  # row in the first collection
    other: int  # row in the second one
    by: str  # how they were found: NAME, CONTENT or LOOK
    bits: int = 0  # for LOOK, in how many of 256 bits they differ; likewise for doubtful pairs by NAME


class Shared(NamedTuple):
    """What two collections have in common.

    Attributes:
        certain: Pairs of one photograph, by number or content.
        doubtful: Further pairs that look alike, the most alike first; then those of one number that look different.
    """

    certain: list[Pair]
    doubtful: list[Pair]


def find(one: Collection, other: Collection, prints: tuple[Fingerprints, Fingerprints], most_bits: int) -> Shared:
    """Find the pairs of images that two collections share. A collection beside itself: its own pairs, each once.

    Args:
        one: The first collection.
        other: The second collection, or the same object.
        prints: Fingerprints of both.
        most_bits: Images look alike if they differ in at most so many of 256 bits.

    Returns:
        The pairs.
    """
    alone = one is other
    by_name = _equal([photograph(file) for file in one.files], [photograph(file) for file in other.files])
    by_content = _equal([each or None for each in prints[0].content], [each or None for each in prints[1].content])
    certain: dict[tuple[int, int], Pair] = {}
    for kind, pairs in ((NAME, by_name), (CONTENT, by_content)):
        for row, column in pairs:
            if not alone or row < column:
                certain.setdefault((row, column), Pair(row, column, kind))
    alike = (Pair(row, column, LOOK, bits) for row, column, bits in fingerprints.alike(*prints, most_bits, alone))
    doubtful = [pair for pair in alike if pair[:2] not in certain]
    doubtful += [unlike for pair in certain.values() if (unlike := _unlike(pair, *prints))]
    for pair in doubtful:
        certain.pop(pair[:2], None)
    return Shared([certain[key] for key in sorted(certain)], sorted(doubtful, key=lambda pair: (pair.bits, pair)))


def _unlike(pair: Pair, one: Fingerprints, other: Fingerprints) -> Pair | None:
    """The pair with its bits where one number names two images that look different; None for other pairs."""
    if pair.by != NAME or one.content[pair.one] == other.content[pair.other] \
            or not (one.is_seen[pair.one] and other.is_seen[pair.other]):
        return None
    bits = int(np.bitwise_count(one.look[pair.one] ^ other.look[pair.other]).sum())
    return pair._replace(bits=bits) if bits > UNLIKE else None


def _equal(one: list[str | None], other: list[str | None]) -> Iterator[tuple[int, int]]:
    rows: dict[str | None, list[int]] = defaultdict(list)
    for row, value in enumerate(one):
        rows[value].append(row)
    for column, value in enumerate(other):
        if value is not None:
            yield from ((row, column) for row in rows.get(value, ()))


# Captions that several images have, in one collection or in two.
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

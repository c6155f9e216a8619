"""Pairs of images that are one photograph, by their names or contents, or that look alike."""

from __future__ import annotations

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

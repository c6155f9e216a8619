"""What two collections of images have in common: the same photographs, images that look alike,
equal captions.

A photograph is recognised by the number in its files' names, or by its content.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pipeline.extensions.audit import fingerprints
from pipeline.extensions.audit.collection import Collection
from pipeline.extensions.audit.fingerprints import Among, Fingerprints
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest.photo_numbers import photograph
from pipeline.judge.tables import html

# How a pair was found.
NAME = "photo number"
CONTENT = "content"
LOOK = "look"
# Images with one number that differ in more than so many of 256 bits do not count as one
# photograph: anybody may number files. Copies differ in few bits, other photographs in about half.
UNLIKE = 64
TEXTS = 100  # equal captions that the report lists, those of most images first
SIDE = 240  # pixels of an image on the page
FEW = 100  # the most pairs of copies of one image of which all are listed
SHOWN = 100  # pairs of each kind on the page, about 8 kB each
WORDS = re.compile(r"\w+")


class Pair(NamedTuple):
    """Two images."""

    one: int  # row in the first collection
    other: int  # row in the second one
    by: str  # how they were found: NAME, CONTENT or LOOK
    bits: int = 0  # in how many of 256 bits they differ: for LOOK, and for doubtful pairs by NAME


@dataclass(frozen=True)
class Findings:
    """What two collections have in common."""

    one: Collection
    other: Collection  # The second collection; the same object if one is compared with itself
    # Pairs of one photograph, by number or content. With many copies of one, not all pairs are
    # listed: each copy is in a pair with one of every split.
    certain: list[Pair]
    # Further pairs that look alike, the most alike first; then those of one number that look
    # different.
    doubtful: list[Pair]
    # Captions that images of both collections have, or several images of one that is compared with
    # itself. Each once, those of most images first: its words, and the rows of its images in both
    # collections. Capital letters, punctuation and blanks are not compared.
    texts: list[tuple[str, list[int], list[int]]]
    equal_captions: int  # How many captions of the first collection are among them
    # Files of the first and of the second collection that could not be read, and were compared by
    # name alone.
    unread: tuple[int, int]

    @property
    def alone(self) -> bool:
        """Whether one collection was compared with itself."""
        return self.one is self.other

    @property
    def leaks(self) -> list[Pair]:
        """The certain pairs that are leaks: all pairs of two collections; in one collection, those
        across splits.
        """
        if not self.alone:
            return list(self.certain)
        splits = self.one.splits
        return [pair for pair in self.certain if splits[pair.one] != splits[pair.other]]

    def _splits(self, pair: Pair) -> tuple[str, str]:
        return str(self.one.splits[pair.one]), str(self.other.splits[pair.other])

    def lines(self) -> list[str]:
        """Write a line for each finding."""
        none = "no image in common"
        where = f"that {self.other.name} has too"
        if self.alone:
            none = "no image occurs twice"
            where = "that several of its images have"
        lines = self._images_in_common() or [none]
        unlike = sum(pair.by == NAME for pair in self.doubtful)
        alike = len(self.doubtful) - unlike
        lines.append(f"further pairs that look alike: {alike:,}")
        if unlike:
            lines.append(f"pairs of one photo number that look different: {unlike:,}")
        equal = f"{self.equal_captions:,} of {len(self.one.captions):,}"
        texts = len(self.texts)
        lines.append(f"captions of {self.one.name} {where}: {equal}, different texts: {texts:,}")
        unread = sum(self.unread)
        if unread:
            lines.append(
                f"files that could not be read, and are compared by their names alone: {unread:,}"
            )
        return lines

    def _images_in_common(self) -> list[str]:
        """How many images of each split are images of each split of the other collection."""
        shared = {(self._splits(pair), pair.one) for pair in self.certain}
        counts = Counter(splits for splits, _ in shared)
        lines = []
        for (split, other_split), count in sorted(counts.items()):
            images = np.count_nonzero(self.one.splits == split)
            first = f"{count:,} of {images:,} images of {self.one.name} ({split})"
            second = f"images of {self.other.name} ({other_split})"
            lines.append(f"{first} are {second}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Convert to JSON values: pairs of files with splits and how they were found, equal
        captions, and numbers.
        """
        certain = [self._pair(pair) for pair in self.certain]
        doubtful = [self._pair(pair) | {"bits": pair.bits} for pair in self.doubtful]
        first_texts = [self._text(*text) for text in self.texts[:TEXTS]]
        captions = {
            "texts": len(self.texts),
            "captions": self.equal_captions,
            "first": first_texts,
        }
        return {
            "collections": [self.one.name, self.other.name],
            "images": [len(self.one.files), len(self.other.files)],
            "unread": list(self.unread),
            "certain": certain,
            "doubtful": doubtful,
            "captions": captions,
        }

    def _text(self, text: str, rows: list[int], other_rows: list[int]) -> dict[str, Any]:
        files = [self.one.files[row] for row in rows]
        other_files = [self.other.files[row] for row in other_rows]
        return {"text": text, "images": [files, other_files]}

    def _pair(self, pair: Pair) -> dict[str, Any]:
        files = [self.one.files[pair.one], self.other.files[pair.other]]
        return {"files": files, "splits": list(self._splits(pair)), "by": pair.by}

    def named(self, pair: Pair) -> str:
        """Describe a pair: both files with their splits, and how they were found."""
        bits = f"{pair.bits} of 256 bits differ"
        how = f"the same {pair.by}"
        if pair.by == LOOK:
            how = bits
        elif pair.bits:
            how += f", but {bits}"
        split, other_split = self._splits(pair)
        file = self.one.files[pair.one]
        other_file = self.other.files[pair.other]
        return f"{file} ({split}) and {other_file} ({other_split}): {how}"

    def page(self) -> str:
        """Write the report as one HTML file, with the doubtful pairs side by side. Text from data
        is escaped.
        """
        names = self.one.name
        if not self.alone:
            names += f" and {self.other.name}"
        return html.page(
            "extensions/audit/page.html", findings=self, names=names, shown=SHOWN, picture=_picture
        )


def _picture(collection: Collection, row: int) -> tuple[str, str]:
    """An image as a data URI, and why it cannot be shown; one of both is empty."""
    name = collection.files[row]
    path = collection.folder / name
    address, why = html.thumbnail(lambda: GalleryFile.named(path).picture(), SIDE)
    if why:
        why = f"{name}: {why}"
    return address, why


def compare(
    one: Collection, other: Collection, prints: tuple[Fingerprints, Fingerprints], most_bits: int
) -> Findings:
    """Find the images and captions that two collections share, or the pairs within one, each
    once.
    """
    alone = one is other
    among = partial(_some, one.splits, other.splits)
    certain: dict[tuple[int, int], Pair] = {}

    def find_equal(
        by: str, values: Sequence[str | None], other_values: Sequence[str | None]
    ) -> None:
        second_values = None if alone else other_values
        for row, column in _equal(values, second_values, among):
            certain.setdefault((row, column), Pair(row, column, by))

    numbers = [photograph(file) for file in one.files]
    other_numbers = [photograph(file) for file in other.files]
    find_equal(NAME, numbers, other_numbers)
    find_equal(CONTENT, prints[0].content, prints[1].content)
    doubtful = []
    for row, column, bits in fingerprints.alike(*prints, most_bits, alone, among):
        if (row, column) not in certain:
            doubtful.append(Pair(row, column, LOOK, bits))
    for pair in list(certain.values()):
        unlike = _unlike(pair, *prints)
        if unlike:
            doubtful.append(unlike)
            del certain[pair.one, pair.other]
    texts, equal_captions = _equal_captions(one, other)
    unread = prints[0].content.count("")
    other_unread = 0 if alone else prints[1].content.count("")
    doubtful.sort(key=lambda pair: (pair.bits, pair))
    return Findings(
        one,
        other,
        certain=[certain[key] for key in sorted(certain)],
        doubtful=doubtful,
        texts=texts,
        equal_captions=equal_captions,
        unread=(unread, other_unread),
    )


def _unlike(pair: Pair, one: Fingerprints, other: Fingerprints) -> Pair | None:
    """The pair with its bits if its images have one number but look different; None for other
    pairs.
    """
    if pair.by != NAME:
        return None
    are_seen = one.is_seen[pair.one] and other.is_seen[pair.other]
    is_copy = one.content[pair.one] == other.content[pair.other]
    if is_copy or not are_seen:
        return None
    changed = one.look[pair.one] ^ other.look[pair.other]
    bits = int(np.bitwise_count(changed).sum())
    if bits <= UNLIKE:
        return None
    return pair._replace(bits=bits)


def _equal(
    one: Sequence[str | None], other: Sequence[str | None] | None, among: Among
) -> Iterator[tuple[int, int]]:
    """Pairs of images with equal values; without OTHER, pairs within one collection."""
    first = _rows_of_values(one)
    if other is None:
        for rows in first.values():
            yield from among(rows, None)
        return
    second = _rows_of_values(other)
    for value, rows in first.items():
        if value in second:
            yield from among(rows, second[value])


def _rows_of_values(values: Sequence[str | None]) -> dict[str, list[int]]:
    """The rows of each value, but for those without one."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, value in enumerate(values):
        if value:
            rows[value].append(row)
    return rows


def _some(
    one: np.ndarray, other: np.ndarray, rows: list[int], columns: list[int] | None
) -> Iterator[tuple[int, int]]:
    """Pairs of images that are all equal or equally alike: all pairs, or a part of them if they are
    more than FEW.

    Then each image is in a pair with one image of every split that has any.
    """
    others = rows if columns is None else columns
    if len(rows) * len(others) <= FEW:
        yield from fingerprints.every(rows, columns)
    elif columns is None:
        pairs: set[tuple[int, int]] = set()
        for order in (rows, rows[::-1]):
            last: dict[str, int] = {}  # split -> the last image of it so far
            for row in order:
                for column in last.values():
                    pairs.add((min(row, column), max(row, column)))
                last[str(one[row])] = row
        yield from pairs
    else:
        first_rows = _first_of_splits(one, rows)
        first_columns = _first_of_splits(other, columns)
        yield from {*product(rows, first_columns), *product(first_rows, columns)}


def _first_of_splits(splits: np.ndarray, rows: list[int]) -> list[int]:
    """The first image of each split."""
    first = {str(splits[row]): row for row in reversed(rows)}
    return list(first.values())


def _equal_captions(
    one: Collection, other: Collection
) -> tuple[list[tuple[str, list[int], list[int]]], int]:
    """The equal captions with the rows of their images, and how many of the first collection's
    captions they are.
    """
    first = _images_of_texts(one)
    second = _images_of_texts(other)
    if one is other:
        shared = [text for text, images in first.items() if len(images) > 1]
    else:
        shared = [text for text in first if text in second]

    def by_images(text: str) -> tuple[int, str]:
        return -len(first[text]) - len(second[text]), text

    shared.sort(key=by_images)
    counts = Counter(map(_plain, one.captions))
    equal = sum(counts[text] for text in shared)
    with_images = [(text, sorted(first[text]), sorted(second[text])) for text in shared]
    return with_images, equal


def _images_of_texts(collection: Collection) -> dict[str, set[int]]:
    texts = [_plain(caption) for caption in collection.captions]
    images_of: dict[str, set[int]] = defaultdict(set)
    for text, image in zip(texts, collection.caption_image.tolist(), strict=True):
        if text and image >= 0:
            images_of[text].add(image)
    return images_of


def _plain(caption: str) -> str:
    words = WORDS.findall(caption.casefold())
    return " ".join(words)

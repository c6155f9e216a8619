"""Numbers of matrices and vectors with marks, doubles or without a prefix, computed here: the first
line of `explain` names the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("here")
QUERIES, CANDIDATES = 40, 60


class Marked:
    """A matrix of 40 images x 80 captions, two an image, as BLIP's code fills it: the six best
    captions of each image have scores, all others -100.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        scores = rng.normal(size=(QUERIES, 2 * QUERIES)) + np.repeat(np.eye(QUERIES), 2, axis=1)
        best = np.argsort(-scores)[:, :6]
        self.matrix = np.full(scores.shape, -100, np.float32)
        np.put_along_axis(self.matrix, best, np.take_along_axis(scores, best, 1), 1)
        np.save("sims.npy", self.matrix)
        self.right = [self.matrix[image, [2 * image, 2 * image + 1]] for image in range(QUERIES)]

    def published(self, found: Callable[[int, int], float], images: list[int]) -> str:
        """R@2 and R@20 of some images. found: whether an image has a hit at a cutoff."""
        two, twenty = (100 * np.mean([found(image, k) for image in images]) for k in (2, 20))
        return f"i2t_R@2={two:.3f},i2t_R@20={twenty:.3f}"

    def among_scored(self, image: int, k: int) -> float:
        best = self.right[image].max()
        return float(best > -100 and np.sum(self.matrix[image] > best) < k)

    def sorted(self, image: int, k: int) -> float:
        """As LAVIS sorts: the last of equal scores comes first."""
        first = np.argsort(self.matrix[image], kind="stable")[::-1][:k]
        return float((first // 2 == image).any())

    def expected(self, image: int, k: int) -> float:
        """The mean over all orders of captions with the mark."""
        if self.right[image].max() > -100:
            return self.among_scored(image, k)
        without = [(74 - place - 2) / (74 - place) for place in range(k - 6)]
        return 1 - float(np.prod(without))


def of_marked(pipeline: Any, published: str, most: str) -> str:
    given = ("explain", "sims.npy", "--captions-per-image", "2", "--most", most)
    code, out, err = pipeline(*given, "--published", published)
    assert code == 0, err
    return " ".join(out.split())


def test_marks_of_pairs_that_were_not_scored_are_found_to_be_scores(pipeline: Any) -> None:
    made = Marked()
    every = [*range(QUERIES)]
    listed = [image for image in every if made.right[image].max() > -100]
    assert 5 < len(listed) < QUERIES - 5
    words = "−100, which marks pairs that were not scored, read as a score"
    said = of_marked(pipeline, made.published(made.expected, every), "1")
    assert said.startswith(f"Reason found: {words} gives both"), said[:300]
    said = of_marked(pipeline, made.published(made.sorted, every), "2")
    assert f"eason found: {words}; ties by position, the last first gives both" in said, said[:300]
    said = of_marked(pipeline, made.published(made.among_scored, listed), "1")
    assert said.startswith("Reason found: the mean over queries whose list has"), said[:300]
    said = of_marked(pipeline, made.published(made.among_scored, every), "1")
    assert said.startswith("The published numbers are those measured."), said[:300]


class Doubled:
    """40 images with two captions each. The first eight images are one photograph each with the
    last eight; so are the first captions of the next eight and of the eight after them.
    """

    IMAGES = np.arange(QUERIES)
    IMAGES[-8:] = IMAGES[:8]
    CAPTIONS = np.arange(2 * QUERIES)
    CAPTIONS[32:48:2] = CAPTIONS[16:32:2]

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        images = rng.normal(size=(QUERIES, 8)).astype(np.float32)
        captions = np.repeat(images[self.IMAGES], 2, axis=0)
        captions += 1.2 * rng.normal(size=captions.shape).astype(np.float32)
        np.save("images.npy", images[self.IMAGES])
        np.save("captions.npy", captions[self.CAPTIONS])
        self.scores = (images @ captions.T)[np.ix_(self.IMAGES, self.CAPTIONS)]
        np.save("sims.npy", self.scores)

    def published(self, of_image: np.ndarray, of_caption: np.ndarray) -> str:
        """R@1 and R@5 of both directions; of_image, of_caption: the item that each is."""
        right = {(of_image[caption // 2], of_caption[caption]) for caption in range(2 * QUERIES)}
        images = np.unique(of_image)
        captions = np.unique(of_caption)
        scores = self.scores[np.ix_(images, captions)]
        is_right = np.array([[(i, c) in right for c in captions] for i in images])
        numbers = []
        for way, of_way, right_of_way in (
            ("i2t", scores, is_right),
            ("t2i", scores.T, is_right.T),
        ):
            for k in (1, 5):
                hits = []
                for row, rights in zip(of_way, right_of_way, strict=True):
                    best = row[rights].max()
                    tied = np.sum(row == best)
                    left = k - np.sum(row > best)
                    wrong = tied - np.sum(row[rights] == best)
                    missed = [(wrong - n) / (tied - n) for n in range(int(np.clip(left, 0, tied)))]
                    hits.append(1 - np.prod(missed))
                numbers.append(f"{way}_R@{k}={100 * np.mean(hits):.3f}")
        return ",".join(numbers)


def test_doubles_are_found_to_be_merged(pipeline: Any) -> None:
    made = Doubled()
    images = np.arange(QUERIES)
    captions = np.arange(2 * QUERIES)
    for file in ("sims.npy", "images.npy:captions.npy"):
        given = ("explain", file, "--captions-per-image", "2", "--most", "1", "--published")
        for of_image, of_caption, words in (
            (made.IMAGES, captions, "Reason found: images with equal vectors or scores merged"),
            (images, made.CAPTIONS, "Reason found: captions with equal vectors or scores merged"),
            (images, captions, "The published numbers are those measured."),
        ):
            code, out, err = pipeline(*given, made.published(of_image, of_caption))
            assert code == 0, err
            assert " ".join(out.split()).startswith(words), out[:300]


def test_vectors_without_a_prefix_are_given_as_a_seed(pipeline: Any) -> None:
    rng = np.random.default_rng(6)
    pages = rng.normal(size=(CANDIDATES, 8)).astype(np.float32)
    numbers = {}
    for name, noise in (("with", 1.0), ("without", 1.4)):
        queries = pages + noise * rng.normal(size=pages.shape).astype(np.float32)
        np.save(f"{name}.npy", queries)
        scores = queries @ pages.T
        above = np.sum(scores > np.diag(scores)[:, None], axis=1)
        numbers[name] = [100 * np.mean(above < k) for k in (1, 5)]
    np.save("pages.npy", pages)
    first, five = numbers["without"]
    published = f"t2i_R@1={first:.3f},t2i_R@5={five:.3f}"
    given = ("explain", "pages.npy:with.npy,pages.npy:without.npy", "--captions-per-image", "1")
    code, out, err = pipeline(*given, "--most", "1", "--published", published)
    assert code == 0, err
    assert "eason found: the second seed alone gives both" in " ".join(out.split()), out[:300]

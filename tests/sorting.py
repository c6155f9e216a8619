"""Plain references: metrics by sorting, chances by trying every order of tied items; made-up
matrices.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np


def best_positions(scores: Any, right: Any) -> list[int]:
    """The best right item's position, from 1, in each placement of the right among the tied
    items.
    """
    order = sorted(range(len(scores)), key=lambda item: -scores[item])
    groups: dict[float, list[int]] = {}
    for item in order:
        groups.setdefault(float(scores[item]), []).append(item)
    before = 0
    for group in groups.values():
        inside = sum(item in right for item in group)
        if inside:
            return [before + min(places) + 1 for places in combinations(range(len(group)), inside)]
        before += len(group)
    raise AssertionError("no right item")


def measure(
    scores: np.ndarray, caption_image: np.ndarray, ties: str
) -> dict[str, dict[str, float]]:
    """Recalls and ranks by sorting. scores: [I, C]; caption_image: [C], -1 for no image."""
    queries: dict[str, list[list[int]]] = {"i2t": [], "t2i": []}
    for image, row in enumerate(scores):
        right = {int(caption) for caption in np.flatnonzero(caption_image == image)}
        if right:
            queries["i2t"].append(best_positions(row, right))
    for caption, image in enumerate(caption_image):
        if image >= 0:
            queries["t2i"].append(best_positions(scores[:, caption], {int(image)}))
    chosen = {
        "expected": list,
        "pessimistic": lambda each: [max(each)],
        "optimistic": lambda each: [min(each)],
    }[ties]
    return {
        name: _summary([chosen(each) for each in positions]) for name, positions in queries.items()
    }


def _summary(positions: list[list[int]]) -> dict[str, float]:
    ranks = [np.mean(each) for each in positions]
    recalls = {
        f"R@{k}": 100 * np.mean([np.mean(np.array(each) <= k) for each in positions])
        for k in (1, 5, 10)
    }
    return {**recalls, "MedR": float(np.median(ranks)), "MeanR": float(np.mean(ranks))}


def argsort_loops(scores: np.ndarray, captions_per_image: int = 5) -> dict[str, list[float]]:
    """R@1, R@5, R@10, median and mean rank as the field finds them: an argsort a query."""
    i2t = [
        min(
            int(np.where(np.argsort(row)[::-1] == captions_per_image * image + each)[0][0])
            for each in range(captions_per_image)
        )
        for image, row in enumerate(scores)
    ]
    t2i = [
        int(np.where(np.argsort(column)[::-1] == caption // captions_per_image)[0][0])
        for caption, column in enumerate(scores.T)
    ]
    return {
        name: [
            *(100.0 * np.mean(np.array(found) < k) for k in (1, 5, 10)),
            float(np.floor(np.median(found)) + 1),
            float(np.mean(found) + 1),
        ]
        for name, found in (("i2t", i2t), ("t2i", t2i))
    }


def random_matrix(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A small matrix of any type and size, with its map: many ties, some images without
    captions.
    """
    generator = np.random.default_rng(seed)
    images, captions = int(generator.integers(1, 13)), int(generator.integers(1, 31))
    levels = int(generator.choice([4, 20, 10**6]))
    scores = generator.integers(0, levels, (images, captions)) / 64 - 1
    owner = generator.integers(-1 if seed % 4 == 0 else 0, images, captions)
    owner[generator.integers(captions)] = generator.integers(images)
    kind = (np.float16, np.float32, np.float64)[seed % 3]
    return np.minimum(scores, 60000).astype(kind), owner


def noisy_pairs(
    images: int, captions_per_image: int, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings float32 of images [I, 16] and of their captions [I * n, 16], in the images'
    order.
    """
    generator = np.random.default_rng(seed)
    pictures = generator.standard_normal((images, 16)).astype(np.float32)
    captions = np.repeat(pictures, captions_per_image, 0)
    captions = captions + noise * generator.standard_normal(captions.shape).astype(np.float32)
    return pictures, captions

"""Recalls with five right images a caption beside one; all in one run.

python -m benchmarks.relevance               # 5,000 images x 25,000 captions
python -m benchmarks.relevance --images 500
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import report_ratios
from benchmarks.ranking import noisy_pairs, seconds
from pipeline.retrieval import Relevance, consecutive_captions, rank

RIGHT = 5


def relations(images: int) -> dict[str, Relevance]:
    """One right image a caption, and that one with four others, drawn at random."""
    owner = consecutive_captions((images, 5 * images))
    draws, part = np.random.default_rng(0), (images - 1) // (RIGHT - 1)
    steps = np.stack([np.zeros_like(owner), *(1 + each * part + draws.integers(0, part, len(owner))
                                              for each in range(RIGHT - 1))])  # no image twice
    image = (owner + steps) % images
    caption = np.tile(np.arange(len(owner)), RIGHT)
    return {"one": Relevance.of_owner(owner, images),
            "five": Relevance.of_pairs(image.ravel(), caption, (images, len(owner)), owner=owner)}


def compare(images: int, repeats: int) -> dict[str, float]:
    """Seconds of ranking a matrix with each relation, the least of several times, in turn."""
    pictures, captions = noisy_pairs(images, 64)
    scores = (pictures @ captions.T).numpy()
    times: dict[str, list[float]] = {name: [] for name in ("one", "five")}
    relevance = relations(images)
    for _ in range(repeats):
        for name, taken in times.items():
            taken.append(seconds(lambda name=name: rank(scores, relevance[name])))  # type: ignore[misc]
    return {name: min(taken) for name, taken in times.items()}


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    print(f"right images a caption, {given.images} images x {5 * given.images} captions")
    report_ratios(compare(given.images, given.repeats), "one")


if __name__ == "__main__":
    main()

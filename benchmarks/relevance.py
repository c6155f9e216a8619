"""Recalls, and metrics of all right candidates, with five right images a caption beside one; all in
one run.

    python -m benchmarks.relevance               # 5,000 images x 25,000 captions
    python -m benchmarks.relevance --images 500
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

from benchmarks import numbers
from benchmarks.measure import RATIOS, report_ratios
from benchmarks.ranking import noisy_pairs
from pipeline.foundation.evaluation.metrics import Metrics, measure, parse_all
from pipeline.foundation.evaluation.metrics.standard import of_pool
from pipeline.foundation.evaluation.retrieval import (
    Relevance,
    as_similarity,
    consecutive_captions,
    rank,
)
from pipeline.foundation.settings import Evaluate

RIGHT = 5
METRICS = ("nDCG@10", "AP", "Recall@10", "Rprec")


def relations(images: int) -> dict[str, Relevance]:
    """One right image a caption, and that one with four others, drawn at random."""
    owner = consecutive_captions((images, 5 * images))
    draws, part = np.random.default_rng(0), (images - 1) // (RIGHT - 1)
    steps = np.stack(
        [
            np.zeros_like(owner),
            *(1 + each * part + draws.integers(0, part, len(owner)) for each in range(RIGHT - 1)),
        ]
    )  # no image twice
    image = (owner + steps) % images
    caption = np.tile(np.arange(len(owner)), RIGHT)
    return {
        "one": Relevance.of_owner(owner, images),
        "five": Relevance.of_pairs(image.ravel(), caption, (images, len(owner)), owner=owner),
    }


def compare(images: int, repeats: int) -> dict[str, dict[str, float]]:
    """What is measured -> relation -> seconds of CPU time, the least of several times, in turn."""
    pictures, captions = noisy_pairs(images, 64)
    scores = as_similarity((pictures @ captions.T).numpy())
    settings = Evaluate(resamples=1, seed=0, block_megabytes=32.0)
    every = parse_all(METRICS)
    found = {name: measure([rank(scores, each)]) for name, each in relations(images).items()}
    steps: dict[str, Callable[[Relevance, Metrics], object]] = {
        "recalls": lambda truth, _: rank(scores, truth),
        ", ".join(METRICS): lambda truth, ranked: of_pool(
            every, scores, truth, ranked, "all", settings, lambda done: None
        ),
    }
    times: dict[str, dict[str, float]] = {what: dict.fromkeys(found, math.inf) for what in steps}
    for _ in range(repeats):
        for what, step in steps.items():
            for name, ranked in found.items():
                start = time.process_time()
                step(ranked.ranks[0].relevance, ranked)
                times[what][name] = min(times[what][name], time.process_time() - start)
    return times


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    print(f"right images a caption, {given.images} images x {5 * given.images} captions")
    rows: list[list[str | float]] = []
    for what, times in compare(given.images, given.repeats).items():
        print(what)
        rows += [[f"{what}: {name}", *values] for name, *values in report_ratios(times, "one")]
    numbers.keep("relevance", RATIOS, rows)


if __name__ == "__main__":
    main()

"""How often `pipeline explain` gives a reason for numbers that have none: another system's, and
drawn at random.

    # 500 images x 2,500 captions, 40 numbers of each kind; two minutes
    python -m benchmarks.explanations
    # the time on 5,000 x 25,000
    python -m benchmarks.explanations --time
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from benchmarks import numbers
from benchmarks.ranking import noisy_pairs
from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.metrics.base import RSUM, Statistic
from pipeline.foundation.evaluation.retrieval import consecutive_captions
from pipeline.judge.explain import explain

Numbers = Mapping[Statistic, float]
RECALLS = [Statistic(way, f"R@{k}") for way in ("i2t", "t2i") for k in (1, 5, 10)]
PUBLISHED = {
    "R@1 of captions": [Statistic("t2i", "R@1")],
    "three: R@1 of both, RSUM": [Statistic("i2t", "R@1"), Statistic("t2i", "R@1"), RSUM],
    "six recalls and RSUM": [*RECALLS, RSUM],
}
NEAR = 2


def vectors(images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A system like others in strength, which errs on other captions."""
    draw = np.random.default_rng(seed)
    pictures = draw.normal(size=(images, 64)).astype(np.float32)
    captions = np.repeat(pictures, 5, 0) + 2.2 * draw.normal(size=(5 * images, 64)).astype(
        np.float32
    )
    return pictures, captions


def drawn(found: Metrics, generator: np.random.Generator) -> Numbers:
    """Numbers within two points of the measured ones; recalls rise with K."""
    numbers = {name: found[name] + generator.uniform(-NEAR, NEAR) for name in [*RECALLS, RSUM]}
    for less, more in pairwise(RECALLS):
        if less.direction == more.direction:
            numbers[more] = min(100, max(numbers[less], numbers[more]))
    return numbers


def rates(images: int, repeats: int) -> list[list[object]]:
    """For each kind of numbers in percent: explained by one difference, by two, by three at
    most.
    """
    ours, owner = vectors(images, 0), consecutive_captions((images, 5 * images))
    measured, generator = evaluate(ours[0] @ ours[1].T, owner), np.random.default_rng(0)
    kinds: dict[str, Callable[[int], Numbers]] = {
        "another system's": lambda seed: (
            evaluate(np.matmul(*_transposed(vectors(images, seed))), owner).numbers
        ),
        "at random, within 2 points": lambda seed: drawn(measured, generator),
    }
    rows: list[list[object]] = []
    for kind, make in kinds.items():
        wrong = [make(seed) for seed in range(1, repeats + 1)]
        for name, statistics in PUBLISHED.items():
            fewest = []
            for each in wrong:
                text = ",".join(
                    f"{str(one).replace(' ', '_')}={each[one]:.1f}" for one in statistics
                )
                found = explain(ours, text)
                fewest.append(
                    min((len(variant.differences) for variant in found.reproducing), default=9)
                )
            rows.append(
                [
                    kind,
                    name,
                    *(100 * float(np.mean(np.array(fewest) <= most)) for most in (1, 2, 3)),
                ]
            )
            print(rows[-1], flush=True)
    return rows


def _transposed(pair: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return pair[0], pair[1].T


def times() -> None:
    """Print the seconds of one search on 5,000 images x 25,000 captions."""
    pictures, captions = (each.numpy() for each in noisy_pairs(5000, 512))
    for name, given in (("matrix", pictures @ captions.T), ("vectors", (pictures, captions))):
        for published in ("t2i_R@1=12.3", "i2t_R@1=12.3,t2i_R@1=12.3,RSUM=300.1"):
            start, used = time.perf_counter(), time.process_time()
            found = explain(given, published)
            print(
                f"{name}, {published}: {time.perf_counter() - start:.1f} s, {time.process_time() - used:.1f} CPU-s, "
                f"{len(found.tried)} variants",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    if arguments.time:
        times()
        return
    rows = rates(arguments.images, arguments.repeats)
    numbers.keep(
        "explanations",
        [
            ("published numbers", ""),
            ("which", ""),
            ("one difference", ".1f"),
            ("two at most", ".1f"),
            ("three at most", ".1f"),
        ],
        rows,
    )


if __name__ == "__main__":
    main()

"""How often `pipeline explain` gives a reason for numbers that have none: another system's, and
drawn at random.

    # 500 images x 2,500 captions, 40 numbers of each kind; two minutes
    python -m benchmarks.explanations
    # how often it says wrongly that five numbers of one more seed are too far off; a minute
    python -m benchmarks.explanations --chance
    # the time on 5,000 x 25,000
    python -m benchmarks.explanations --time
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np

from benchmarks import numbers
from benchmarks.ranking import noisy_pairs
from pipeline.foundation.evaluation.metrics import Metrics, evaluate, parse
from pipeline.foundation.evaluation.metrics.base import RSUM, Statistic
from pipeline.foundation.evaluation.retrieval import as_similarity, consecutive_captions
from pipeline.judge.explain import explain
from pipeline.judge.explain.differences import Measurement
from pipeline.judge.explain.given import Given
from pipeline.judge.explain.measuring import Measuring
from pipeline.judge.explain.printed import Printed
from pipeline.judge.explain.search import beside_measured

Numbers = Mapping[Statistic, float]
RECALLS = [Statistic(way, f"R@{k}") for way in ("i2t", "t2i") for k in (1, 5, 10)]
PUBLISHED = {
    "R@1 of captions": [Statistic("t2i", "R@1")],
    "three: R@1 of both, RSUM": [Statistic("i2t", "R@1"), Statistic("t2i", "R@1"), RSUM],
    "six recalls and RSUM": [*RECALLS, RSUM],
}
NEAR = 2
# How far a seed moves vectors, whose values are of size 1.
SEED_NOISE = 0.5


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


def chance(images: int, repeats: int) -> None:
    """Print in how many of 100 calls one of five numbers of one more seed of a model, on the same
    images or on as many others, is said to be too far off.
    """
    published = [*PUBLISHED["three: R@1 of both, RSUM"], *RECALLS[2::3]]
    owner = consecutive_captions((images, 5 * images))
    for seeds in (1, 2, 3, 5):
        wrong = {"the same images": 0, "other images": 0}
        for repeat in range(repeats):
            draw = np.random.default_rng(repeat)
            mine, others = (vectors(images, 2 * repeat + part) for part in range(2))
            known = [_of_seed(mine, draw) for _ in range(seeds)]
            pools = [Given("", owner, as_similarity(scores)) for scores in known]
            pool = replace(pools[0], others=tuple(pools[1:]))
            for name, pair in zip(wrong, (mine, others), strict=True):
                numbers = evaluate(_of_seed(pair, draw), owner)
                asked = [
                    Printed(parse(each.metric), each.direction, Decimal(f"{numbers[each]:.1f}"))
                    for each in published
                ]
                sampled = beside_measured(Measuring({"": pool}), Measurement(), asked)
                wrong[name] += not all(number.is_within for number in sampled)
        for name, count in wrong.items():
            print(f"{seeds} seeds, {name}: {100 * count / repeats:.1f} %", flush=True)


def _of_seed(pair: tuple[np.ndarray, np.ndarray], draw: np.random.Generator) -> np.ndarray:
    """The scores of one seed of a model: its vectors, and noise of the seed alone."""
    pictures, captions = (
        each + SEED_NOISE * draw.normal(size=each.shape).astype(np.float32) for each in pair
    )
    scores: np.ndarray = pictures @ captions.T
    return scores


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
    parser.add_argument("--chance", action="store_true")
    arguments = parser.parse_args()
    if arguments.chance:
        chance(arguments.images, arguments.repeats)
        return
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

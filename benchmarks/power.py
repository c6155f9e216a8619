"""Whether as many images or seeds suffice as `pipeline compare` says, and how often its letters
part equal systems.

Printed by `python -m benchmarks.coverage`, and of letters alone by `python -m benchmarks.power
--letters`. A study is drawn of two systems whose spread is known;
`compare` says how many images or seeds would make a difference of the measured size significant;
systems with this difference and the known spread are drawn with so many, and tested. The power
should be 80 %.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks import numbers
from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS, evaluate
from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.evaluation.statistics import (
    LEVEL,
    EveryTwo,
    holm,
    image_hits,
    letters,
)
from pipeline.foundation.evaluation.statistics.image_hits import MOST, FoldHits
from pipeline.foundation.evaluation.statistics.power import OverImages, OverSeeds
from pipeline.foundation.evaluation.statistics.significance import (
    difference_of_runs,
    difference_over_seeds,
)
from pipeline.foundation.evaluation.statistics.welch import Runs

SWAPS = 1000
IMAGE_STUDIES = ((5, "RSUM", 300), (5, "i2t R@1", 300), (5, "RSUM", 100))
"""Captions an image, what is compared, and the images of the study."""
SEED_STUDIES = ((3, 4.0, 4.0), (5, 4.0, 4.0), (5, 4.0, 1.0))
"""Seeds of each system, and the deviations over seeds, in standard errors of the image sampling."""
MOST_TIMES = 10
"""Studies of differences that need more than so many times their images are left out: testing these
takes long."""
IMAGES = 100


def differences(captions: int, images: int = 1000) -> FoldHits:
    """The differences in hits of two equally good systems of random vectors."""
    generator = np.random.default_rng(0)
    pictures = generator.standard_normal((images, 32))
    texts = np.repeat(pictures, captions, axis=0) + 0.5 * generator.standard_normal(
        (images * captions, 32)
    )
    first, second = (
        image_hits.gather(
            evaluate(
                (pictures + generator.standard_normal(pictures.shape)) @ texts.T,
                np.arange(len(texts)) // captions,
            )
        )[0]
        for _ in range(2)
    )
    return second.minus(first)


def power_of_images(
    captions: int, name: str, images: int, studies: int, each: int
) -> tuple[float, float, int]:
    """In how many of a hundred cases the number of images tells, with its error, and the median
    number.
    """
    generator, population = np.random.default_rng(0), differences(captions)
    column = [str(statistic) for statistic in STATISTICS].index(name)
    values = image_hits.parts([population])[:, column]
    sizes, better = (
        np.abs(values),
        FoldHits(population.hits * np.where(values < 0, -1, 1)[:, None], population.queries),
    )

    def draw(count: int, difference: float) -> FoldHits:
        """Images whose differences have the population's sizes, and this mean."""
        drawn = generator.integers(0, len(sizes), count)
        signs = np.where(generator.random(count) < (1 + difference / sizes.mean()) / 2, 1, -1)
        return FoldHits(better.hits[drawn] * signs[:, None], better.queries[drawn])

    def p(folds: FoldHits) -> float:
        seed = int(generator.integers(1 << 30))
        return float(difference_of_runs([folds], SWAPS, MOST, 0.95, seed)[2][column])

    powers: list[float] = []
    needed: list[int] = []
    while len(powers) < studies:
        study = draw(images, 2 * float(np.sqrt((sizes**2).mean() / images)))
        measured = image_hits.parts([study])[:, column]
        most = 9 * (measured**2).mean() / max(measured.mean() ** 2, 1e-9)
        if most > MOST_TIMES * images or p(study) < LEVEL:
            continue
        if number := OverImages(measured, SWAPS).needs(LEVEL)["images"]:
            needed.append(number)
            powers.append(
                float(
                    np.mean([p(draw(number, float(measured.mean()))) < LEVEL for _ in range(each)])
                )
            )
    return *_percent(powers), int(np.median(needed))


def recipe(seeds: int, spread: float, sets: int, generator: np.random.Generator) -> Runs:
    """A recipe's runs on as many test sets; half of what varies over images is specific to each
    run.
    """
    shared, own = (generator.standard_normal((count, IMAGES, sets)) for count in (1, seeds))
    hits = (shared + own) * np.sqrt(IMAGES / 2)
    values = hits.mean(1)
    return Runs(values + spread * generator.standard_normal(values.shape), hits - values[:, None])


def power_of_seeds(
    seeds: int, spreads: tuple[float, float], studies: int, each: int
) -> tuple[float, float, int]:
    """In how many of a hundred cases the number of seeds tells, with its error, and the median
    number.
    """
    generator = np.random.default_rng(0)
    powers: list[float] = []
    needed: list[int] = []
    while len(powers) < studies:
        a, b = (recipe(seeds, spread, 1, generator) for spread in spreads)
        b = replace(b, values=b.values + 6)
        evidence = OverSeeds.of(a, b, np.ones(1))[0]
        number = evidence.needs(LEVEL)["seeds"]
        if number and number <= 300:
            needed.append(number)
            a, b = (recipe(number, spread, each, generator) for spread in spreads)
            again = replace(b, values=b.values + evidence.difference)
            powers.append(
                float(np.mean(difference_over_seeds(a, again, np.ones(each), 0.95)[2] < LEVEL))
            )
    return *_percent(powers), int(np.median(needed))


def _percent(shares: list[float]) -> tuple[float, float]:
    return 100 * float(np.mean(shares)), 100 * float(np.std(shares)) / len(shares) ** 0.5


def parted_over_images(systems: int, images: int, sets: int) -> float:
    """In how many of a hundred cases equal systems, of single runs, do not all share a letter."""
    generator, parted = np.random.default_rng(0), 0
    queries = np.tile([1, 5], (images, 1))
    for number in range(sets):
        hard = generator.standard_normal((images, 1))
        hits = [
            np.stack(
                [
                    np.sum(hard + generator.standard_normal((images, count)) > limit, axis=1)
                    for count in (1, 5)
                    for limit in (0.5, 0, -0.5)
                ],
                1,
            ).astype(np.float64)
            for _ in range(systems)
        ]
        of_systems = [[[FoldHits(each, queries)]] for each in hits]
        tests = EveryTwo.of(of_systems, SWAPS, number)
        corrected = np.ones((systems, systems))
        for pair, of_pair in zip(tests.places, tests.corrected(RSUM).corrected, strict=True):
            corrected[pair] = of_pair.p
        parted += _parted(corrected, [float(each.sum()) for each in hits])
    return 100 * parted / sets


def parted_over_seeds(systems: int, seeds: int, spread: float, sets: int) -> float:
    """The same of systems of several seeds."""
    generator = np.random.default_rng(0)
    every = [recipe(seeds, spread, sets, generator) for _ in range(systems)]
    p = np.ones((systems, systems, sets))
    for a, b in combinations(range(systems), 2):
        p[a, b] = difference_over_seeds(every[a], every[b], np.ones(sets), 0.95)[2]
    return 100 * float(
        np.mean(
            [
                _parted(
                    _by_holm(p[:, :, case]), [float(each.values[:, case].mean()) for each in every]
                )
                for case in range(sets)
            ]
        )
    )


def _by_holm(p: Floats) -> Floats:
    """The corrected p of every two systems, above the diagonal."""
    above = np.triu_indices(len(p), 1)
    corrected = np.ones(p.shape)
    corrected[above] = holm(p[above].tolist())
    return corrected


def _parted(corrected: Floats, values: list[float]) -> bool:
    """Whether not all share a letter."""
    pairs = combinations(range(len(values)), 2)
    groups = letters(values, {pair for pair in pairs if corrected[pair] < LEVEL})
    return not set.intersection(*map(set, groups))


def main(studies: int = 250, each: int = 8, sets: int = 2000) -> None:
    """Print the power of the numbers of images and of seeds, and how often letters part equal
    systems.
    """
    rows: list[list[Any]] = []
    print(f"\n{'what compare says would suffice, does':46}  power  error  median number")
    for captions, name, images in IMAGE_STUDIES:
        rows.append(
            [
                f"images: {name}, {captions} caption(s), measured on {images:,}",
                *power_of_images(captions, name, images, studies, each),
            ]
        )
        print(f"{rows[-1][0]:46}{rows[-1][1]:7.1f}{rows[-1][2]:7.1f}{rows[-1][3]:15,}", flush=True)
    for seeds, *spreads in SEED_STUDIES:
        rows.append(
            [
                f"seeds: measured on {seeds}, deviations {spreads[0]:g} and {spreads[1]:g}",
                *power_of_seeds(seeds, (spreads[0], spreads[1]), 2 * studies, each),
            ]
        )
        print(f"{rows[-1][0]:46}{rows[-1][1]:7.1f}{rows[-1][2]:7.1f}{rows[-1][3]:15,}", flush=True)
    numbers.keep(
        "power",
        [
            ("significant with what compare says", ""),
            ("power", ".1f"),
            ("Monte Carlo error", ".1f"),
            ("median number", ","),
        ],
        rows,
    )
    main_of_letters(sets)


def main_of_letters(sets: int = 2000) -> None:
    """Print how often letters part equal systems."""
    groups = [
        [
            f"{systems} systems, single runs, {images} images",
            parted_over_images(systems, images, sets),
        ]
        for systems, images in ((3, 200), (5, 200))
    ]
    groups += [
        [
            f"{systems} systems, {seeds} seeds each, deviation {spread:g}",
            parted_over_seeds(systems, seeds, spread, sets),
        ]
        for systems, seeds, spread in ((3, 3, 1), (5, 3, 1), (5, 5, 2))
    ]
    print(f"\n{'equal systems do not all share a letter':46}")
    for name, rate in groups:
        print(f"{name:46}{rate:7.1f}", flush=True)
    numbers.keep("groups", [("equal systems", ""), ("parted", ".1f")], groups)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--letters", action="store_true", help="letters alone")
    if parser.parse_args().letters:
        main_of_letters()
    else:
        main()

"""The nearest vectors of one query and of many, beside reading the vectors once; all in one run.

python -m benchmarks.search                   # 1,000,000 vectors of 256, float32 and float16
python -m benchmarks.search --vectors 100000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch

from benchmarks import numbers
from benchmarks.measure import RATIOS, report_ratios
from benchmarks.ranking import seconds
from pipeline.foundation.evaluation.retrieval.nearest import Exact

QUERIES = (1, 4, 100)


def unit(count: int, dim: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, dim, generator=generator), dim=1)


def least(work: Callable[[], object], repeats: int) -> float:
    """The least of several times, in seconds, after one to warm up."""
    return min([seconds(work) for _ in range(repeats + 1)][1:])


def compare(count: int, dim: int, repeats: int) -> None:
    vectors, queries = unit(count, dim, 0), unit(max(QUERIES), dim, 1).numpy()
    rows: list[list[str | float]] = []
    for kind in (torch.float32, torch.float16):
        searched = vectors.to(kind).numpy()
        # numpy's sum of integers reads them as fast as memory gives them, whatever their type.
        words = searched.view(np.int64)
        times = {"reading once": least(lambda words=words: words.sum(), repeats)}  # type: ignore[misc]
        # The first query also measures the vectors, which warming up leaves out.
        index = Exact(searched)
        for asked in QUERIES:
            times[f"{asked} quer{'y' if asked == 1 else 'ies'}"] = least(
                lambda index=index, asked=asked: index.top(queries[:asked], 10),  # type: ignore[misc]
                repeats,
            )
        print(
            f"{count} vectors of {dim}, {searched.dtype}, 10 nearest, {torch.get_num_threads()} threads"
        )
        rows += [
            [f"{name}, {searched.dtype}", *values]
            for name, *values in report_ratios(times, "reading once")
        ]
    numbers.keep("search", RATIOS, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    compare(given.vectors, given.dim, given.repeats)


if __name__ == "__main__":
    main()

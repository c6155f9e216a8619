"""Ensembles of two stored matrices by the mean, by z-scores and by ranks; all in one run.

# 5,000 images x 25,000 captions, 1 GB of similarities on disk
python -m benchmarks.fusion
python -m benchmarks.fusion --images 1000
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks import numbers
from benchmarks.measure import RATIOS, report_ratios
from benchmarks.ranking import noisy_pairs, seconds
from pipeline.foundation.artefacts import making
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Collection, Embeddings, consecutive_captions
from pipeline.judge.systems.requests import ScoreRequest
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.made import Unknown
from pipeline.judge.systems.scores.system import System


def stored(path: Path, images: int, seed: int) -> System:
    """Similarities of one system, in a store."""
    pictures, captions = noisy_pairs(images, 64)
    pictures += 0.05 * torch.randn(pictures.shape, generator=torch.Generator().manual_seed(seed))
    shape = (images, 5 * images)
    pool = Collection(np.arange(shape[0]), np.arange(shape[1]), consecutive_captions(shape))
    with making(path, ScoreRequest(name=path.stem, split="test"), {}) as draft:
        assert draft is not None
        layout.write(draft, [Embeddings(pictures, captions)], pool, Unknown())
    return System.open(path)


def compare(images: int, repeats: int) -> None:
    """Each fusion to its metrics, the least of several times, in turn."""
    owner = consecutive_captions((images, 5 * images))
    with tempfile.TemporaryDirectory() as folder:
        stores = [stored(Path(folder, f"{seed}.zarr"), images, seed) for seed in range(2)]
        times: dict[str, list[float]] = {"mean": [], "zscore": [], "rank": []}
        for _ in range(repeats):
            for method, taken in times.items():
                taken.append(
                    seconds(lambda method=method: evaluate(fuse(stores, method).scores, owner))
                )  # type: ignore[misc]
    print(
        f"two members of {images} images x {5 * images} captions, {torch.get_num_threads()} threads"
    )
    numbers.keep(
        "fusion",
        RATIOS,
        report_ratios({method: min(taken) for method, taken in times.items()}, "mean"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    compare(given.images, given.repeats)


if __name__ == "__main__":
    main()

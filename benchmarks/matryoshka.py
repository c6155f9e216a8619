"""RSUM by the first numbers of the vectors: a head trained by `matryoshka`, and an ordinary one.

Also of the ordinary head's vectors after a rotation to their principal axes in train: that keeps
every similarity of whole vectors, and puts first what varies most. Prefixes are normalised anew.
Test is measured by the word "test" alone, after val.

    python -m benchmarks.matryoshka PROJECT DATASET ORDINARY MATRYOSHKA [test]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks import numbers
from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.evaluation.statistics import compare
from pipeline.foundation.settings.paths import Paths
from pipeline.make.training.head import HeadUse, OpenHead

DIMENSIONS = (16, 32, 64, 128, 256)
RSUM = next(statistic for statistic in STATISTICS if str(statistic) == "RSUM")
COLUMNS = (
    ("split", ""),
    ("numbers", ",.0f"),
    ("ordinary head", ".1f"),
    ("ordinary, principal axes", ".1f"),
    ("matryoshka", ".1f"),
    ("matryoshka − ordinary", ""),
    ("matryoshka − principal axes", ""),
)
Vectors = tuple[np.ndarray, np.ndarray]


def principal_axes(vectors: Vectors) -> np.ndarray:
    """The eigenvectors [d, d] of the second moments of both sides, the largest first."""
    moment = np.zeros((vectors[0].shape[1], vectors[0].shape[1]))
    for side in vectors:
        wide = side.astype(np.float64)
        moment += wide.T @ wide / len(wide)
    _, axes = np.linalg.eigh(moment)
    return axes[:, ::-1].astype(np.float32)


def measured(vectors: Vectors, dimension: int, caption_image: np.ndarray) -> Metrics:
    """Measure the first numbers of vectors, normalised anew."""
    cut = []
    for side in vectors:
        prefix = side[:, :dimension]
        lengths = np.linalg.norm(prefix, axis=1, keepdims=True)
        cut.append(prefix / np.maximum(lengths, 1e-12))
    return evaluate(Embeddings(*cut), caption_image)


def against(before: Metrics, after: Metrics) -> str:
    """The difference of RSUM with its paired interval over images."""
    change = compare(before, after)[RSUM].difference
    return f"{change.value:+.1f} [{change.low:+.1f}, {change.high:+.1f}]".replace("-", "−")


def main(root: str, dataset: str, ordinary: str, matryoshka: str, split: str = "val") -> None:
    """Print a row for each length of prefix."""
    paths = Paths(Path(root))
    heads = []
    for name in (ordinary, matryoshka):
        heads.append(OpenHead.open(HeadUse(paths, paths.head(dataset, name), dataset)))
    plain, nested = heads
    axes = principal_axes(plain.head.embed(plain.source, plain.split("train")))
    chosen = plain.split(split)
    images, captions = plain.head.embed(plain.source, chosen)
    systems = [
        (images, captions),
        (images @ axes, captions @ axes),
        nested.head.embed(nested.source, nested.split(split)),
    ]
    rows = []
    for dimension in DIMENSIONS:
        of_systems = [measured(vectors, dimension, chosen.caption_image) for vectors in systems]
        values = [metrics[RSUM] for metrics in of_systems]
        changes = [against(before, of_systems[2]) for before in of_systems[:2]]
        rows.append([split, dimension, *values, *changes])
    numbers.keep(f"matryoshka-{split}", COLUMNS, rows)
    print(numbers.table([name for name, _ in COLUMNS], numbers.shown(COLUMNS, rows)))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Where files lie below the root. The only place that knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.settings import Run


@dataclass(frozen=True)
class Layout:
    """root: everything that a command writes lies below it."""

    root: Path

    def manifest(self, dataset: str) -> Path:
        return self.root / "data" / f"{dataset}.parquet"

    def features(self, dataset: str, feature: str) -> Path:
        return self.root / "features" / dataset / f"{feature}.zarr"

    def head(self, dataset: str, name: str) -> Path:
        return self.root / "heads" / dataset / name

    def similarity(self, dataset: str, name: str) -> Path:
        return self.root / "similarities" / dataset / f"{name}.zarr"

    @property
    def digests(self) -> Path:
        return self.root / ".digests.json"

    @property
    def metrics(self) -> Path:
        return self.root / "results" / "metrics.json"

    @property
    def throughput(self) -> Path:
        return self.root / "results" / "throughput.json"

    @property
    def synthetic(self) -> Path:
        return self.root / "results" / "synthetic.json"

    @property
    def tables(self) -> Path:
        return self.root / "results" / "tables"

    @property
    def figures(self) -> Path:
        return self.root / "results" / "figures"

    @property
    def report(self) -> Path:
        return self.root / "results" / "report.html"


def system(recipe: str, feature: str, text: str, seed: int) -> str:
    """The name of a head of a feature, or of an ensemble such as RG."""
    return f"{recipe}-{feature}-{text}-s{seed}"


def ablations(run: Run) -> list[str]:
    """The names of the heads that are trained besides the run's axes."""
    alone = run.ablations
    return [system(recipe, alone.feature, alone.text, seed) for recipe in alone.recipes for seed in run.seeds]

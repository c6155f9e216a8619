"""Where files lie below the root. The only place that knows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pipeline.settings import Run

System: TypeAlias = tuple[str, str, str, int]
"""A head or an ensemble: recipe, feature or letters of features, text encoder, seed."""


@dataclass(frozen=True)
class Paths:
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
    def plan(self) -> Path:
        return self.root / "results" / "plan.json"

    @property
    def metrics(self) -> Path:
        return self.root / "results" / "metrics.json"

    @property
    def headline(self) -> Path:
        return self.root / "results" / "headline"

    @property
    def curves(self) -> Path:
        return self.root / "results" / "curves"

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


def systems(run: Run) -> dict[str, System]:
    """The run's heads and ensembles by name, ablations last. Ensembles of features that it leaves out are not there."""
    visuals = [*run.features, *(name for name in run.ensembles if name not in run.left_out)]
    axes = [(recipe, visual, text, seed)
            for recipe, text, seed, visual in product(run.recipes, run.texts, run.seeds, visuals)]
    ablations = product(run.ablations, run.features[:1], run.texts[:1], run.seeds)
    return {system(*each): each for each in (*axes, *ablations)}


def heads(run: Run) -> dict[str, System]:
    """The run's heads by name."""
    return {name: each for name, each in systems(run).items() if each[1] in run.features}


def ensembles(run: Run) -> dict[str, System]:
    """The run's ensembles by name."""
    return {name: each for name, each in systems(run).items() if each[1] not in run.features}

"""Paths of all files below the root. No other module composes them, and no name leads out of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pipeline.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.settings.run import Rerank, Rescore, Run

System: TypeAlias = tuple[str, str, str, int]
"""A head or an ensemble: recipe, feature or letters of features, text encoder, seed."""


@dataclass(frozen=True)
class Paths:
    """Where files lie."""

    root: Path  # everything that a command writes lies below it

    def manifest(self, dataset: str) -> Path:
        """The manifest of a data set.

        Args:
            dataset: Its name.

        Returns:
            The file.
        """
        return self.root / "data" / f"{_name(dataset)}.parquet"

    def remembered(self, dataset: str) -> Path:
        """What a manifest was made of, by which `pipeline manifest` sees that nothing changed.

        Args:
            dataset: The data set's name.

        Returns:
            The folder.
        """
        return self.root / "data" / f".{_name(dataset)}"

    def features(self, dataset: str, feature: str) -> Path:
        """The store of a feature.

        Args:
            dataset: The data set's name.
            feature: The feature's name.

        Returns:
            The store.
        """
        return self.root / "features" / _name(dataset) / f"{feature}.zarr"

    def head(self, dataset: str, name: str) -> Path:
        """The folder of a head.

        Args:
            dataset: The data set's name.
            name: The head's name.

        Returns:
            The folder.
        """
        return self.root / "heads" / _name(dataset) / _name(name)

    def similarity(self, dataset: str, name: str, split: str) -> Path:
        """The similarities of a system. Scores of one split never replace those of another.

        Args:
            dataset: The data set's name.
            name: The system's name.
            split: The split that is ranked; all but test have folders of their own.

        Returns:
            The store.
        """
        folder = self.root / "similarities" / _name(dataset)
        return (folder if split == "test" else folder / _name(split)) / f"{_name(name)}.zarr"

    def embeddings(self, dataset: str, trained_on: str, head: str) -> Path:
        """The embeddings of a data set by a head.

        Args:
            dataset: The data set that is embedded.
            trained_on: What the head was trained on.
            head: The head's name.

        Returns:
            The store.
        """
        return self.encoded(dataset, f"{trained_on}-{head}")

    def encoded(self, dataset: str, encoder: str) -> Path:
        """The embeddings of a data set by a dual encoder.

        Args:
            dataset: The data set that is embedded.
            encoder: What the encoder is called.

        Returns:
            The store.
        """
        return self.root / "embeddings" / _name(dataset) / f"{_name(encoder)}.zarr"

    @property
    def digests(self) -> Path:
        """Remembered digests of large files."""
        return self.root / ".digests.json"

    @property
    def plan(self) -> Path:
        """The resolved settings and digests that stages depend on."""
        return self.root / "results" / "plan.json"

    @property
    def plans(self) -> Path:
        """The folder of the plan's parts, a file for each step."""
        return self.root / "results" / "plan"

    @property
    def metrics(self) -> Path:
        """Measured numbers of all systems."""
        return self.root / "results" / "metrics.json"

    @property
    def recorded(self) -> Path:
        """Measured numbers of single stores: larger pools, zero-shot."""
        return self.root / "results" / "recorded.json"

    @property
    def headline(self) -> Path:
        """The folder of headline numbers for `dvc metrics show`."""
        return self.root / "results" / "headline"

    @property
    def curves(self) -> Path:
        """The folder of learning curves."""
        return self.root / "results" / "curves"

    @property
    def throughput(self) -> Path:
        """Measured times."""
        return self.root / "results" / "throughput.json"

    @property
    def claims(self) -> Path:
        """Which of the papers' claims hold, by `pipeline study`; beside it the same as Markdown."""
        return self.root / "results" / "claims.json"

    @property
    def synthetic(self) -> Path:
        """Errors of learned pooling patterns."""
        return self.root / "results" / "synthetic.json"

    @property
    def tables(self) -> Path:
        """The folder of tables."""
        return self.root / "results" / "tables"

    @property
    def figures(self) -> Path:
        """The folder of figures."""
        return self.root / "results" / "figures"

    @property
    def report(self) -> Path:
        """The report page."""
        return self.root / "results" / "report.html"


def _name(name: str) -> str:
    """A name as a part of a path."""
    if name == ".." or "/" in name:
        raise InputError(f"{name!r}: no such file, and a name has no / in it")
    return name


def system(recipe: str, feature: str, text: str, seed: int) -> str:
    """Name a head or an ensemble.

    Args:
        recipe: Its recipe.
        feature: Its feature, or the letters of an ensemble such as RG.
        text: Its text encoder.
        seed: Its seed.

    Returns:
        The name.
    """
    return f"{recipe}-{feature}-{text}-s{seed}"


def systems(run: Run) -> dict[str, System]:
    """List the run's heads and ensembles and its dual encoders, then these rescored and reranked, ablations last.

    A dual encoder has no recipe, feature or seed: its name stands for the recipe.

    Ensembles with features that the run leaves out are not listed.

    Args:
        run: The settings.

    Returns:
        Name -> system.
    """
    visuals = [*run.features, *(name for name in run.ensembles if name not in run.left_out)]
    axes = [(recipe, visual, text, seed)
            for recipe, text, seed, visual in product(run.recipes, run.texts, run.seeds, visuals)]
    ablations = product(run.ablations, run.features[:1], run.texts[:1], run.seeds)
    made = {system(*each): each for each in axes}
    made |= {encoder.name: (encoder.name, "", "zero-shot", 0) for encoder in run.encoders}
    again = {step.applied_to(name): each for name, each in made.items() for step in run.rescorers}
    again |= {step.applied_to(name): each for name, each in made.items() for step in run.rerank
              if step.retriever == each[1]}
    return made | again | {system(*each): each for each in ablations}


def heads(run: Run) -> dict[str, System]:
    """List the run's heads.

    Args:
        run: The settings.

    Returns:
        Name -> head.
    """
    return {name: each for name, each in systems(run).items() if each[1] in run.features and name == system(*each)}


def ensembles(run: Run) -> dict[str, System]:
    """List the run's ensembles.

    Args:
        run: The settings.

    Returns:
        Name -> ensemble.
    """
    return {name: each for name, each in systems(run).items() if each[1] not in run.features and name == system(*each)}


def rescored(run: Run) -> dict[str, tuple[str, Rescore]]:
    """List the run's rescored systems.

    Args:
        run: The settings.

    Returns:
        Name -> the system that is rescored, and the rescorer.
    """
    known = systems(run)
    pairs = {step.applied_to(name): (name, step) for name in known for step in run.rescorers}
    return {name: pair for name, pair in pairs.items() if name in known}


def reranked(run: Run) -> dict[str, tuple[str, str, Rerank]]:
    """List the run's reranked systems.

    Args:
        run: The settings.

    Returns:
        Name -> the retriever, the scorer, and the step.
    """
    known, found = systems(run), {}
    for name, (recipe, visual, text, seed) in known.items():
        for step in run.rerank:
            if step.retriever == visual and (made := step.applied_to(name)) in known:
                other = system(recipe, step.scorer, text, seed)
                found[made] = name, other if other in known else step.scorer, step
    return found

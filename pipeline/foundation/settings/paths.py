"""Paths of all files below the root. No other module composes them, and no name leads out of its
folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.foundation.settings.run import Encoder, Rerank, Rescore, Run


class RunSystem(NamedTuple):
    """A head, an ensemble or a dual encoder of the run, or what a rescored or reranked system is
    made of.
    """

    recipe: str  # of a dual encoder its name
    visual: str  # a feature, or an ensemble's letters
    text: str
    seed: int

    @property
    def name(self) -> str:
        """Its name, before it is rescored or reranked."""
        return system_name(*self)


class _File:
    """A file or folder that has the same place below every root."""

    def __init__(self, *place: str) -> None:
        self.place = place

    def __get__(self, paths: Paths, owner: type[Paths]) -> Path:
        return paths.root.joinpath(*self.place)


@dataclass(frozen=True)
class Paths:
    """Where files are."""

    root: Path  # everything that a command writes lies below it

    digests = _File(".digests.json")  # remembered digests of large files
    plan = _File("results", "plan")  # the folder of the plan, a file for each step
    metrics = _File("results", "metrics.json")  # measured numbers of all systems
    recorded = _File(
        "results", "recorded.json"
    )  # measured numbers of single stores: larger pools, zero-shot
    headline = _File("results", "headline")  # the folder of headline numbers for `dvc metrics show`
    curves = _File("results", "curves")  # the folder of learning curves
    throughput = _File("results", "throughput.json")  # measured times
    claims = _File(
        "results", "claims.json"
    )  # which of the papers' claims hold; beside it the same as Markdown
    synthetic = _File("results", "synthetic.json")  # errors of learned pooling patterns
    tables = _File("results", "tables")  # the folder of tables
    figures = _File("results", "figures")  # the folder of figures
    report = _File("results", "report.html")  # the report page

    def manifest(self, dataset: str) -> Path:
        """The manifest of a data set."""
        return self.root / "data" / f"{plain(dataset)}.parquet"

    def remembered(self, dataset: str) -> Path:
        """The folder beside a manifest: its recorded inputs, photographs' checksums, digests and
        list of images.
        """
        return self.root / "data" / f".{plain(dataset)}"

    def left_out(self, dataset: str) -> Path:
        """The list of what a data set's annotations have and its manifest leaves out."""
        return self.remembered(dataset) / "left_out.csv"

    def features(self, dataset: str, feature: str) -> Path:
        """The store of a feature."""
        return self.root / "features" / plain(dataset) / f"{plain(feature)}.zarr"

    def head(self, dataset: str, name: str) -> Path:
        """The folder of a head."""
        return self.root / "heads" / plain(dataset) / plain(name)

    def tuned(self, dataset: str, name: str) -> Path:
        """The folder of a dual encoder that was trained on a data set."""
        return self.root / "encoders" / plain(dataset) / plain(name)

    def exported(self, dataset: str, name: str) -> Path:
        """The folder of a head that is written for another library."""
        return self.root / "exported" / plain(dataset) / plain(name)

    def similarity(self, dataset: str, name: str, split: str) -> Path:
        """The store of a system's similarities; splits other than test have folders of their
        own.
        """
        folder = self.root / "similarities" / plain(dataset)
        return (folder if split == "test" else folder / plain(split)) / f"{plain(name)}.zarr"

    def embeddings(self, dataset: str, trained_on: str, head: str) -> Path:
        """The embeddings of a data set by a head that was trained on the same data set or another
        one.
        """
        return self.encoded(dataset, f"{trained_on}-{head}")

    def encoded(self, dataset: str, encoder: str) -> Path:
        """The embeddings of a data set by a dual encoder."""
        return self.root / "embeddings" / plain(dataset) / f"{plain(encoder)}.zarr"


def plain(name: str) -> str:
    """A name as a part of a path, which leads nowhere else.

    Raises:
        InputError: If it is no name of one file or folder. Names also come from records.
    """
    if ":" in name:
        raise InputError(
            f"{name!r}: is a model, and a name was expected: `pipeline embed` makes its vectors, "
            "`pipeline score` their scores; give the name of these"
        )
    if name in (".", "..") or "/" in name or "\0" in name:
        raise InputError(
            f"{name!r}: there is no such file, and a name cannot be . or .. or contain /"
        )
    return name


def system_name(recipe: str, visual: str, text: str, seed: int | None = None) -> str:
    """Name a head or an ensemble, or all its seeds. For an ensemble, `visual` is the letters of its
    features.
    """
    return (
        f"{recipe}-{visual}-{text}"
        if seed is None
        else of_seed(system_name(recipe, visual, text), seed)
    )


def of_seed(series: str, seed: int) -> str:
    """Name one of several seeds."""
    return f"{series}-s{seed}"


def systems(run: Run) -> dict[str, RunSystem]:
    """List the run's heads and ensembles and its dual encoders, then these rescored and reranked,
    ablations last.

    A dual encoder has no recipe, feature or seed: its name is also the recipe's.

    Ensembles with features that the run leaves out are not listed.
    """
    visuals = [*run.features, *(name for name in run.ensembles if name not in run.left_out)]
    axes = [
        RunSystem(recipe, visual, text, seed)
        for recipe, text, seed, visual in product(run.recipes, run.texts, run.seeds, visuals)
    ]
    first_systems = {system.name: system for system in axes}
    for encoder in run.encoders:
        text = "fine-tuned" if encoder.finetune else "zero-shot"
        first_systems[encoder.name] = RunSystem(encoder.name, "", text, 0)
    again: dict[str, RunSystem] = {}
    for name, system in first_systems.items():
        for rescorer in run.rescorers:
            again[rescorer.applied_to(name)] = system
    for name, system in first_systems.items():
        for reranking in run.rerank:
            if reranking.retriever == system.visual:
                again[reranking.applied_to(name)] = system
    ablations: dict[str, RunSystem] = {}
    for axis in product(run.ablations, run.features[:1], run.texts[:1], run.seeds):
        system = RunSystem._make(axis)
        ablations[system.name] = system
    return first_systems | again | ablations


def encoders(paths: Paths, run: Run) -> list[Encoder]:
    """List the run's dual encoders as they are measured: of one that is trained on, what that
    makes.
    """
    measured: list[Encoder] = []
    for encoder in run.encoders:
        if encoder.finetune:
            model = f"tuned:{paths.tuned(run.dataset, encoder.name)}"
            measured.append(encoder.model_copy(update={"model": model, "finetune": None}))
        else:
            measured.append(encoder)
    return measured


def heads(run: Run) -> dict[str, RunSystem]:
    """List the run's heads."""
    return {
        name: system
        for name, system in systems(run).items()
        if system.visual in run.features and name == system.name
    }


def ensembles(run: Run) -> dict[str, RunSystem]:
    """List the run's ensembles."""
    return {
        name: system
        for name, system in systems(run).items()
        if system.visual in run.ensembles and name == system.name
    }


def rescored(run: Run) -> dict[str, tuple[str, Rescore]]:
    """List the run's rescored systems: name -> the system that is rescored, and the rescorer."""
    known = systems(run)
    pairs = {step.applied_to(name): (name, step) for name in known for step in run.rescorers}
    return {name: pair for name, pair in pairs.items() if name in known}


def reranked(run: Run) -> dict[str, tuple[str, str, Rerank]]:
    """List the run's reranked systems: name -> the retriever, the scorer, and the step."""
    known = systems(run)
    reranked_systems: dict[str, tuple[str, str, Rerank]] = {}
    for name, (recipe, visual, text, seed) in known.items():
        for step in run.rerank:
            if step.retriever != visual:
                continue
            reranked_name = step.applied_to(name)
            if reranked_name not in known:
                continue
            scorer = system_name(recipe, step.scorer, text, seed)
            if scorer not in known:
                scorer = step.scorer
            reranked_systems[reranked_name] = (name, scorer, step)
    return reranked_systems

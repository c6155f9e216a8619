"""Results measured here: systems of `results/metrics.json`, checked, over their seeds, with what
made each.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any, NamedTuple

from pipeline.foundation.evaluation.metrics.base import (
    RSUM,
    STATISTICS,
    TASKS,
    Statistic,
    at,
    flat,
)
from pipeline.foundation.evaluation.statistics import ImageHits
from pipeline.foundation.files.left_out import by_reason
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Recipe
from pipeline.foundation.settings.features import FEATURES
from pipeline.foundation.settings.loading import SIDES, shipped_recipe
from pipeline.judge.systems.scores.made import (
    FINE_TUNED,
    GIVEN,
    ZERO_SHOT,
    Ensemble,
    Made,
    Member,
    Reranked,
    differences,
)
from pipeline.judge.tables.bold import TestedColumn
from pipeline.judge.tables.table import Cell, number
from pipeline.run.provenance.results import Result
from pipeline.run.report import names

# The sections of systems that no head of this pipeline made: pretrained dual encoders, whose rows
# are never bold, for they were trained on other data than the others; and systems with scores from
# elsewhere. An entry of `Origin.rerank`: the scorer is a network of its own, which is not among the
# members.
SEPARATE = "separate"


@dataclass(frozen=True)
class Origin:
    """What a number was measured on and with, all but the seed."""

    dataset: str
    split: str  # The split that was ranked
    manifest: str  # Digest of the data set's manifest
    protocol: str
    images: int
    captions: int
    recipe: str
    visual: str  # The ensemble or feature as letters: R, G, P, RG or RGP
    text: str
    features: tuple[tuple[str, str], ...]  # (feature, name of what made its store) pairs
    # The features that an untrained network made; none for a published head, which brings its own
    # network.
    untrained: tuple[str, ...]
    # What was done to the scores after the ensemble, in order, e.g. ("rerank (with RGP, k 20)",).
    steps: tuple[str, ...] = ()
    # The data set that its heads were trained on, if it is another one; "" otherwise.
    trained_on: str = ""
    distractors: tuple[str, ...] = ()  # The distractors in the pool, a text for each data set
    # Whether a step read the test queries together, so that a query's ranks depend on the others.
    transductive: bool = False
    # The settings of the last step, if that reranked: (name, value) pairs such as ("k", 20); ()
    # otherwise.
    rerank: tuple[tuple[str, Any], ...] = ()
    competes: bool = True  # Whether its numbers may be bold
    # The section of its rows, such as `ZERO_SHOT`, if no head of this pipeline made it: it has no
    # features, and its recipe is its name. "" otherwise.
    section: str = ""
    # What was left out of the data set or the pool, in words; "" if nothing was.
    lacks: str = field(default="", compare=False)

    @property
    def benchmark(self) -> str | None:
        """The papers' test set that this repeats, or None."""
        if self.split != "test":
            return None
        benchmark: str | None = names.NAMES["benchmarks"].get(f"{self.dataset} {self.protocol}")
        return benchmark


@dataclass(frozen=True)
class MeasuredSystem:
    """One system, over its seeds."""

    origin: Origin  # What it was measured on and with
    systems: tuple[str, ...]  # Its names in `results/metrics.json`, by seed
    # One number for each seed, in the order of `systems`; of each language its mR.
    values: Mapping[Statistic, tuple[float, ...]]
    # The heads behind the first seed's numbers; those of the other seeds differ in nothing but the
    # seed.
    members: tuple[Member, ...]
    # The input of paired tests, where the hits of each image were kept of all seeds.
    tested: Mapping[Statistic, TestedColumn] = field(default_factory=dict)
    # The methods that its head's recipe is but for the poolings, whatever the recipe's name is.
    but_for_pooling: tuple[str, ...] = ()

    def mean(self, column: Statistic) -> float:
        """The mean over the seeds."""
        return fmean(self.values[column])

    def spread(self, column: Statistic) -> float | None:
        """The sample standard deviation over the seeds, None for a single one."""
        values = self.values[column]
        if len(values) < 2:
            return None
        return stdev(values)

    def cell(self, column: Statistic, interval: Sequence[float] | None = None) -> Cell:
        """The cell of a number: its mean over seeds with their deviation, or one seed's number with
        its interval.
        """
        spread = self.spread(column)
        if spread is not None:
            interval = None
        return number(self.mean(column), interval, spread)

    @property
    def part(self) -> str:
        """CE, EMB, JOIN+EMB, JOIN+CE, JOIN+CO or SEP+CO of Geigle et al.; "" with heads that are no
        cross-encoders.
        """
        tasks_of_heads = [tasks(member.settings) for member in self.members]
        if not tasks_of_heads or not all(tasks_of_heads):
            return ""
        first_tasks = tasks_of_heads[0]
        rerank = dict(self.origin.rerank)
        if not rerank and len(first_tasks) == 2:
            return "JOIN+EMB"
        if not rerank:
            return next(iter(first_tasks)).upper()
        if len(tasks_of_heads) > 1 or SEPARATE in rerank:
            return "SEP+CO"
        if rerank.get("k") == "all":
            return "JOIN+CE"
        return "JOIN+CO"

    def label(self, with_part: bool = True) -> str:
        """Its name in a row: "VSE∞ (Region, BiGRU)", or with the part of a cross-encoder "CE (emb,
        Region, BERT)".
        """
        origin = self.origin
        if origin.section:
            return names.of_others(self.members)
        method = names.method(origin.recipe, origin.visual)
        features = f"{names.features(origin.visual)}, {names.encoder(origin.text)}"
        if with_part and self.part:
            return f"{self.part} ({method}, {features})"
        return f"{method} ({features})"


@dataclass(frozen=True)
class Results:
    """All that was measured here."""

    systems: tuple[MeasuredSystem, ...]  # What was evaluated
    # The parsed `results/throughput.json`, {} where nothing was timed.
    throughput: Mapping[str, Any] = field(default_factory=dict)
    # Errors on synthetic pooling patterns, one mapping for each generator and pattern, with the
    # columns of `vse_infty_table11.csv`.
    synthetic: Sequence[Mapping[str, Any]] = ()
    # Systems of larger pools, and those whose heads were trained on other data. No other table has
    # them.
    recorded: tuple[MeasuredSystem, ...] = ()


def outside_benchmarks(systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
    """The systems that repeat no benchmark, by test set.

    A system that was evaluated by several protocols is shown by `all`, else by the first. One that
    also has a benchmark's protocol is left out, as it is under the benchmark's headings.
    """
    protocols: dict[Origin, list[MeasuredSystem]] = defaultdict(list)
    for system in systems:
        origin = replace(system.origin, protocol="", images=0, captions=0)
        protocols[origin].append(system)
    test_sets: dict[tuple[str, str, str, str, int, int], list[MeasuredSystem]] = defaultdict(list)
    for measured in protocols.values():
        if any(system.origin.benchmark for system in measured):
            continue
        chosen = _of_all(measured)
        origin = chosen.origin
        pool = (origin.protocol, origin.images, origin.captions)
        test_set = (origin.dataset, origin.split, origin.manifest, *pool)
        test_sets[test_set].append(chosen)
    return list(test_sets.values())


def _of_all(measured: Sequence[MeasuredSystem]) -> MeasuredSystem:
    """The measurement by the protocol `all`, else the first."""
    for system in measured:
        if system.origin.protocol == "all":
            return system
    return measured[0]


def tasks(settings: Mapping[str, Any]) -> frozenset[str]:
    """The tasks that a cross-encoder was trained for, of {"emb", "ce"}; empty for other heads."""
    architecture = settings.get("architecture") or {}
    if architecture.get("name") != "cross":
        return frozenset()
    # ANCE trains embeddings too, by near negatives.
    return frozenset(settings.get("tasks") or ["emb"]) - {"ance"}


def read_metrics(metrics: Mapping[str, Result]) -> tuple[MeasuredSystem, ...]:
    """Read the evaluated systems of `results/metrics.json`, in its order.

    A lone head and a one-member ensemble of the same seed are the same measurement: the ensemble is
    kept. So are two systems of one seed that differ in their names alone: the first is kept. A
    second one with other numbers, such as a head of another d, goes by its own name. InputError if
    a metric is missing or not finite, or if seeds of a system differ in settings.
    """
    by_origin: dict[Origin, dict[int, _Run]] = defaultdict(dict)
    for system, result, protocol, scores in _evaluations(metrics):
        run = _run(system, result, protocol, scores)
        origin = run.system.origin
        run_of_seed = by_origin[origin].get(run.seed)
        if run_of_seed is None:
            by_origin[origin][run.seed] = run
        elif run_of_seed.is_lone == run.is_lone and run_of_seed.system.values != run.system.values:
            origin_by_name = replace(origin, recipe=system)
            renamed = replace(run.system, origin=origin_by_name)
            by_origin[origin_by_name][run.seed] = run._replace(system=renamed)
        elif run_of_seed.is_lone:
            by_origin[origin][run.seed] = run
    measured_systems = []
    for by_seed in by_origin.values():
        systems = [by_seed[seed].system for seed in sorted(by_seed)]
        measured_systems.append(_over_seeds(systems))
    return tuple(_with_methods(measured_systems))


def _with_methods(systems: Sequence[MeasuredSystem]) -> Iterator[MeasuredSystem]:
    """Systems with the methods from which they differ in their poolings alone: as these ship, or as
    they were measured here.
    """
    as_methods: dict[str, list[dict[str, Any]]] = {}
    for method in names.METHODS:
        shipped = shipped_recipe(method)
        if shipped is not None:
            as_methods[method] = [but_for_pooling(shipped.recorded())]
    for system in systems:
        if system.origin.recipe in as_methods and system.members:
            settings = but_for_pooling(system.members[0].settings)
            as_methods[system.origin.recipe].append(settings)
    for system in systems:
        methods = []
        for method, as_method in as_methods.items():
            settings_of_heads = [but_for_pooling(member.settings) for member in system.members]
            if settings_of_heads and all(settings in as_method for settings in settings_of_heads):
                methods.append(method)
        yield replace(system, but_for_pooling=tuple(methods))


def but_for_pooling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe without its poolings."""
    return {
        key: value
        for key, value in settings.items()
        if key in Recipe.model_fields and key not in SIDES
    }


def _evaluations(
    metrics: Mapping[str, Result],
) -> Iterator[tuple[str, Result, str, Mapping[str, Any]]]:
    """(system, its result, protocol, scores) for each system and protocol."""
    for system, result in metrics.items():
        for protocol, scores in result.numbers.items():
            yield system, result, protocol, scores
        numbers_of_5k = result.numbers.get("coco_5k", {})
        if "cxc" in numbers_of_5k.get("extended", {}):
            cxc = numbers_of_5k["extended"]["cxc"]
            yield system, result, "cxc", {**numbers_of_5k, "cxc": cxc}


def _over_seeds(runs: Sequence[MeasuredSystem]) -> MeasuredSystem:
    first_seed, *other_seeds = runs
    for run in other_seeds:
        difference = differences(first_seed.members, run.members)
        if difference:
            raise InputError(
                f"metrics of {first_seed.systems[0]!r} and {run.systems[0]!r} are no seeds of one system: "
                f"{difference}; train and score them alike, or leave one's seed out of run.seeds, and evaluate "
                "again"
            )
    values_of_columns = {}
    for column in first_seed.values:
        if all(column in run.values for run in other_seeds):
            values_of_columns[column] = tuple(run.values[column][0] for run in runs)
    tested_columns = {}
    for column, tested in first_seed.tested.items():
        if all(column in run.tested for run in other_seeds):
            hits = tuple(run.tested[column].runs[0] for run in runs)
            tested_columns[column] = replace(tested, runs=hits)
    systems = tuple(run.systems[0] for run in runs)
    return replace(first_seed, systems=systems, values=values_of_columns, tested=tested_columns)


def _reading(what: str) -> AbstractContextManager[None]:
    """Refuse malformed content of results/metrics.json in one line."""
    return refusing(
        (AttributeError, KeyError, TypeError, ValueError),
        lambda error: f"{what} cannot be read at {error}; run `pipeline evaluate` again",
    )


class _Run(NamedTuple):
    """One system by one protocol."""

    seed: int
    is_lone: bool  # whether it is a head or dual encoder by itself, not an ensemble
    system: MeasuredSystem


def _run(name: str, result: Result, protocol: str, scores: Mapping[str, Any]) -> _Run:
    made = result.made
    with _reading(f"metrics of {name!r}"):
        origin = _origin(result, protocol, scores)
    where = f"metrics of {name}, {protocol}"
    with _reading(where):
        values = {column: (float(value),) for column, value in _columns(scores).items()}
    for column, (value,) in values.items():
        if not math.isfinite(value):
            raise InputError(
                f"{where}: {column} is not a finite number; run `pipeline evaluate` again"
            )
    with _reading(f"the hits of each image of {name!r}"):
        tested = _tested(result.hits.get(protocol, {}))
    system = MeasuredSystem(origin, (name,), values, _members(name, made), tested)
    return _Run(made.seed or 0, not isinstance(made.origin, Ensemble), system)


def _origin(result: Result, protocol: str, scores: Mapping[str, Any]) -> Origin:
    made = result.made
    features = []
    for feature in FEATURES:
        if feature in made.features:
            features.append((feature, made.features[feature]))
    trained_on = ""
    if made.training_data != made.dataset:
        trained_on = made.training_data
    distractors = []
    for pool in result.request.distractors:
        dataset = names.dataset(pool.dataset)
        distractors.append(f"{pool.images:,} images and {pool.captions:,} captions of {dataset}")
    return Origin(
        dataset=made.dataset,
        split=str(made.split),
        manifest=str(made.manifest),
        protocol=protocol,
        images=int(scores["images"]),
        captions=int(scores["captions"]),
        recipe=made.recipe or names.SEVERAL["recipe"],
        visual=made.letters,
        text=made.text or names.SEVERAL["text"],
        features=tuple(features),
        untrained=tuple(sorted(made.untrained)),
        steps=names.steps(made),
        trained_on=trained_on,
        distractors=tuple(distractors),
        transductive=made.has_seen_queries,
        competes=made.competes,
        rerank=_rerank(made),
        lacks=by_reason(scores.get("left_out", {})),
        section=_section(made),
    )


def _tested(kept_hits: Mapping[str, Any]) -> dict[Statistic, TestedColumn]:
    """What paired tests need, from the hits of each image that were kept."""
    hits = ImageHits(kept_hits)
    tested = {}
    if kept_hits:
        for column in STATISTICS:
            tested[column] = TestedColumn((hits,), column)
    for language, language_hits in kept_hits.get("languages", {}).items():
        tested[Statistic(language, "mR")] = TestedColumn((ImageHits(language_hits),), RSUM)
    return tested


def _section(made: Made) -> str:
    if made.letters:
        return ""
    if all(member.is_head for member in made.members):
        raise ValueError("features ''")
    if any(member.given for member in made.members):
        return GIVEN
    if any(member.encoder and member.encoder.get("tuned_on") for member in made.members):
        return FINE_TUNED
    return ZERO_SHOT


def _rerank(made: Made) -> tuple[tuple[str, Any], ...]:
    if not isinstance(made, Reranked):
        return ()
    rerank_settings = tuple((key, value) for key, value in made.step.items() if key != "name")
    # A stored system as the scorer is among the members; a head that scores pairs, or a network of
    # pixels, is not.
    if made.scorer.is_system or made.scorer.checkpoint in made.checkpoints:
        return rerank_settings
    return (*rerank_settings, (SEPARATE, True))


def _members(name: str, made: Made) -> tuple[Member, ...]:
    heads = {member.feature for member in made.members if member.is_head}
    if heads != made.features.keys():
        raise InputError(
            f"metrics of {name!r} do not say which networks and settings made them; run `pipeline "
            "evaluate` again"
        )
    return tuple(made.members)


def _columns(scores: Mapping[str, Any]) -> dict[Statistic, Any]:
    """The numbers of both directions, RSUM, and mR of each language; or CxC's recalls."""
    if "cxc" in scores:
        recalls = {way: numbers for way, numbers in scores["cxc"].items() if way in TASKS}
        return flat(recalls)
    columns: dict[Statistic, Any] = {statistic: at(scores, statistic) for statistic in STATISTICS}
    columns |= flat({direction: scores[direction] for direction in ("i2t", "t2i")})
    for language, of_language in scores.get("languages", {}).items():
        columns[Statistic(language, "mR")] = of_language["mR"]
    return columns

"""Results measured here: systems of `results/metrics.json`, checked, over their seeds, with what
made each.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from pipeline.evaluation.metrics.numbers import RSUM, STATISTICS, TASKS, Statistic, at, flat
from pipeline.evaluation.statistics import ImageHits
from pipeline.files.left_out import by_reason
from pipeline.parts.errors import InputError, refusing
from pipeline.provenance.results import Result
from pipeline.report import names
from pipeline.report.table import Cell, number
from pipeline.settings.features import FEATURES
from pipeline.systems.scores.made import FINE_TUNED, GIVEN, ZERO_SHOT, Made, Member, differences

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
    trained_on: str = (
        ""  # The data set that its heads were trained on, if it is another one; "" otherwise
    )
    distractors: tuple[str, ...] = ()  # The distractors in the pool, a text for each data set
    # Whether a step read the test queries together, so that a query's ranks depend on the others.
    transductive: bool = False
    # The settings of the last step, if that reranked: (name, value) pairs such as ("k", 20); ()
    # otherwise.
    rerank: tuple[tuple[str, Any], ...] = ()
    # The section of its rows, such as `ZERO_SHOT`, if no head of this pipeline made it: it has no
    # features, and its recipe is its name. "" otherwise.
    section: str = ""
    # What was left out of the data set or the pool, in words; "" if nothing was.
    lacks: str = field(default="", compare=False)

    @property
    def benchmark(self) -> str | None:
        """The papers' test set that this repeats, or None."""
        return (
            names.NAMES["benchmarks"].get(f"{self.dataset} {self.protocol}")
            if self.split == "test"
            else None
        )


@dataclass(frozen=True)
class TestedColumn:
    """The input of a paired test of one column, for one system."""

    hits: ImageHits  # of each image
    statistic: Statistic  # which of `STATISTICS` the column shows, perhaps divided by a number


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
    # The input of paired tests, for a single seed whose hits of each image were kept.
    tested: Mapping[Statistic, TestedColumn] = field(default_factory=dict)

    def mean(self, column: Statistic) -> float:
        """The mean over the seeds."""
        return fmean(self.values[column])

    def spread(self, column: Statistic) -> float | None:
        """The sample standard deviation over the seeds, None for a single one."""
        values = self.values[column]
        return stdev(values) if len(values) > 1 else None

    def cell(self, column: Statistic, interval: Sequence[float] | None = None) -> Cell:
        """The cell of a number: its mean over seeds with their deviation, or one seed's number with
        its interval.
        """
        spread = self.spread(column)
        return number(self.mean(column), interval if spread is None else None, spread)

    @property
    def part(self) -> str:
        """CE, EMB, JOIN+EMB, JOIN+CE, JOIN+CO or SEP+CO of Geigle et al.; "" with heads that are no
        cross-encoders.
        """
        of_heads = [tasks(member.settings) for member in self.members]
        if not of_heads or not all(of_heads):
            return ""
        joint, rerank = len(of_heads[0]) == 2, dict(self.origin.rerank)
        if not rerank:
            return "JOIN+EMB" if joint else next(iter(of_heads[0])).upper()
        if len(of_heads) == 1 and SEPARATE not in rerank:
            return "JOIN+CE" if rerank.get("k") == "all" else "JOIN+CO"
        return "SEP+CO"

    def label(self, with_part: bool = True) -> str:
        """Its name in a row: "VSE∞ (Region, BiGRU)", or with the part of a cross-encoder "CE (emb,
        Region, BERT)".
        """
        o, part = self.origin, self.part if with_part else ""
        if o.section:
            return names.of_others(self.members)
        parts = (
            names.method(o.recipe, o.visual),
            f"{names.features(o.visual)}, {names.encoder(o.text)}",
        )
        return f"{part} ({', '.join(parts)})" if part else "{} ({})".format(*parts)


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
        protocols[replace(system.origin, protocol="", images=0, captions=0)].append(system)
    test_sets: dict[tuple[str, str, str, str, int, int], list[MeasuredSystem]] = defaultdict(list)
    for measured in protocols.values():
        if not any(system.origin.benchmark for system in measured):
            chosen = next(
                (system for system in measured if system.origin.protocol == "all"), measured[0]
            )
            o = chosen.origin
            test_sets[o.dataset, o.split, o.manifest, o.protocol, o.images, o.captions].append(
                chosen
            )
    return list(test_sets.values())


def tasks(settings: Mapping[str, Any]) -> frozenset[str]:
    """The tasks that a cross-encoder was trained for, of {"emb", "ce"}; empty for other heads."""
    if (settings.get("architecture") or {}).get("name") != "cross":
        return frozenset()
    return frozenset(settings.get("tasks") or ["emb"]) - {
        "ance"
    }  # embeddings too, by near negatives


def read_metrics(metrics: Mapping[str, Result]) -> tuple[MeasuredSystem, ...]:
    """Read the evaluated systems of `results/metrics.json`, in its order.

    A lone head and a one-member ensemble of the same seed are the same measurement: the ensemble is
    kept. So are two systems of one seed that differ in their names alone: the first is kept. A
    second one with other numbers, such as a head of another d, goes by its own name. InputError if
    a metric is missing or not finite, or if seeds of a system differ in settings.
    """
    by_origin: dict[Origin, dict[int, tuple[bool, MeasuredSystem]]] = defaultdict(dict)
    for name, result, protocol, scores in _evaluations(metrics):
        lone = result.made.ensemble is None
        seed, run = _run(name, result, protocol, scores)
        before = by_origin[run.origin].get(seed)
        if before and before[0] == lone and before[1].values != run.values:
            apart = replace(run.origin, recipe=name)
            by_origin[apart][seed] = lone, replace(run, origin=apart)
        elif before is None or before[0]:
            by_origin[run.origin][seed] = lone, run
    return tuple(
        _over_seeds([runs[seed][1] for seed in sorted(runs)]) for runs in by_origin.values()
    )


def _evaluations(
    metrics: Mapping[str, Result],
) -> Iterator[tuple[str, Result, str, Mapping[str, Any]]]:
    """(system, its result, protocol, scores) for each system and protocol."""
    for name, result in metrics.items():
        for protocol, scores in result.numbers.items():
            yield name, result, protocol, scores
        whole = result.numbers.get("coco_5k", {})
        if "cxc" in whole.get("extended", {}):
            yield name, result, "cxc", {**whole, "cxc": whole["extended"]["cxc"]}


def _over_seeds(runs: Sequence[MeasuredSystem]) -> MeasuredSystem:
    first, *rest = runs
    for run in rest:
        if why := differences(first.members, run.members):
            raise InputError(
                f"metrics of {first.systems[0]!r} and {run.systems[0]!r} are no seeds of one system: "
                f"{why}; train and score them alike, or leave one's seed out of run.seeds, and evaluate "
                "again"
            )
    values = {
        column: tuple(run.values[column][0] for run in runs)
        for column in first.values
        if all(column in run.values for run in rest)
    }
    return replace(
        first,
        systems=tuple(run.systems[0] for run in runs),
        values=values,
        tested={} if rest else first.tested,
    )


def _reading(what: str) -> AbstractContextManager[None]:
    """Refuse malformed content of results/metrics.json in one line."""
    return refusing(
        (AttributeError, KeyError, TypeError, ValueError),
        lambda error: f"{what} cannot be read at {error}; run `pipeline evaluate` again",
    )


def _run(
    name: str, result: Result, protocol: str, scores: Mapping[str, Any]
) -> tuple[int, MeasuredSystem]:
    """One system by one protocol, with its seed."""
    made = result.made
    distractors = tuple(
        f"{each.images:,} images and {each.captions:,} captions of {names.dataset(each.dataset)}"
        for each in result.request.distractors
    )
    with _reading(f"metrics of {name!r}"):
        letters = made.letters
        origin = Origin(
            dataset=made.dataset,
            split=str(made.split),
            manifest=str(made.manifest),
            protocol=protocol,
            images=int(scores["images"]),
            captions=int(scores["captions"]),
            recipe=made.recipe or names.SEVERAL["recipe"],
            visual=letters,
            text=made.text or names.SEVERAL["text"],
            features=tuple(
                (feature, made.features[feature])
                for feature in FEATURES
                if feature in made.features
            ),
            untrained=tuple(sorted(made.untrained)),
            steps=names.steps(made),
            trained_on="" if made.training_data == made.dataset else made.training_data,
            distractors=distractors,
            transductive=made.has_seen_queries,
            rerank=_rerank(made),
            lacks=by_reason(scores.get("left_out", {})),
            section="" if letters else _section(made),
        )
    with _reading(where := f"metrics of {name}, {protocol}"):
        values = {column: (float(value),) for column, value in _columns(scores).items()}
    if bad := [column for column, (value,) in values.items() if not math.isfinite(value)]:
        raise InputError(f"{where}: {bad[0]} is not a finite number; run `pipeline evaluate` again")
    with _reading(f"the hits of each image of {name!r}"):
        hits_kept = result.hits.get(protocol, {})
        hits = ImageHits(hits_kept)
        tested = {column: TestedColumn(hits, column) for column in STATISTICS if hits_kept} | {
            Statistic(language, "mR"): TestedColumn(ImageHits(language_hits), RSUM)
            for language, language_hits in hits_kept.get("languages", {}).items()
        }
    return made.seed or 0, MeasuredSystem(origin, (name,), values, _members(name, made), tested)


def _section(made: Made) -> str:
    if all(member.is_head for member in made.members):
        raise ValueError("features ''")
    if any(member.given for member in made.members):
        return GIVEN
    return (
        FINE_TUNED
        if any((member.encoder or {}).get("tuned_on") for member in made.members)
        else ZERO_SHOT
    )


def _rerank(made: Made) -> tuple[tuple[str, Any], ...]:
    last = dict(made.steps[-1]) if made.steps else {}
    if last.pop("name", None) != "rerank":
        return ()
    # A stored system as the scorer is among the members; a head that scores pairs, or a network of
    # pixels, is not.
    reranked = made.reranked
    is_member = (
        reranked is None
        or reranked.by_system
        or reranked.scorer.get("checkpoint") in made.checkpoints
    )
    return (*last.items(), *([] if is_member else [(SEPARATE, True)]))


def _members(name: str, made: Made) -> tuple[Member, ...]:
    if {member.feature for member in made.members if member.is_head} != made.features.keys():
        raise InputError(
            f"metrics of {name!r} do not say which networks and settings made them; run `pipeline "
            "evaluate` again"
        )
    return tuple(made.members)


def _columns(scores: Mapping[str, Any]) -> dict[Statistic, Any]:
    """The numbers of both directions, RSUM, and mR of each language; or CxC's recalls."""
    if "cxc" in scores:
        return flat({way: numbers for way, numbers in scores["cxc"].items() if way in TASKS})
    languages = {
        Statistic(language, "mR"): entry["mR"]
        for language, entry in scores.get("languages", {}).items()
    }
    always = {name: at(scores, name) for name in STATISTICS}
    return always | flat({way: scores[way] for way in ("i2t", "t2i")}) | languages

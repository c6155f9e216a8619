"""Results measured here: `results/metrics.json` read, checked, and the seeds of one system brought
together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from pipeline.errors import InputError
from pipeline.features import FEATURES, letters
from pipeline.provenance.head_record import Member, differences
from pipeline.report.published import COLUMNS, RECALLS

BENCHMARKS = {
    ("coco", "coco_1k_5fold"): "coco_1k_5fold",
    ("coco", "coco_5k"): "coco_5k",
    ("flickr30k", "flickr30k_1k"): "f30k_1k",
}
"""(data set, protocol) -> the papers' test set that it repeats. Nothing else may stand under a paper's
headings."""



@dataclass(frozen=True)
class Origin:
    """What a number was measured on and with, all but the seed."""

    dataset: str
    split: str
    manifest: str
    protocol: str
    images: int
    captions: int
    recipe: str
    visual: str
    """R, G, P, RG or RGP."""
    text: str
    features: tuple[tuple[str, str], ...]
    """(feature, name of the engine's recipe) pairs."""
    untrained: tuple[str, ...]
    """Those of the features that an untrained network made, but for a published head's own."""

    @property
    def benchmark(self) -> str | None:
        """The test set of the papers that this repeats, or None."""
        return BENCHMARKS.get((self.dataset, self.protocol)) if self.split == "test" else None


@dataclass(frozen=True)
class Measured:
    """One system, over its seeds.

    `values[column]` holds one percentage for each seed, `column` being i2t_r1 ... t2i_r10 or rsum; `systems`
    the names in `metrics.json`, in the same order; `members` the heads behind the first seed's numbers, which
    those of the others are like.
    """

    origin: Origin
    systems: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]
    members: tuple[Member, ...]

    def mean(self, column: str) -> float:
        return fmean(self.values[column])

    def spread(self, column: str) -> float | None:
        """The sample standard deviation over the seeds, None for a single seed."""
        values = self.values[column]
        return stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Results:
    """All that was measured here.

    Attributes:
        systems: what was evaluated.
        throughput: items a second by recipe (or recipe-text), where that was timed; method: how.
        synthetic: errors on synthetic pooling patterns, with the columns of `vse_infty_table11.csv`.
    """

    systems: tuple[Measured, ...]
    throughput: Mapping[str, float]
    method: str = ""
    synthetic: Sequence[Mapping[str, Any]] = ()


def read(metrics: Mapping[str, Any]) -> tuple[Measured, ...]:
    """The systems in `metrics`, the parsed `results/metrics.json`, one for each origin, in file order.

    A lone head and a one-member ensemble of the same seed are the same measurement: the ensemble is kept.
    Raises `InputError` when a system lacks what made it (as in metrics of earlier versions), when a metric is
    missing or not finite, when one system and seed occurs twice, or when seeds of one name were trained with
    other settings or on other features: no table would tell two such rows apart, and nobody means to have them.
    """
    found: dict[Origin, dict[int, _Run]] = defaultdict(dict)
    for name, made_from, protocol, scores in _results(metrics):
        origin, seed = _origin(name, made_from, protocol, scores)
        lone = made_from.get("ensemble") is None
        run = _Run(name, lone, _values(f"{name}, {protocol}", scores), _members(name, made_from))
        other = found[origin].get(seed)
        if other and other.lone == run.lone:
            raise InputError(f"metrics hold {name!r} and {other.name!r}, the same system and seed; drop one")
        if other is None or other.lone:
            found[origin][seed] = run
    return tuple(_over_seeds(origin, runs) for origin, runs in found.items())


def elsewhere(systems: Sequence[Measured]) -> list[list[Measured]]:
    """The systems that repeat no benchmark, those of one test set together.

    Of several protocols of one system the plain one, `all`, is taken. A system that also has a benchmark's
    protocol is left out: its place is under the benchmark.
    """
    protocols: dict[Origin, list[Measured]] = defaultdict(list)
    for system in systems:
        protocols[replace(system.origin, protocol="", images=0, captions=0)].append(system)
    test_sets: dict[tuple[str, str, str, str, int, int], list[Measured]] = defaultdict(list)
    for measured in protocols.values():
        if not any(system.origin.benchmark for system in measured):
            chosen = next((system for system in measured if system.origin.protocol == "all"), measured[0])
            o = chosen.origin
            test_sets[o.dataset, o.split, o.manifest, o.protocol, o.images, o.captions].append(chosen)
    return list(test_sets.values())


@dataclass(frozen=True)
class _Run:
    """One seed: `lone` for a head by itself rather than an ensemble; `values` by column; the heads behind them."""

    name: str
    lone: bool
    values: Mapping[str, float]
    members: tuple[Member, ...]


def _results(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    """(system, what made it, protocol, scores) for each system and protocol."""
    if not isinstance(metrics, Mapping):
        raise InputError("metrics are no mapping of systems to scores; run `pipeline evaluate` again")
    for name, system in metrics.items():
        made_from = system.get("made_from") if isinstance(system, Mapping) else None
        if not isinstance(made_from, Mapping):
            raise InputError(f"metrics of {name!r} do not say what made them; run `pipeline evaluate` again")
        for protocol, scores in system.items():
            if protocol != "made_from" and isinstance(scores, Mapping) and "rsum" in scores:
                yield name, made_from, protocol, scores


def _over_seeds(origin: Origin, runs: Mapping[int, _Run]) -> Measured:
    in_order = [runs[seed] for seed in sorted(runs)]
    first, *others = in_order
    for run in others:
        if why := differences(first.members, run.members):
            raise InputError(
                f"metrics of {first.name!r} and {run.name!r} are no seeds of one system: {why}; train and score "
                "them alike, or leave one's seed out of run.seeds, and evaluate again"
            )
    values = {column: tuple(run.values[column] for run in in_order) for column in COLUMNS}
    return Measured(origin, tuple(run.name for run in in_order), values, first.members)


def _origin(
    name: str, made_from: Mapping[str, Any], protocol: str, scores: Mapping[str, Any]
) -> tuple[Origin, int]:
    try:
        features = tuple((f, str(made_from["features"][f])) for f in FEATURES if f in made_from["features"])
        origin = Origin(
            dataset=str(made_from["dataset"]),
            split=str(made_from["split"]),
            manifest=str(made_from["manifest"]),
            protocol=protocol,
            images=int(scores["images"]),
            captions=int(scores["captions"]),
            recipe=str(made_from["recipe"]),
            visual=made_from["ensemble"] or letters(tuple(f for f, _ in features)),
            text=str(made_from["text"]),
            features=features,
            untrained=tuple(sorted(made_from["untrained"])),
        )
        if not origin.visual or set(origin.visual) - set(letters(tuple(FEATURES))):
            raise ValueError(f"features {origin.visual!r}")
        return origin, int(made_from["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"metrics of {name!r} cannot be read at {error}; run `pipeline evaluate` again"
        ) from None


def _members(name: str, made_from: Mapping[str, Any]) -> tuple[Member, ...]:
    try:
        members = tuple(Member.of(entry) for entry in made_from["members"])
        if {member.feature for member in members} != made_from["features"].keys():
            raise KeyError("members")
        return members
    except (KeyError, TypeError):
        raise InputError(
            f"metrics of {name!r} do not say which networks and settings made them: they are of an earlier "
            "version; run `pipeline score`, `pipeline ensemble` and `pipeline evaluate` again"
        ) from None


def _values(where: str, scores: Mapping[str, Any]) -> dict[str, float]:
    try:
        values = {column: float(scores[column[:3]][column[4:]]) for column in RECALLS} | {
            "rsum": float(scores["rsum"])
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"metrics of {where} cannot be read at {error}; run `pipeline evaluate` again"
        ) from None
    if bad := [column for column, value in values.items() if not math.isfinite(value)]:
        raise InputError(
            f"metrics of {where}: {bad[0]} is not a finite number; run `pipeline evaluate` again"
        )
    return values

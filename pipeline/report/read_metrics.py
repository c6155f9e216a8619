"""Reading `results/metrics.json`: checked, and the seeds of one system brought together."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.evaluation.statistics import STATISTICS, ImageHits
from pipeline.parts.errors import InputError
from pipeline.provenance.head_record import HeadRecord, differences
from pipeline.provenance.results import HITS
from pipeline.report import names
from pipeline.report.measured import SEPARATE, MeasuredSystem, Origin, TestedColumn
from pipeline.report.published import RECALLS
from pipeline.settings.features import FEATURES, visual
from pipeline.systems.scores import ENCODER

HEADINGS = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "Median rank", "mean_rank": "Mean rank"}
"""Metric of one direction, as `results/metrics.json` names it -> how it is printed."""


def read_metrics(metrics: Mapping[str, Any]) -> tuple[MeasuredSystem, ...]:
    """Read the evaluated systems.

    A lone head and a one-member ensemble of the same seed are the same measurement: the ensemble is kept. So are two
    systems of one seed that differ in their names alone: the first is kept.

    Args:
        metrics: The parsed `results/metrics.json`.

    Returns:
        One system for each origin, in file order.

    Raises:
        InputError: If a system does not say what made it (as in metrics of earlier versions), if a metric is missing or
            not finite, if one system and seed has two numbers, or if seeds of one name were trained with other settings
            or on other features.
    """
    found: dict[Origin, dict[int, _Run]] = defaultdict(dict)
    for name, made_from, protocol, scores in _evaluations(metrics):
        origin, seed = _origin(name, made_from, protocol, scores)
        origin = replace(origin, distractors=_distractors(metrics[name]))
        lone = made_from.get("ensemble") is None
        run = _Run(name, lone, _values(f"{name}, {protocol}", scores), _members(name, made_from),
                   _tested(name, metrics[name].get(HITS, {}), protocol))
        other = found[origin].get(seed)
        if other and other.lone == run.lone and other.values != run.values:
            raise InputError(f"metrics hold {name!r} and {other.name!r}, the same system and seed; drop one")
        if other is None or other.lone:
            found[origin][seed] = run
    return tuple(_over_seeds(origin, runs) for origin, runs in found.items())


@dataclass(frozen=True)
class _Run:
    """One seed. lone: a head by itself, not an ensemble. values, tested: by column. members: the heads behind them."""

    name: str
    lone: bool
    values: Mapping[str, float]
    members: tuple[HeadRecord, ...]
    tested: Mapping[str, TestedColumn]


def _evaluations(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
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
        whole = system.get("coco_5k")
        if isinstance(whole, Mapping) and "cxc" in whole.get("extended", {}):
            yield name, made_from, "cxc", {**whole, "cxc": whole["extended"]["cxc"]}


def _over_seeds(origin: Origin, runs: Mapping[int, _Run]) -> MeasuredSystem:
    in_order = [runs[seed] for seed in sorted(runs)]
    first, *others = in_order
    for run in others:
        if why := differences(first.members, run.members):
            raise InputError(f"metrics of {first.name!r} and {run.name!r} are no seeds of one system: {why}; train and "
                             "score them alike, or leave one's seed out of run.seeds, and evaluate again")
    shared = [column for column in first.values if all(column in run.values for run in others)]
    values = {column: tuple(run.values[column] for run in in_order) for column in shared}
    return MeasuredSystem(origin, tuple(run.name for run in in_order), values, first.members,
                          {} if others else first.tested)


def _tested(system: str, kept: Mapping[str, Any], protocol: str) -> dict[str, TestedColumn]:
    """The recalls, RSUM and mR of each language, with the hits of each image where they were kept."""
    try:
        hits = kept.get(protocol, {})
        languages = {f"{language}_mR": TestedColumn(ImageHits(own), "rsum")
                     for language, own in hits.get("languages", {}).items()}
    except AttributeError:
        raise InputError(f"the hits of each image of {system!r} cannot be read; run `pipeline evaluate` again"
                         ) from None
    whole = ImageHits(hits)
    return {name: TestedColumn(whole, name) for name in STATISTICS if hits} | languages


def _origin(name: str, made_from: Mapping[str, Any], protocol: str, scores: Mapping[str, Any]) -> tuple[Origin, int]:
    try:
        features = tuple((f, str(made_from["features"][f])) for f in FEATURES if f in made_from["features"])
        origin = Origin(
            dataset=str(made_from["dataset"]),
            split=str(made_from["split"]),
            manifest=str(made_from["manifest"]),
            protocol=protocol,
            images=int(scores["images"]),
            captions=int(scores["captions"]),
            recipe=str(made_from["recipe"] or names.SEVERAL["recipe"]),
            visual=visual(made_from),
            text=str(made_from["text"] or names.SEVERAL["text"]),
            features=features,
            untrained=tuple(sorted(made_from["untrained"])),
            trained_on="" if made_from.get("trained_on", "") == made_from["dataset"] else str(
                made_from.get("trained_on", "")),
            steps=names.steps(made_from),
            rerank=_rerank(made_from),
            transductive=any(step.get("bank") == "test" for step in made_from.get("steps", ())),
            zero_shot=not visual(made_from) and any(ENCODER in member for member in made_from["members"]),
        )
        if origin.zero_shot != (not origin.visual):
            raise ValueError(f"features {origin.visual!r}")
        return origin, int(made_from["seed"] or 0)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"metrics of {name!r} cannot be read at {error}; run `pipeline evaluate` again") from None


def _distractors(found: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        return tuple(f"{int(each['images']):,} images and {int(each['captions']):,} captions of "
                     f"{names.DATASETS.get(each['dataset'], each['dataset'])}"
                     for each in found.get("evaluated_with", {}).get("distractors", ()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"recorded distractors cannot be read at {error}; run `pipeline evaluate` again") from None


def _rerank(made_from: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    steps = made_from.get("steps", ())
    last = dict(steps[-1]) if steps else {}
    if last.pop("name", None) != "rerank":
        return ()
    # A stored system that scores is among the members; a head that scores pairs, or a network of pixels, is not.
    scorer = made_from.get("reranked", {}).get("scorer", {"kind": "system"})
    own = scorer["kind"] == "system" or scorer.get("checkpoint") in [
        member["checkpoint"] for member in made_from["members"]]
    return (*last.items(), *([] if own else [(SEPARATE, True)]))


def _members(name: str, made_from: Mapping[str, Any]) -> tuple[HeadRecord, ...]:
    try:
        members = tuple(HeadRecord.of(entry) for entry in made_from["members"])
        if {member.feature for member in members if not member.encoder} != made_from["features"].keys():
            raise KeyError("members")
        return members
    except (KeyError, TypeError):
        raise InputError(f"metrics of {name!r} do not say which networks and settings made them: they are of an "
                         "earlier version; run `pipeline score`, `pipeline ensemble` and `pipeline evaluate` "
                         "again") from None


def _values(where: str, scores: Mapping[str, Any]) -> dict[str, float]:
    """The recalls and RSUM, of the other metrics those that were written, and mR of each language; or CxC's recalls."""
    try:
        values = {column: float(value) for column, value in (_of_cxc if "cxc" in scores else _columns)(scores)}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"metrics of {where} cannot be read at {error}; run `pipeline evaluate` again") from None
    if bad := [column for column, value in values.items() if not math.isfinite(value)]:
        raise InputError(f"metrics of {where}: {bad[0]} is not a finite number; run `pipeline evaluate` again")
    return values


def _columns(scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for side in ("i2t", "t2i"):
        yield from ((f"{side}_{metric}", scores[side][metric]) for metric in HEADINGS
                    if f"{side}_{metric}" in RECALLS or metric in scores[side])
    for side in ("i2t", "t2i"):
        yield from ((f"{side}_{name}", ways[side]) for name, ways in scores.get("metrics", {}).items() if side in ways)
    yield "rsum", scores["rsum"]
    yield from ((f"{language}_mR", found["mR"]) for language, found in scores.get("languages", {}).items())


def _of_cxc(scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """R@1, R@5 and R@10 by CxC, of the tasks that were measured."""
    return ((f"{task}_r{metric[2:]}", value) for metric, tasks in scores["cxc"].items()
            for task, value in tasks.items() if task != "interval")

"""What run a page shows: the day, the version and commit, the machine, the data, and the commands
that made it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pipeline.foundation.artefacts.record import Record
from pipeline.foundation.parts.errors import counted
from pipeline.judge.systems.scores.made import Ensemble, Reranked, Rescored
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance.heads import TrainedHead
from pipeline.run.provenance.results import Result
from pipeline.run.report.measured import read_metrics


class Identity(NamedTuple):
    """What a page opens with."""

    facts: Mapping[str, str]  # heading -> text; without those that no record has
    commands: Sequence[str] = ()  # what made the run, in their order


def of_run(
    data: str,
    metrics: Mapping[str, Result],
    scored: Mapping[str, System],
    heads: Sequence[TrainedHead],
    features: Collection[str],
) -> Identity:
    """Compose the identity of a run from the records of its results, systems and heads. data: the
    data in words.
    """
    records_of_results = [result.record for result in metrics.values()]
    records = list(records_of_results)
    records += [system.record for system in scored.values() if system.record]
    records += [head.record for head in heads]
    facts = of_machines(_machines(records_of_results), _machines(records))
    manifests = set()
    for result in metrics.values():
        if result.made.manifest:
            manifests.add(f"manifest {result.made.manifest[:12]}")
    facts["Data"] = ", ".join((data, *sorted(manifests)))
    evaluated: set[str] = set()
    for system in read_metrics(metrics):
        evaluated.update(system.systems)
    facts["Systems"] = f"{len(evaluated)} evaluated"
    if heads:
        facts["Systems"] += f", of {counted(len(heads), 'head')} trained here"
    stated_facts = {heading: fact for heading, fact in facts.items() if fact}
    return Identity(stated_facts, _commands(metrics, scored, heads, features))


def _machines(records: Iterable[Record]) -> list[Mapping[str, Any]]:
    """The last machine of each record that names one."""
    return [record.machines[-1] for record in records if record.machines]


def of_machines(
    measured: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Say when and by what results were measured, and on which machines they and what they rest on
    were made.

    Both as records have them, see `compute.made_with`; what differs between them is all named.
    """
    versions = [f"vse-pipeline {version}" for version in _values(measured, "pipeline")]
    libraries = [f"numpy {version}" for version in _values(made, "numpy")]
    libraries += [f"torch {version}" for version in _values(made, "torch")]
    machines = [*_values(made, "processor"), *_values(made, "device")]
    dates = sorted(_values(measured, "date"))
    first_and_last = dict.fromkeys((*dates[:1], *dates[-1:]))
    return {
        "Measured": " to ".join(first_and_last),
        "Version": _once(versions),
        "Commit": _once(_values(measured, "commit")),
        "Machine": _once(machines),
        "Libraries": _once(libraries),
    }


def _values(machines: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return [str(machine[key]) for machine in machines if key in machine]


def _once(facts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(facts))


def _commands(
    metrics: Mapping[str, Result],
    scored: Mapping[str, System],
    heads: Sequence[TrainedHead],
    features: Collection[str],
) -> list[str]:
    """The commands of a run by hand, each with what tells it from another of its kind."""
    made = [system.made_from for system in scored.values()]
    members = list(chain.from_iterable(made_from.members for made_from in made))
    lineages = list(chain.from_iterable(made_from.lineage for made_from in made))
    imported = {}
    given: dict[str, None] = {}
    for member in members:
        if "format" in member.image:
            imported[member.feature] = f"store import {member.image['format']} …"
        if member.given:
            given[f"add {member.head} …"] = None
    commands = ["manifest"]
    for feature in features:
        feature_command = imported.get(feature, "extract")
        commands.append(f"{feature_command} --feature {feature}")
    for head in heads:
        if head.history:
            trained_head = head.request
            head_options = f"--recipe {trained_head.name} --feature {trained_head.feature} --text {trained_head.text}"
            commands.append(f"train {head_options} --seed {trained_head.seed}")
    commands += given
    if any(member.encoder for member in members):
        commands.append("embed")
    if any(not member.given for member in members):
        commands.append("score")
    if any(isinstance(made_from, Ensemble) for made_from in lineages):
        commands.append("ensemble")
    if any(isinstance(made_from, Rescored) for made_from in lineages):
        commands.append("rescore")
    if any(isinstance(made_from, Reranked) for made_from in lineages):
        commands.append("rerank")
    if metrics:
        commands.append("evaluate")
    commands.append("report")
    return [f"pipeline {command}" for command in commands]

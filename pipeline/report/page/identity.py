"""What run a page shows: the day, the version and commit, the machine, the data, and the commands
that made it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.parts.errors import counted
from pipeline.provenance.heads import TrainedHead
from pipeline.provenance.results import Result
from pipeline.report.measured import read_metrics
from pipeline.systems.scores.system import System


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
    records = [result.record for result in metrics.values()]
    made = [
        *records,
        *(system.record for system in scored.values() if system.record),
        *(head.record for head in heads),
    ]
    facts = of_machines(
        [record.machines[-1] for record in records if record.machines],
        [record.machines[-1] for record in made if record.machines],
    )
    manifests = sorted(
        {
            f"manifest {result.made.manifest[:12]}"
            for result in metrics.values()
            if result.made.manifest
        }
    )
    trained = f", of {counted(len(heads), 'head')} trained here" if heads else ""
    shown = {name for system in read_metrics(metrics) for name in system.systems}
    facts |= {"Data": ", ".join((data, *manifests)), "Systems": f"{len(shown)} evaluated{trained}"}
    return Identity(
        {heading: text for heading, text in facts.items() if text},
        _commands(metrics, scored, heads, features),
    )


def of_machines(
    measured: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Say when and by what results were measured, and on which machines they and what they rest on
    were made.

    Both as records have them, see `compute.made_with`; what differs between them is all named.
    """
    dates = sorted({str(each["date"]) for each in measured if "date" in each})
    return {
        "Measured": " to ".join(dict.fromkeys((*dates[:1], *dates[-1:]))),
        "Version": _each(
            f"vse-pipeline {each['pipeline']}" for each in measured if "pipeline" in each
        ),
        "Commit": _each(each["commit"] for each in measured if "commit" in each),
        "Machine": _each(
            str(each[key]) for key in ("processor", "device") for each in made if key in each
        ),
        "Libraries": _each(
            f"{key} {each[key]}" for key in ("numpy", "torch") for each in made if key in each
        ),
    }


def _each(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _commands(
    metrics: Mapping[str, Result],
    scored: Mapping[str, System],
    heads: Sequence[TrainedHead],
    features: Collection[str],
) -> list[str]:
    """The commands of a run by hand, each with what tells it from another of its kind."""
    made = [system.made_from for system in scored.values()]
    members = [member for each in made for member in each.members]
    imported = {
        member.feature: f"store import {member.image['format']} …"
        for member in members
        if "format" in member.image
    }
    given = [
        f"add {name} …" for name in dict.fromkeys(member.head for member in members if member.given)
    ]
    steps = {
        "embed": any(member.encoder for member in members),
        "score": any(not member.given for member in members),
        "ensemble": any(each.fusion for each in made),
        "rescore": any(each.rescored for each in made),
        "rerank": any(each.reranked for each in made),
        "evaluate": bool(metrics),
    }
    trained = [
        f"train --recipe {asked.name} --feature {asked.feature} --text {asked.text} --seed {asked.seed}"
        for asked in (head.request for head in heads if head.history)
    ]
    return [
        f"pipeline {command}"
        for command in (
            "manifest",
            *(f"{imported.get(name, 'extract')} --feature {name}" for name in features),
            *trained,
            *given,
            *(step for step, was_made in steps.items() if was_made),
            "report",
        )
    ]

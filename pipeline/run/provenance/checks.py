"""Checks that the parts of a result belong together, and that its facts are those of what it was
made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.foundation.artefacts import Artefact, Reference
from pipeline.foundation.artefacts.record import without_places
from pipeline.foundation.artefacts.request import difference
from pipeline.foundation.files.compared import Step
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.made import Made, MadeOfOthers, OfGiven, differences
from pipeline.judge.systems.scores.system import System
from pipeline.make.training.artefact import OPENED, HeadArtefact
from pipeline.run.provenance import walk
from pipeline.run.provenance.results import Distractors, EvaluateRequest, Result, name_beyond

# What a system's facts are compared with.
FACTS = "its facts, by what it was made from"


def facts_again(store: System, compose: Callable[[], Made]) -> Step:
    """Compare a system's facts, except for where files are, with those composed again."""
    recorded = store.made_from.recorded()
    try:
        return _compared(store.path, FACTS, recorded, compose().recorded())
    except InputError as error:
        return Step(store.path, FACTS, digest(recorded), str(error))


def entry_again(result: Result, file: Path, pool: System) -> Iterator[Step]:
    """Compare an entry's name, facts and request with the system, among its distractors, that it
    was measured of.
    """
    request = result.request
    distractors = pool.pools[1:]
    name = request.name
    expected = result.system.name
    if not result.entries:  # one of results/recorded.json
        expected = name_beyond(pool, distractors)
    yield Step(file, f"the name of the entry {name}, by its system", name, expected)
    what = f"the facts of {name}, by its system"
    yield _compared(file, what, result.made.recorded(), pool.made_from.recorded())
    again = EvaluateRequest.of(
        expected,
        list(result.numbers),
        request.settings,
        result.truth,
        ties=request.ties,
        extended=request.extended,
        distractors=[*map(Distractors.of, distractors)],
    )
    what = f"what was measured of {name}"
    yield _compared(file, what, request.recorded(), again.recorded())
    roles = ["system"]
    roles += [f"distractor.{number}" for number in range(len(distractors))]
    measured = {"versions": result.record.versions, "inputs": sorted(result.record.made_from)}
    now = {"versions": again.versions(), "inputs": sorted(roles)}
    yield _compared(file, f"what measured {name}, and of what", measured, now)


def _compared(path: Path, what: str, recorded: dict[str, Any], again: dict[str, Any]) -> Step:
    """Compare two JSON values, except for where files are, by their digests; what differs is
    named.
    """
    recorded = without_places(recorded)
    again = without_places(again)
    different = difference(recorded, again)
    return Step(path, what, digest(recorded), different or digest(again))


def refuse_other_systems(stores: Sequence[System]) -> None:
    """Check that stores to be averaged as seeds of one system differ only in the seed."""
    for store in stores[1:]:
        why = differences(stores[0].made_from.members, store.made_from.members)
        if why:
            raise InputError(
                f"{store.path.stem}: is no seed of the system {stores[0].path.stem}: {why}; train and "
                "score them alike, or leave it out"
            )


def refuse_stale(stores: Mapping[str, System], paths: Paths) -> None:
    """Check that all systems were made from the same manifest and split, and from systems and heads
    as they are now.
    """
    first = next(iter(stores.values()))
    for store in stores.values():
        for key in ("manifest", "split"):
            mine = getattr(store.made_from, key)
            wanted = getattr(first.made_from, key)
            if mine != wanted:
                they_differ = f"its {key} is {mine!r}, that of {first.path.name} {wanted!r}"
                raise InputError(f"{store.path}: {they_differ}; {_renewed(store, first)}")
    artefacts = {store.path: store.store for store in stores.values()}
    current: dict[Path, Reference] = {}
    while artefacts:
        path, artefact = artefacts.popitem()
        links = {link.role: link for link in walk.inputs(path, paths) if link.path.exists()}
        for link in links.values():
            if link.path not in current and link.kind == walk.HEAD:
                current[link.path] = HeadArtefact.open(link.path, *OPENED).reference
            elif link.path not in current and link.kind in walk.SYSTEMS:
                artefacts[link.path] = Artefact.open(link.path)
                current[link.path] = artefacts[link.path].record.refers(link.path.stem)
        made_from = dict(artefact.record.made_from)
        for name, link in links.items():
            if link.path in current:
                made_from[name] = current[link.path]
        role = artefact.other_input(made_from)
        if role:
            raise InputError(_made_again(System.open_either(path), links[role]))


def _renewed(*stores: System) -> str:
    """How systems are renewed that do not fit each other."""
    given = [store.path.stem for store in stores if isinstance(store.made_from, OfGiven)]
    scored = [store.path.stem for store in stores if not isinstance(store.made_from, OfGiven)]
    if not given:
        return "score all again"
    add = f"add {' and '.join(given)} again"
    if not scored:
        return add
    return f"{add}, or score {scored[0]} again"


def _made_again(store: System, link: walk.Link) -> str:
    """Say that a system is made of an older artefact than the current one, and how to make it
    again.
    """
    name = link.path.stem
    made = store.made_from
    if isinstance(made, MadeOfOthers):
        what, again = made.made_again(store.name)
        again += made.where
    elif link.kind == walk.HEAD:
        return (
            f"{link.path}: is not the head that was scored; run `pipeline score` again for {name}, then `pipeline "
            "ensemble`"
        )
    else:
        what = "made"
        again = f"score --system {link.path}"
    return f"{store.path}: is {what} of an older {name} than the current one; run `pipeline {again}` again"

"""Test systems against each other on the same queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import manifest
from pipeline.evaluation.metrics import Metrics, evaluate
from pipeline.evaluation.retrieval import Lists, Protocol, Ties
from pipeline.evaluation.statistics import contrast
from pipeline.parts.errors import InputError
from pipeline.report import compared
from pipeline.settings import Settings
from pipeline.settings.paths import Paths
from pipeline.systems.scores import fuse, judged, layout
from pipeline.systems.scores.foreign import open_system
from pipeline.systems.scores.system import System
from stages import named_systems, terminal
from stages.progress import Progress, say


def compare(
    paths: Paths,
    settings: Settings,
    systems: tuple[str, ...],
    dataset: str | None = None,
    columns: judged.Columns = judged.Columns(),
    truth: judged.Truth = judged.Truth(),
    rules: Protocol | None = None,
    ties: Ties = "expected",
    output: str = "text",
    explain: bool = False,
) -> None:
    """Test systems against each other on the same queries; with three or more, every pair."""
    dataset = dataset or settings.run.dataset
    if len(systems) < 2:
        raise InputError(f"compare takes two or more systems, received one: {systems[0]}")
    titles, named = zip(
        *(named_systems.named(paths, settings, name, dataset) for name in systems), strict=True
    )
    named_systems.refuse_stale(paths, settings, chain(*named), dataset)
    groups = _pools(named, replace(columns, judgements=truth.qrels))
    _refuse_equal(named)
    every_pool = [*chain(*groups)]
    by_name = {pool.protocol.name: pool.protocol for pool in every_pool if pool.protocol}
    protocols: list[str | Protocol] = [*by_name.values()]
    if (
        not protocols
    ):  # no reranked system, which has its own; a card's protocols are for its test split
        benchmark = any(
            pool.made_from.split == "test" and pool.made_from.dataset == dataset
            for pool in every_pool
        )
        protocols = [
            *manifest.dataset(dataset, paths.root).protocols_of("test" if benchmark else None)
        ]
    truth = replace(
        truth.or_of([rules] if rules else protocols), left_out=settings.manifest.left_out
    )
    every = [rules] if rules else truth.protocols(protocols)
    known = groups[0][0].manifest(columns.manifest, paths.manifest, needed=truth.needs_manifest)
    groups = [
        [
            judged.judge(judged.with_languages(_like(groups[0][0], pool), known), truth, known)
            for pool in group
        ]
        for group in groups
    ]
    contrasts, notes = _contrasts(groups, every, ties, settings)
    notes += [note for group in groups[1:] for note in judged.notes_of_two(groups[0][0], group[0])]
    say(*(f"note: {each}" for each in notes))
    shown = [
        [title] if title else [pool.name for pool in group]
        for title, group in zip(titles, groups, strict=True)
    ]
    terminal.echo(_written(shown, contrasts, notes, output, explain))


def _refuse_equal(named: Sequence[Sequence[named_systems.Place]]) -> None:
    """Check that no system is compared with itself. Systems may share seeds."""
    seen = set[frozenset[Path]]()
    for group in named:
        system = frozenset((root / text).resolve() for text, root in group)
        if system in seen:
            raise InputError(f"{group[0][0]}: is named twice; name each once")
        seen.add(system)


def _contrasts(
    groups: Sequence[Sequence[System]],
    protocols: Sequence[str | Protocol],
    ties: Ties,
    settings: Settings,
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """For each protocol and each language, the contrasts of all pairs; each matrix is ranked once
    for all its pairs.
    """
    notes: list[str] = []
    views = [view for rules in protocols for view in _views(groups, rules)]
    total = sum(pool.shape[0] for _, every in views for group in every for pool, _ in group)
    with Progress("rank", "image", total) as bar:

        def measure(pool: System, rules: str | Protocol) -> Metrics:
            start = bar.done
            ranked = evaluate(
                pool.scores,
                pool.truth,
                rules,
                ties,
                settings.evaluate.block_megabytes,
                lambda done: bar.reach(start + done),
            )
            notes.extend(each for each in judged.notes(pool, ranked) if each not in notes)
            return ranked

        pairs = [
            [*combinations([[measure(*each) for each in group] for group in systems], 2)]
            for _, systems in views
        ]
    rows = iter(
        contrast.together([*chain(*pairs)], settings.evaluate.resamples, settings.evaluate.seed)
    )
    return [
        [next(rows) | label for _ in each] for each, (label, _) in zip(pairs, views, strict=True)
    ], notes


def _views(
    groups: Sequence[Sequence[System]], rules: str | Protocol
) -> list[tuple[dict[str, str], Sequence[Sequence[tuple[System, str | Protocol]]]]]:
    """All captions, then those of each language: the split and language, and each system's pool
    with its rules.
    """
    parts = [
        [{part.language: (part.system, part.rules) for part in pool.parts(rules)} for pool in group]
        for group in groups
    ]
    split = {} if groups[0][0].split is None else {"split": groups[0][0].split}
    return [
        (
            split | ({"language": name} if name else {}),
            [[part[name] for part in group] for group in parts],
        )
        for name in parts[0][0]
    ]


def _written(
    systems: Sequence[Sequence[str]],
    contrasts: Sequence[Sequence[dict[str, Any]]],
    notes: list[str],
    output: str,
    explain: bool,
) -> str:
    """The contrasts as text, Markdown, LaTeX or JSON: a list with an object for each pair and each
    pool.
    """
    if output == "json":
        return json.dumps(
            [
                {
                    "systems": dict(zip("ab", names, strict=True)),
                    "split": None,
                    "language": None,
                    "notes": notes,
                    "letters": dict(zip("ab", letters, strict=True)),
                    **values,
                }
                for each in contrasts
                for names, letters, values in zip(
                    combinations(systems, 2),
                    combinations(contrast.in_letters(each), 2),
                    each,
                    strict=True,
                )
            ],
            indent=1,
        )
    names = [", ".join(group) for group in systems]
    if output == "text":
        return compared.to_text(names, contrasts, explain, terminal.strong)
    return compared.WRITERS[output](names, contrasts, explain)


def _pools(
    named: Sequence[Sequence[named_systems.Place]], columns: judged.Columns
) -> list[list[System]]:
    """Open the groups of systems. Options on images and captions apply to scores from elsewhere."""
    none = judged.Columns(judgements=columns.judgements)
    if columns != none and all(
        layout.is_store(root / text) for group in named for text, root in group
    ):
        raise InputError(
            "similarity stores hold the ids of their images and captions; leave out --manifest, "
            "--split, --captions-per-image and --distance"
        )
    groups = []
    for group in named:
        groups.append(
            [
                open_system(text, none if layout.is_store(root / text) else columns, root=root)
                for text, root in group
            ]
        )
        for (text, _), pool in zip(group, groups[-1], strict=True):
            named_systems.say_read_as(text, pool)
    return _fitting(groups)


def _fitting(groups: list[list[System]]) -> list[list[System]]:
    """Check that all systems are of one pool, as far as their ids or sizes tell."""
    every = [*chain(*groups)]
    silent = next((pool for pool in every if not pool.has_ids), None)
    if silent and any(pool.has_ids and not _counts_rows(pool) for pool in every):
        raise InputError(f"{silent.name}: has no ids, others have; name its --manifest")
    if silent and any(pool.has_ids for pool in every):  # their ids are numbers of rows and columns
        groups = [[replace(pool, has_ids=True) for pool in group] for group in groups]
    shapes = {pool.shape: pool.name for pool in every}
    if len(shapes) > 1 and not all(pool.has_ids for pool in every):
        (one, first), (other, second) = [*shapes.items()][:2]
        raise InputError(
            f"{first} has {one[0]} images x {one[1]} captions and {second} {other[0]} x {other[1]}: "
            "expected scores of one pool"
        )
    if alone := next(
        (pool for pool in every if isinstance(pool.scores, Lists) and len(pool.scores.listed) < 2),
        None,
    ):
        raise InputError(f"{alone.name}: ranks one direction only; systems are compared by both")
    return groups


def _counts_rows(pool: System) -> bool:
    """Whether its ids are the numbers of rows and columns, in any order."""
    return all(
        np.array_equal(np.sort(ids), np.arange(len(ids)))
        for ids in (pool.image_ids, pool.caption_ids)
    )


def _like(first: System, pool: System) -> System:
    """The pool in the order of the first one's ids, if both have ids."""
    if pool is first or not first.has_ids or not pool.has_ids:
        return pool
    pool.require_owners_of(first)
    return fuse.in_order_of(first, pool)

"""Test systems against each other on the same queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation import manifest
from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Lists, Protocol, Ties
from pipeline.foundation.evaluation.statistics import contrast
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import fuse, judged, layout
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import compared
from stages import named_systems, terminal
from stages.commands.compare import CompareOptions
from stages.progress import Progress, say


def compare(paths: Paths, settings: Settings, options: CompareOptions) -> None:
    """Test systems against each other on the same queries; with three or more, every pair."""
    dataset = options.dataset or settings.run.dataset
    if len(options.systems) < 2:
        raise InputError(f"compare takes two or more systems, received one: {options.systems[0]}")
    titles: list[str] = []
    named: list[Sequence[named_systems.Place]] = []
    for system in options.systems:
        title, places = named_systems.named(paths, settings, system, dataset)
        titles.append(title)
        named.append(places)
    named_systems.refuse_stale(paths, settings, chain(*named), dataset)
    groups = _pools(named, replace(options.columns, judgements=options.truth.qrels))
    _refuse_equal(named)
    protocols = _protocols(paths, dataset, [*chain(*groups)])
    asked: list[str | Protocol] = [options.rules] if options.rules else protocols
    truth = replace(options.truth.or_of(asked), left_out=settings.manifest.left_out)
    measured_by = asked if options.rules else truth.protocols(protocols)
    first = groups[0][0]
    known = first.manifest(options.columns.manifest, paths.manifest, needed=truth.needs_manifest)
    judged_groups = []
    for group in groups:
        pools = [judged.with_languages(_like(first, pool), known) for pool in group]
        judged_groups.append([judged.judge(pool, truth, known) for pool in pools])
    contrasts, notes = _contrasts(judged_groups, measured_by, options.ties, settings)
    for group in judged_groups[1:]:
        notes += judged.notes_of_two(judged_groups[0][0], group[0])
    say(*(f"note: {note}" for note in notes))
    shown = []
    for title, group in zip(titles, judged_groups, strict=True):
        shown.append([title] if title else [pool.name for pool in group])
    terminal.echo(_written(shown, contrasts, notes, options.output, options.explain))


def _protocols(paths: Paths, dataset: str, pools: Sequence[System]) -> list[str | Protocol]:
    """The protocols that reranked systems have; else those of the data set's card, which are for
    its test split.
    """
    by_name = {pool.protocol.name: pool.protocol for pool in pools if pool.protocol}
    if by_name:
        return [*by_name.values()]
    benchmark = any(
        pool.made_from.split == "test" and pool.made_from.dataset == dataset for pool in pools
    )
    card = manifest.dataset(dataset, paths.root)
    return [*card.protocols_of("test" if benchmark else None)]


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

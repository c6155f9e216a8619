"""Test systems against each other on the same queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.foundation import manifest
from pipeline.foundation.evaluation.metrics import Metric, Metrics, evaluate, parse_all
from pipeline.foundation.evaluation.metrics.base import at
from pipeline.foundation.evaluation.metrics.standard import with_further
from pipeline.foundation.evaluation.retrieval import Direction, Ids, Lists, Protocol, Ties
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.statistics import contrast
from pipeline.foundation.evaluation.statistics.families import FDR
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import fuse, judged, layout
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.made import Ensemble
from pipeline.judge.systems.scores.sources import Given
from pipeline.judge.systems.scores.system import IMAGES_AND_CAPTIONS, Part, System
from pipeline.judge.tables import compared, evaluated
from stages import named_systems, terminal
from stages.commands.compare import CompareOptions
from stages.measure import Unwritten
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.judge.figures.drawing import Drawing


def compare(paths: Paths, settings: Settings, options: CompareOptions) -> None:
    """Test systems against each other on the same queries; with three or more, every pair."""
    dataset = options.dataset or settings.run.dataset
    systems = named_systems.expanded(paths.root, options.systems)
    if len(systems) < 2:
        raise InputError(f"compare takes two or more systems, received one: {systems[0]}")
    if options.figures:
        extras.require("drawing", "drawing")
        from pipeline.judge.figures import compared as figures  # and with it matplotlib

        figures.check(len(systems), options.figures, settings.typesetting.text_width)
    titles: list[str] = []
    named: list[Sequence[named_systems.Place]] = []
    for system in systems:
        title, places = named_systems.named(paths, settings, system, dataset)
        titles.append(title)
        named.append(places)
    named_systems.refuse_stale(paths, settings, chain(*named), dataset)
    titles, named = _each_once(titles, named)
    named_systems.refuse_shared_titles(titles)
    alike = rank_alike(paths, settings, named, options)
    contrasts = _contrasts(alike, settings, options)
    say(*(f"note: {note}" for note in alike.notes))
    shown = []
    for title, group in zip(titles, alike.groups, strict=True):
        names = [title]
        if not title:
            names = [pool.name for pool in group]
        shown.append(names)
    unwritten = Unwritten()
    if options.figures:
        picture = _drawn(shown, alike.ranked, contrasts, settings)
        _write(picture, options.figures, settings, unwritten)
    terminal.echo(_written(shown, contrasts, alike.notes, options.output, options.explain))
    unwritten.refuse()


@dataclass(frozen=True)
class Alike:
    """Systems that were ranked by the same rules on the same images and captions."""

    groups: Sequence[Sequence[System]]  # of each system, its seeds
    views: Sequence[View]  # by each protocol, all captions and those of each language
    ranked: Sequence[
        Sequence[Sequence[Metrics]]
    ]  # of each view and each system, those of each seed
    notes: list[str]  # likely mistakes


def rank_alike(
    paths: Paths,
    settings: Settings,
    named: Sequence[Sequence[named_systems.Place]],
    options: CompareOptions,
) -> Alike:
    """Open systems, each with its seeds, align them by their ids, and rank all of them alike."""
    dataset = options.dataset or settings.run.dataset
    groups = _pools(named, replace(options.columns, judgements=options.truth.qrels))
    _refuse_equal(named)
    protocols = _protocols(paths, dataset, [*chain(*groups)])
    asked = protocols
    if options.rules:
        asked = [options.rules]
    truth = replace(options.truth.or_of(asked), left_out=settings.manifest.left_out)
    measured_by: Sequence[str | Protocol] = asked
    if not options.rules:
        measured_by = truth.protocols(protocols)
    first = groups[0][0]
    known = first.manifest(options.columns.manifest, paths.manifest, needed=truth.needs_manifest)
    judged_groups = []
    for group in groups:
        pools = [judged.with_languages(_like(first, pool), known) for pool in group]
        judged_groups.append([judged.judge(pool, truth, known) for pool in pools])
    _refuse_other_queries([*chain(*judged_groups)])
    _refuse_other_answers([*chain(*judged_groups)])
    views = list(chain.from_iterable(_views(judged_groups, rules) for rules in measured_by))
    ranked, notes = _ranked(views, options.ties, parse_all(options.metrics), settings)
    of_two: list[tuple[str, str]] = []
    for group in judged_groups[1:]:
        of_group = judged.notes_of_two(judged_groups[0][0], group[0])
        of_two += [(group[0].name, note) for note in of_group]
    notes += judged.together(of_two)
    return Alike(judged_groups, views, ranked, notes)


def _protocols(paths: Paths, dataset: str, pools: Sequence[System]) -> list[str | Protocol]:
    """The protocols that reranked systems have; else those of the data set's card, which are for
    its test split.
    """
    by_name = {pool.protocol.name: pool.protocol for pool in pools if pool.protocol}
    if by_name:
        return [*by_name.values()]
    splits = [(pool.made_from.dataset, pool.made_from.split) for pool in pools]
    split = None
    if (dataset, "test") in splits:
        split = "test"
    card = manifest.dataset(dataset, paths.root)
    return [*card.protocols_of(split)]


def _each_once(
    titles: Sequence[str], named: Sequence[Sequence[named_systems.Place]]
) -> tuple[list[str], list[Sequence[named_systems.Place]]]:
    """The systems without those that are another one under another name: its ensemble of one."""
    titles_once = []
    named_once = []
    name_of: dict[frozenset[Path], str] = {}
    stores_of: dict[frozenset[Path], set[Path]] = {}
    for title, places in zip(titles, named, strict=True):
        stores = {(root / text).resolve() for text, root in places}
        system = frozenset(map(_alone, stores))
        name = title or Path(places[0][0]).stem
        is_under_another_name = stores_of.setdefault(system, stores) != stores
        if not is_under_another_name:
            name_of[system] = name
            titles_once.append(title)
            named_once.append(places)
        elif len(named) > 2:
            say(f"note: {name} is the same system as {name_of[system]}, which is compared once")
        else:
            raise InputError(f"{name}: is the same system as {name_of[system]}; name another one")
    if len(named_once) < 2:
        raise InputError(f"{name}: all are the same system; name another one")
    return titles_once, named_once


def _alone(store: Path) -> Path:
    """The store of the one system whose mean an ensemble is; of any other system its own."""
    if not layout.is_store(store):
        return store
    made = layout.facts(layout.finished(store))
    if not isinstance(made, Ensemble) or made.fusion.method != "mean":
        return store
    if len(made.fusion.members) > 1:
        return store
    return store.with_name(f"{made.fusion.members[0]}.zarr")


def _refuse_equal(named: Sequence[Sequence[named_systems.Place]]) -> None:
    """Check that no system is compared with itself. Systems may share seeds."""
    seen = set[frozenset[Path]]()
    for group in named:
        system = frozenset((root / text).resolve() for text, root in group)
        if system in seen:
            raise InputError(f"{group[0][0]}: is named twice; name each once")
        seen.add(system)


def _ranked(
    views: Sequence[View], ties: Ties, metrics: Sequence[Metric], settings: Settings
) -> tuple[list[list[list[Metrics]]], list[str]]:
    """Of each view and each system, the metrics of each seed; and notes on likely mistakes."""
    how = settings.evaluate
    notes: list[tuple[str, str]] = []
    total = 0
    for view in views:
        total += sum(part.system.shape[0] for part in chain(*view.groups))
    ranked_views = []
    with Progress("rank", "image", total) as bar:

        def measure(view: View, part: Part) -> Metrics:
            start = bar.done
            pool = part.system
            ranked = evaluate(
                pool.scores,
                pool.truth,
                part.rules,
                ties,
                how.block_megabytes,
                lambda done: bar.reach(start + done),
            )
            notes.extend((pool.name, note) for note in judged.notes(pool, ranked))
            by_ties = evaluated.over_ties(ranked.over_ties | view.label, hidden=evaluated.RANKS)
            notes.extend((pool.name, note) for note in by_ties)
            return with_further(
                ranked, metrics, pool.scores, pool.truth, part.rules, how.block_megabytes
            )

        for view in views:
            of_view = partial(measure, view)
            ranked_views.append([list(map(of_view, group)) for group in view.groups])
    return ranked_views, judged.together(notes)


def _contrasts(
    alike: Alike, settings: Settings, options: CompareOptions
) -> list[list[dict[str, Any]]]:
    """For each protocol and each language, the contrasts of all pairs."""
    how = settings.evaluate
    pairs = [list(combinations(groups, 2)) for groups in alike.ranked]
    # One test for all: by two, it would depend on a system's number of seeds what is significant.
    over_seeds = all(len(of_system) > 1 for of_system in chain(*alike.ranked))
    contrasts = []
    together = contrast.together(
        pairs, how.resamples, how.seed, over_seeds, options.fdr, options.margin
    )
    for view, of_pairs in zip(alike.views, together, strict=True):
        contrasts.append([_in_units(of_pair | view.label) for of_pair in of_pairs])
    return contrasts


def _in_units(of_pair: dict[str, Any]) -> dict[str, Any]:
    """A contrast whose verdicts call images what its units are: queries of a run of anything."""
    for name in contrast.compared(of_pair):
        row = at(of_pair, name)
        row["verdict"] = evaluated.of_units(row["verdict"], of_pair)
        if "margin" in row:
            within = row["margin"]
            within["verdict"] = evaluated.of_units(within["verdict"], of_pair)
    return of_pair


def _drawn(
    systems: Sequence[Sequence[str]],
    ranked: Sequence[Sequence[Sequence[Metrics]]],
    contrasts: Sequence[Sequence[dict[str, Any]]],
    settings: Settings,
) -> Drawing:
    """Draw what was compared."""
    from pipeline.judge.figures import compared as figures  # and with it matplotlib

    names = [", ".join(of_seeds) for of_seeds in systems]
    pools = list(map(figures.ComparedPool, ranked, contrasts))
    how = settings.typesetting
    return figures.draw(names, pools, how.text_width, how.figure_font)


def _write(
    picture: Drawing, files: Sequence[Path], settings: Settings, unwritten: Unwritten
) -> None:
    """Write a figure into all files that are named, and say what each file holds."""
    from pipeline.judge.figures import compared as figures  # and with it matplotlib

    pictures = []
    tables: dict[str, None] = {}
    for file in dict.fromkeys(files):
        with unwritten.of(file):
            figures.write(picture, file, settings.typesetting.figure_font)
            numbers = figures.numbers_beside(file)
            tables[str(numbers)] = None
            if file != numbers:
                pictures.append(str(file))
    if pictures:
        say(f"{', '.join(pictures)}: {picture.caption}")
    if tables:
        say(f"{', '.join(tables)}: {figures.NUMBERS}")


@dataclass(frozen=True)
class View:
    """All captions of the systems, or those of one language."""

    label: dict[str, Any]  # its split, language and sides, where they are others than by default
    groups: Sequence[Sequence[Part]]  # of each system, a part for each seed


def _views(groups: Sequence[Sequence[System]], rules: str | Protocol) -> list[View]:
    """All captions, then those of each language."""
    parts = []
    for group in groups:
        of_seeds = []
        for pool in group:
            of_seeds.append({part.language: part for part in pool.parts(rules)})
        parts.append(of_seeds)
    views = []
    for language in parts[0][0]:
        if not all(language in part for part in chain(*parts)):
            say(
                f"note: captions in {language} are not compared: not all files have hits of that language"
            )
            continue
        label: dict[str, Any] = {}
        first = groups[0][0]
        if first.split is not None:
            label["split"] = first.split
        if first.sides != IMAGES_AND_CAPTIONS:
            label["sides"] = [*first.sides]
        if language:
            label["language"] = language
        of_language = []
        for group_parts in parts:
            of_language.append([part[language] for part in group_parts])
        views.append(View(label, of_language))
    return views


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
        entries = chain.from_iterable(_entries(systems, view, notes) for view in contrasts)
        return json.dumps([*entries], indent=1)
    names = [", ".join(group) for group in systems]
    if output == "text":
        return compared.to_text(names, contrasts, explain)
    return compared.WRITERS[output](names, contrasts, explain)


def _entries(
    systems: Sequence[Sequence[str]], contrasts: Sequence[dict[str, Any]], notes: list[str]
) -> Iterator[dict[str, Any]]:
    """The contrasts of one pool as objects, one for each pair."""
    pairs = combinations(systems, 2)
    pairs_of_letters = combinations(contrast.in_letters(contrasts), 2)
    pairs_of_ranks = combinations(contrast.in_ranks(contrasts), 2)
    for names, letters, ranks, values in zip(
        pairs, pairs_of_letters, pairs_of_ranks, contrasts, strict=True
    ):
        entry = {
            "systems": dict(zip("ab", names, strict=True)),
            "split": None,
            "language": None,
            "notes": notes,
            "letters": dict(zip("ab", letters, strict=True)),
            "ranks": dict(zip("ab", ranks, strict=True)),
            **values,
        }
        if contrast.corrected_by(values) == FDR:
            entry |= {"letters": None, "ranks": None}
        yield entry


def _pools(
    named: Sequence[Sequence[named_systems.Place]], columns: judged.Columns
) -> list[list[System]]:
    """Open the groups of systems. Options on images and captions apply to scores from elsewhere."""
    none = judged.Columns(judgements=columns.judgements)
    are_stores = all(layout.is_store(root / text) for text, root in chain(*named))
    if are_stores and columns != none:
        raise InputError(
            "similarity stores hold the ids of their images and captions; leave out --manifest, "
            "--split, --captions-per-image and --distance"
        )
    groups = []
    read_as = []
    for group in named:
        pools = []
        for text, root in group:
            known = columns
            if layout.is_store(root / text):
                known = none
            pools.append(open_system(text, known, root=root))
        for (text, _), pool in zip(group, pools, strict=True):
            read_as.append((text, pool.read_as))
        groups.append(pools)
    named_systems.say_read_as(read_as)
    return _fitting(_of_one_pool(groups))


def _of_one_pool(groups: list[list[System]]) -> list[list[System]]:
    """Runs whose pools are what they list and the judgements have, in the pool of all of them."""
    pools = [*chain(*groups)]
    if not all(map(_is_of_what_it_lists, pools)):
        return groups
    images = np.unique(np.concatenate([pool.image_ids for pool in pools]))
    captions = np.unique(np.concatenate([pool.caption_ids for pool in pools]))
    return [[_within(pool, images, captions) for pool in group] for group in groups]


def _is_of_what_it_lists(pool: System) -> bool:
    """Whether a run's pool is known from nothing but its lists and the judgements."""
    is_run = isinstance(pool.scores, Lists) and pool.has_ids and pool.relevance is None
    return is_run and bool((pool.caption_image < 0).all())


def _within(pool: System, images: Ids, captions: Ids) -> System:
    """A run in a pool that has all its ids, which ascend."""
    lists = pool.scores
    assert isinstance(lists, Lists)
    rows = np.searchsorted(images, pool.image_ids)
    columns = np.searchsorted(captions, pool.caption_ids)
    of_all = lists.within((len(images), len(captions)), rows, columns)
    return replace(
        pool,
        image_ids=images,
        caption_ids=captions,
        caption_image=np.full(len(captions), -1, np.int64),
        kind=Given(lambda: of_all),
    )


def _fitting(groups: list[list[System]]) -> list[list[System]]:
    """Check that all systems are of one pool, as far as their ids or sizes tell."""
    pools = [*chain(*groups)]
    with_ids = [pool for pool in pools if pool.has_ids]
    silent = next((pool for pool in pools if not pool.has_ids), None)
    if silent and not all(map(_counts_rows, with_ids)):
        raise InputError(f"{silent.name}: has no ids, others have; name its --manifest")
    if silent and with_ids:  # their ids are numbers of rows and columns
        groups = [[replace(pool, has_ids=True) for pool in group] for group in groups]
    shapes = {pool.shape: pool.name for pool in pools}
    if len(shapes) > 1 and silent:
        first, second, *_ = shapes
        images, captions = first
        others = f"{shapes[second]} {second[0]} x {second[1]}"
        raise InputError(
            f"{shapes[first]} has {images} images x {captions} captions and {others}: "
            "expected scores of one pool"
        )
    for group in groups:
        _refuse_one_run(group)
    _refuse_other_candidates(pools)
    _refuse_hits_of_other_splits(pools)
    ranked = {_directions(pool): pool.name for pool in pools}
    if len(ranked) > 1:
        of_each = [f"{name} ranks {' and '.join(sorted(ways))}" for ways, name in ranked.items()]
        raise InputError(
            f"{', '.join(of_each)}: only systems that rank the same directions are compared"
        )
    return groups


def _refuse_one_run(seeds: Sequence[System]) -> None:
    """Refuse seeds that are one file's run, by the same or by different candidates."""
    seen: dict[Path, str] = {}
    for seed in seeds:
        if not isinstance(seed.scores, Lists) or not seed.scores.are_whole:
            continue
        file = Path(seed.scores.name).resolve()
        if file in seen:
            raise InputError(
                f"{seen[file]} and {seed.name}: are one run of {seed.scores.name}, and seeds are runs of "
                "their own; name one of both"
            )
        seen[file] = seed.name


def _refuse_hits_of_other_splits(pools: Sequence[System]) -> None:
    """Refuse hits of one split beside another split, which their sizes may not tell."""
    first = pools[0]
    for pool in pools[1:]:
        has_hits = first.hits or pool.hits
        if has_hits and first.split and pool.split and first.split != pool.split:
            raise InputError(
                f"{first.name} is of the split {first.split}, {pool.name} of {pool.split}: only systems of "
                "one split are compared"
            )


def _refuse_other_candidates(pools: Sequence[System]) -> None:
    """Refuse lists that have all candidates of each query beside lists of other candidates."""
    first = pools[0]
    for pool in pools[1:]:
        lists = [each.scores for each in (first, pool) if isinstance(each.scores, Lists)]
        whole = [each for each in lists if each.are_whole]
        if not whole:
            continue
        why = f"{Path(whole[0].name).name} has all of each query, the other one need not"
        if len(whole) > 1:
            why = _other_candidates(first, pool, whole)
        if why:
            raise InputError(
                f"{first.name} and {pool.name}: rank their queries among different candidates: {why}"
            )


def _other_candidates(first: System, pool: System, lists: Sequence[Lists]) -> str:
    """In which way the lists of two systems have other candidates; "" for the same ones."""
    if lists[0].has_pairs_of(lists[1], "t2i"):
        return ""
    counts: list[dict[int, int]] = []
    for system, each in zip((first, pool), lists, strict=True):
        queries, of_query = np.unique(each.listed["t2i"].query, return_counts=True)
        ids = system.caption_ids[queries]
        counts.append(dict(zip(ids.tolist(), of_query.tolist(), strict=True)))
    mine = counts[0]
    theirs = counts[1]
    if len(mine) != len(theirs):
        return f"{first.name} has {len(mine):,} queries, {pool.name} {len(theirs):,}"
    for query, count in mine.items():
        other = theirs.get(query, 0)
        if other != count:
            return f"query {query} has {count:,} in {first.name}, {other:,} in {pool.name}"
    return "as many for each query, but others"


def _refuse_other_queries(pools: Sequence[System]) -> None:
    """Refuse tools' runs that list other queries, such as another language's."""
    first = pools[0]
    for pool in pools[1:]:
        are_runs = isinstance(first.scores, Lists) and isinstance(pool.scores, Lists)
        if not are_runs or not first.has_ids or not pool.has_ids:
            continue
        both = np.intersect1d(first.caption_ids, pool.caption_ids)
        counts = [len(first.caption_ids), len(pool.caption_ids)]
        if counts != [len(both), len(both)]:
            raise InputError(
                f"{first.name} and {pool.name}: have {counts[0]:,} and {counts[1]:,} queries, of which "
                f"{len(both):,} are in both; only runs of the same queries are compared"
            )


def _refuse_other_answers(pools: Sequence[System]) -> None:
    """Refuse runs whose own files say that other candidates are right for a query, and hits of
    other right answers.
    """
    first = pools[0]
    for pool in pools[1:]:
        if first.hits or pool.hits:
            _refuse_hits_of_other_answers(first, pool)
            continue
        if first.relevance is None or pool.relevance is None or first.shape != pool.shape:
            continue
        mine = first.relevance.t2i
        theirs = pool.relevance.t2i
        are_same = np.array_equal(mine.candidate, theirs.candidate)
        if are_same and np.array_equal(mine.start, theirs.start):
            continue
        for column, query in enumerate(first.caption_ids.tolist()):
            rows = [slice(each.start[column], each.start[column + 1]) for each in (mine, theirs)]
            if not np.array_equal(mine.candidate[rows[0]], theirs.candidate[rows[1]]):
                raise InputError(
                    f"{first.name} and {pool.name}: have other right candidates for query {query}; give "
                    "--qrels, which says what is right for both"
                )


def _refuse_hits_of_other_answers(first: System, pool: System) -> None:
    """Refuse two systems, one of which is known by its hits, where other candidates are right."""
    if first.relevance is None and pool.relevance is None:
        return
    if first.shape != pool.shape:
        return  # which is refused with their sizes
    mine = as_relevance(first.truth, first.shape)
    theirs = as_relevance(pool.truth, pool.shape)
    if not mine.ranks_like(theirs):
        raise InputError(
            f"{first.name} and {pool.name}: are ranked by {_right(first)} and by {_right(pool)}, which are not the "
            "same right answers; write the hits of both by the same --qrels or --same-text"
        )


def _right(pool: System) -> str:
    """What is right for the queries of a system, in words."""
    if pool.hits:
        return pool.hits.right
    if pool.judgements:
        return f"the judgements in {pool.judgements.path.name}"
    if pool.relevance is not None:
        return "equal captions as one query"
    return "each caption's own image"


def _directions(pool: System) -> frozenset[Direction]:
    """The directions that a system ranks; lists may be of one alone."""
    if isinstance(pool.scores, Lists):
        return frozenset(pool.scores.listed)
    return frozenset({"i2t", "t2i"})


def _has_ids_of(pool: System, other: System) -> bool:
    """Whether both are runs of the same ids in the same order."""
    if not _is_of_what_it_lists(pool) or not _is_of_what_it_lists(other):
        return False
    are_images = np.array_equal(pool.image_ids, other.image_ids)
    return are_images and np.array_equal(pool.caption_ids, other.caption_ids)


def _counts_rows(pool: System) -> bool:
    """Whether its ids are the numbers of rows and columns, in any order."""
    for ids in (pool.image_ids, pool.caption_ids):
        if not np.array_equal(np.sort(ids), np.arange(len(ids))):
            return False
    return True


def _like(first: System, pool: System) -> System:
    """The pool in the order of the first one's ids, if both have ids."""
    if pool is first or not first.has_ids or not pool.has_ids:
        return pool
    if _has_ids_of(pool, first):
        return pool
    pool.require_owners_of(first)
    return fuse.in_order_of(first, pool)

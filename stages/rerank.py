"""Rerank a retriever's best candidates by a scorer of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline import manifest
from pipeline.evaluation.retrieval import Protocol, protocol
from pipeline.parts.errors import InputError, counted
from pipeline.settings import Settings
from pipeline.settings.paths import Paths, reranked
from pipeline.systems import reranking
from pipeline.systems.reranking.base import PairSource
from pipeline.systems.scores.judged import in_languages
from pipeline.systems.scores.reranked import Combination
from pipeline.systems.scores.system import System
from stages.arguments import Workers, is_name
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.systems.reranking import rerank


def rerank_candidates(
    paths: Paths,
    settings: Settings,
    retriever: str | None = None,
    scorer: str | None = None,
    k: int | Literal["all"] = 20,
    combine: str = "scorer",
    weight: float | None = None,
    tune: bool = False,
    tuned_on: Path | None = None,
    name: str | None = None,
    rules: Protocol | None = None,
    distractors: tuple[Path, ...] = (),
    trained_on: str | None = None,
    index: str | None = None,
    workers: Workers = Workers(),
    batch_size: int | None = None,
    dataset: str | None = None,
    device: str | None = None,
    if_changed: Literal["refuse", "redo"] = "refuse",
) -> None:
    """Score each query's best candidates with a scorer of pairs, and put them in that order above
    all others.
    """
    dataset = dataset or settings.run.dataset
    listed = next((step.options for step in settings.run.rerank if step.scorer == scorer), {})
    job = partial(
        _job,
        paths,
        settings,
        dataset,
        tune=tune,
        tuned_on=tuned_on,
        places=distractors,
        trained_on=trained_on,
        index=index,
        batch_size=batch_size,
        device=device,
        redo=if_changed == "redo",
        named=name is not None,
    )
    if retriever is None:
        for made, (source, other, step) in reranked(settings.run).items():
            rules = protocol(step.protocol) if step.protocol else None
            _rerank(
                settings,
                job(made, source, other, step.k, step.combine, step.weight, step.options, rules),
                workers,
            )
        return
    if scorer is None:
        raise InputError(f"pipeline rerank --retriever {retriever}: expected --with SCORER")
    made = name or f"{retriever}+rerank"
    if not is_name(made) or made == retriever:
        raise InputError(
            f"--name {made!r}: expected another name than the retriever's, of letters, digits and _ . + -"
        )
    _rerank(settings, job(made, retriever, scorer, k, combine, weight, listed, rules), workers)


def _job(
    paths: Paths,
    settings: Settings,
    dataset: str,
    name: str,
    retriever: str,
    scorer: str,
    k: int | Literal["all"],
    combine: str,
    weight: float | None,
    options: Mapping[str, Any],
    rules: Protocol | None,
    *,
    tune: bool,
    tuned_on: Path | None,
    places: tuple[Path, ...],
    trained_on: str | None,
    index: str | None,
    batch_size: int | None,
    device: str | None,
    redo: bool,
    named: bool,
) -> rerank.Job:
    split = "val" if tune else settings.score.split
    place = paths.similarity(dataset, retriever, split)
    if tune and not place.exists():
        raise InputError(
            f"{place}: --tune chooses on val, which is not scored; run `pipeline score -S "
            "score.split=val`, and for ensembles `pipeline ensemble -S score.split=val`"
        )
    store = System.open_named(place)
    if reranked_by := store.made_from.reranked:
        raise InputError(
            f"{retriever}: is reranked itself; give its retriever "
            f"{reranked_by.retriever} and a larger k"
        )
    file = paths.manifest(dataset)
    if file.exists() and manifest.Manifest.load(file).digest != store.made_from.manifest:
        raise InputError(
            f"{store.path}: is of another manifest than the current {file}; "
            f"{store.made_from.renewal}"
        )
    pool = in_languages(store if index is None else System.open_vectors(place), paths)
    source = PairSource(
        paths,
        trained_on or dataset,
        dataset,
        dataset,
        device or settings.training_of(dataset).device,
        batch_size or settings.score.batch_size,
        split,
        options,
    )
    if not tuned_on and (weight is None) != (combine == "scorer" or tune):
        raise InputError(
            "give --weight with --combine add or norm_add and only there, or choose it with --tune"
        )
    kind = reranking.resolve(scorer, source)
    if kind[1] == retriever:
        raise InputError(
            f"--with {scorer}: is the retriever itself, which changes no order; name another scorer"
        )
    distractors = [System.open_vectors(path) for path in places]
    if distractors:
        if pool.languages is not None:
            raise InputError(
                f"{retriever}: its captions are in several languages, each a pool of its own, and "
                "--distractors enlarge one pool; score a manifest of one language"
            )
        pool, rules = store.among(distractors), Protocol("enlarged")
    else:
        rules = rules or own_protocol(paths, dataset, split)
    from pipeline.systems.reranking import rerank  # and with it torch

    return rerank.Job(
        paths.similarity(dataset, name, split),
        store,
        pool,
        kind,
        source,
        k,
        Combination(combine, weight or 0.0),
        rules,
        distractors,
        named,
        tuned_on,
        tune,
        index,
        redo,
        settings.evaluate.block_megabytes,
    )


def own_protocol(paths: Paths, dataset: str, split: str) -> Protocol:
    """The data set's own protocol for a split."""
    known = manifest.dataset(dataset, paths.root).protocols_of(split)
    if len(known) > 1:
        raise InputError(
            f"{dataset} is measured by {' and '.join(known)}, and candidates differ; give --protocol"
        )
    return protocol(known[0])


def _rerank(settings: Settings, job: rerank.Job, workers: Workers) -> None:
    from pipeline.systems.reranking import rerank

    with (
        workers.open() as place,
        Progress(f"candidates {job.path.stem}", "query", job.queries) as finding,
        Progress(f"rerank {job.path.stem}", "pair") as scoring,
    ):
        report = rerank.Report(finding.reach, scoring.reset, scoring.update)
        outcome = rerank.rerank(job, place, report)
    record = outcome.made_from.reranked
    if record and (tuned := record.tuned):
        say(
            f"k {record.k}, λ {record.weight:g}: RSUM {tuned['RSUM']:.1f} on val, the best of {tuned['tried']}",
            err=False,
        )
    scored = f"{counted(outcome.pairs, 'pair')} scored" if outcome.written else "nothing to do"
    say(f"{job.path}: {scored}", err=False)

"""Rerank a retriever's best candidates by a scorer of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.foundation import manifest
from pipeline.foundation.evaluation.retrieval import Protocol, protocol
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths, reranked
from pipeline.judge.systems import reranking
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.judged import in_languages
from pipeline.judge.systems.scores.made import Reranked
from pipeline.judge.systems.scores.reranked import Combination
from pipeline.judge.systems.scores.system import System
from stages.arguments import Workers, is_name
from stages.commands.rerank import RerankOptions
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.judge.systems.reranking import rerank


def rerank_candidates(paths: Paths, settings: Settings, options: RerankOptions) -> None:
    """Score each query's best candidates with a scorer of pairs, and put them in that order above
    all others.
    """
    if options.retriever is None:
        for name, (retriever, scorer, step) in reranked(settings.run).items():
            rules = None
            if step.protocol:
                rules = protocol(step.protocol)
            asked = replace(
                options,
                name=name,
                retriever=retriever,
                scorer=scorer,
                k=step.k,
                combine=step.combine,
                weight=step.weight,
                rules=rules,
            )
            job = _job(paths, settings, asked, step.options)
            job = replace(job, named=options.name is not None)
            _rerank(job, options.workers)
        return
    if options.scorer is None:
        raise InputError(f"pipeline rerank --retriever {options.retriever}: expected --with SCORER")
    name = options.name or f"{options.retriever}+rerank"
    if not is_name(name) or name == options.retriever:
        raise InputError(
            f"--name {name!r}: expected another name than the retriever's, of letters, digits and _ . + -"
        )
    of_scorers = {}
    for step in reversed(settings.run.rerank):
        of_scorers[step.scorer] = step.options
    of_scorer = of_scorers.get(options.scorer, {})
    job = _job(paths, settings, replace(options, name=name), of_scorer)
    job = replace(job, named=options.name is not None)
    _rerank(job, options.workers)


def _job(
    paths: Paths, settings: Settings, asked: RerankOptions, of_scorer: Mapping[str, Any]
) -> rerank.Job:
    """Open the retriever's scores and the scorer, and check that they fit. asked: with the names of
    the retriever, the scorer and the new system; of_scorer: the options of the scorer's kind.
    """
    dataset = asked.dataset or settings.run.dataset
    retriever = str(asked.retriever)
    split = settings.score.split
    if asked.tune:
        split = "val"
    place = paths.similarity(dataset, retriever, split)
    if asked.tune and not place.exists():
        raise InputError(
            f"{place}: --tune chooses on val, which is not scored; run `pipeline score -S "
            "score.split=val`, and for ensembles `pipeline ensemble -S score.split=val`"
        )
    store = System.open_named(place)
    made = store.made_from
    if isinstance(made, Reranked):
        raise InputError(
            f"{retriever}: is reranked itself; give its retriever {made.retriever} and a larger k"
        )
    file = paths.manifest(dataset)
    if file.exists() and manifest.Manifest.load(file).digest != store.made_from.manifest:
        raise InputError(
            f"{store.path}: is of another manifest than the current {file}; "
            f"{store.made_from.renewal}"
        )
    pool = store
    if asked.index is not None:
        pool = System.open_vectors(place)
    pool = in_languages(pool, paths)
    trained_on = asked.trained_on or dataset
    device = asked.device or settings.training_of(dataset).device
    batch_size = asked.batch_size or settings.score.batch_size
    source = PairSource(paths, trained_on, dataset, dataset, device, batch_size, split, of_scorer)
    needs_weight = asked.combine != "scorer" and not asked.tune
    if not asked.tuned_on and needs_weight != (asked.weight is not None):
        raise InputError(
            "give --weight with --combine add or norm_add and only there, or choose it with --tune"
        )
    kind = reranking.resolve(str(asked.scorer), source)
    if kind[1] == retriever:
        raise InputError(
            f"--with {asked.scorer}: is the retriever itself, which changes no order; name another scorer"
        )
    distractors = [System.open_vectors(path) for path in asked.distractors]
    if not distractors:
        rules = asked.rules or own_protocol(paths, dataset, split)
    elif pool.languages is not None:
        raise InputError(
            f"{retriever}: its captions are in several languages, each a pool of its own, and "
            "--distractors enlarge one pool; score a manifest of one language"
        )
    else:
        pool = store.among(distractors)
        rules = Protocol("enlarged")
    combination = Combination(asked.combine, asked.weight or 0.0)
    path = paths.similarity(dataset, str(asked.name), split)
    from pipeline.judge.systems.reranking import rerank  # and with it torch

    return rerank.Job(
        path=path,
        retriever=store,
        pool=pool,
        scorer=kind,
        source=source,
        k=asked.k,
        how=combination,
        protocol=rules,
        distractors=distractors,
        tuned_on=asked.tuned_on,
        tune=asked.tune,
        index=asked.index,
        redo=asked.if_changed == "redo",
        block_megabytes=settings.evaluate.block_megabytes,
    )


def own_protocol(paths: Paths, dataset: str, split: str) -> Protocol:
    """The data set's own protocol for a split."""
    known = manifest.dataset(dataset, paths.root).protocols_of(split)
    if len(known) > 1:
        raise InputError(
            f"{dataset} is measured by {' and '.join(known)}, and candidates differ; give --protocol"
        )
    return protocol(known[0])


def _rerank(job: rerank.Job, workers: Workers) -> None:
    from pipeline.judge.systems.reranking import rerank

    name = job.path.stem
    with (
        workers.open() as place,
        Progress(f"candidates {name}", "query", job.queries) as finding,
        Progress(f"rerank {name}", "pair") as scoring,
    ):
        report = rerank.Report(finding.reach, scoring.reset, scoring.update)
        outcome = rerank.rerank(job, place, report)
    record = outcome.made_from
    tuned = record.tuned
    if tuned:
        rsum = f"RSUM {tuned['RSUM']:.1f} on val"
        say(f"k {record.k}, λ {record.weight:g}: {rsum}, the best of {tuned['tried']}", err=False)
    said = "nothing to do"
    if outcome.written:
        said = f"{counted(outcome.pairs, 'pair')} scored"
    say(f"{job.path}: {said}", err=False)

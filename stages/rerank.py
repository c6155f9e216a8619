"""Rerank a retriever's best candidates by a scorer of pairs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import click

from pipeline.evaluation.retrieval import PROTOCOLS, Protocol
from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths, reranked
from stages import options
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline import manifest
    from pipeline.settings import Settings
    from pipeline.systems.reranking import PairSource, rerank, resolve
    from pipeline.systems.scores.judged import in_languages
    from pipeline.systems.scores.reranked import Combination
    from pipeline.systems.scores.system import System, recorded


class _K(click.ParamType):
    name = "K"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | Literal["all"]:
        if value == "all" or (str(value).isdecimal() and int(value) >= 1):
            return "all" if value == "all" else int(value)
        raise click.BadParameter(f"{value!r}: expected a number from 1 up, or all", ctx, param)


@click.command
@click.option("--retriever", metavar="SYSTEM", shell_complete=options.names("scored"),
              help="A head or an ensemble that is scored.")
@click.option("--with", "scorer", metavar="SCORER", shell_complete=options.names("system"),
              help="Another scored system, a head that scores pairs, or KIND:NAME of any scorer of pairs.")
@click.option("--k", type=_K(), default=20, show_default=True,
              help="How many candidates of each query are scored; all for the whole pool.")
@click.option("--combine", type=click.Choice(["scorer", "add", "norm_add"]), default="scorer", show_default=True,
              help="Order candidates by the scorer alone; or by λ retriever + (1 - λ) scorer (add), each scaled among "
              "the query's candidates (norm_add).")
@click.option("--weight", type=click.FloatRange(0, 1), metavar="λ", help="The retriever's share, for add and norm_add.")
@click.option("--tune", is_flag=True,
              help="Choose k up to --k, and λ, by RSUM on the split val, or by its mean over languages.")
@click.option("--tuned-on", type=options.FilePath(), metavar="STORE",
              help="Take k, the combination and λ from a system of these heads that was reranked with --tune on val.")
@click.option("--name", metavar="NAME", show_default="RETRIEVER+rerank", help="The new system's name.")
@click.option("--protocol", "rules", type=click.Choice(list(PROTOCOLS)),
              show_default="the data set's, of val: all", help="Seek candidates within this protocol's folds.")
@click.option("--folds", type=click.IntRange(min=1), help="Or within this many consecutive folds of images.")
@click.option("--distractors", type=options.FilePath(), multiple=True, metavar="STORE",
              help="Seek candidates also among the images and captions of another store of the retriever's head (see "
              "pipeline embed). May be given several times.")
@click.option("--trained-on", metavar="DATASET", show_default="--dataset",
              help="What the scorer's head was trained on; the retriever's must be too. For zero-shot retrieval.")
@options.on_workers
@click.option("--batch-size", type=click.IntRange(min=1), show_default="score.batch_size",
              help="Pairs at once, for scorers with a network.")
@options.dataset
@options.device
@options.if_changed
@options.with_settings
def command(paths: Paths, settings: Settings, retriever: str | None, scorer: str | None, name: str | None,
            dataset: str, **given: Any) -> None:
    """Score each query's best candidates with a scorer of pairs, and put them in that order above all others.

    Without --retriever: each entry of run.rerank. A pair that both directions need is scored once. Running again does
    nothing, or resumes: finished shards of pairs are kept. The new system is evaluated, compared and traced like any
    other.

    Example: pipeline rerank --retriever vse2ad-R-bigru-s0 --with vse2ad-RGP-bigru-s0 --k 20
    """
    if retriever is None:
        options.refuse("scorer", "k", "combine", "weight", "tune", "tuned_on", "name", "rules", "folds", "distractors",
                       "trained_on",
                       why="needs --retriever; without it every entry of run.rerank is made")
        for made, (source, other, step) in reranked(settings.run).items():
            asked = {**given, "k": step.k, "combine": step.combine, "weight": step.weight, "rules": step.protocol}
            _rerank(paths, settings, _job(paths, settings, dataset, made, source, other, asked), given)
        return
    if scorer is None:
        raise InputError(f"pipeline rerank --retriever {retriever}: expected --with SCORER")
    made = name or f"{retriever}+rerank"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", made) or made == retriever:
        raise InputError(f"--name {made!r}: expected another name than the retriever's, of letters, digits and _ . + -")
    _rerank(paths, settings, _job(paths, settings, dataset, made, retriever, scorer, given), given)


def _job(paths: Paths, settings: Settings, dataset: str, name: str, retriever: str, scorer: str,
         given: dict[str, Any]) -> rerank.Job:
    """Compose the job from the options, and check it."""
    split = "val" if given["tune"] else settings.score.split
    place = paths.similarity(dataset, retriever, split)
    if given["tune"] and not place.exists():
        raise InputError(f"{place}: --tune chooses on val, which is not scored; run `pipeline score -S "
                         "score.split=val`, and for ensembles `pipeline ensemble -S score.split=val`")
    store = System.open_named(place).check()
    if store.made_from.reranked:
        raise InputError(f"{retriever}: is reranked itself; give its retriever "
                         f"{store.made_from.reranked['retriever']['system']} and a larger k")
    file = paths.manifest(dataset)
    if file.exists() and manifest.Manifest.load(file).digest != store.made_from["manifest"]:
        raise InputError(f"{store.path}: was scored for another manifest than {file} is now; score again")
    pool = in_languages(store, paths)
    source = PairSource(paths, given["trained_on"] or dataset, dataset, dataset,
                        given["device"] or settings.training_of(dataset).device,
                        given["batch_size"] or settings.score.batch_size, settings.compute.products, split)
    if given["tuned_on"]:
        options.refuse("k", "combine", "weight", "tune", why="cannot be given with --tuned-on, which sets it")
    elif (given["weight"] is None) != (given["combine"] == "scorer" or given["tune"]):
        raise InputError("give --weight with --combine add or norm_add and only there, or choose it with --tune")
    if given["rules"] and given["folds"]:
        raise InputError("--protocol has its own folds; give --protocol or --folds")
    kind = resolve(scorer, source)
    if kind[1] == retriever:
        raise InputError(f"--with {scorer}: is the retriever itself, which changes no order; name another scorer")
    distractors = [System.open_vectors(path) for path in given["distractors"]]
    if distractors:
        options.refuse("rules", "folds", "tune", why="cannot be given with --distractors, which enlarge the whole pool")
        if pool.languages is not None:
            raise InputError(f"{retriever}: its captions are in several languages, each a pool of its own, and "
                             "--distractors enlarge one pool; score a manifest of one language")
        pool, rules = store.among(distractors), Protocol("enlarged")
    else:
        rules = _protocol(paths, store, given["rules"], given["folds"])
    return rerank.Job(paths.similarity(dataset, name, split), store, pool, kind, source,
               given["k"], Combination(given["combine"], given["weight"] or 0.0), rules, recorded(distractors),
               given["tuned_on"], given["tune"], given["if_changed"] == "redo", settings.evaluate.block_megabytes)


def _protocol(paths: Paths, store: System, name: str | None, folds: int | None) -> Protocol:
    """The protocol that is named, or the data set's own."""
    if name or folds:
        return PROTOCOLS[name] if name else Protocol(f"{folds}fold", folds=folds or 1)
    dataset = store.made_from["dataset"]
    known = manifest.dataset(dataset, paths.root).protocols_of(store.made_from["split"])
    if len(known) > 1:
        raise InputError(f"{dataset} is measured by {' and '.join(known)}, and candidates differ; give --protocol")
    return PROTOCOLS[known[0]]


def _rerank(paths: Paths, settings: Settings, job: rerank.Job, given: dict[str, Any]) -> None:
    options.choose_products(settings)
    with given["open_workers"]() as place, \
            Progress(f"candidates {job.path.stem}", "query", job.queries) as finding, \
            Progress(f"rerank {job.path.stem}", "pair") as scoring:
        outcome = rerank.rerank(job, place, rerank.Report(finding.reach, scoring.reset, scoring.update))
    record = outcome.made_from.reranked
    if said := record.get("tuned"):
        say(f"k {record['k']}, λ {record['weight']:g}: RSUM {said['rsum']:.1f} on val, the best of "
            f"{said['tried']}", err=False)
    say(f"{job.path}: " + (f"{outcome.pairs:,} pairs scored" if outcome.written else "nothing to do"), err=False)

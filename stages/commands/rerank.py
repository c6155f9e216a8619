"""The command line of `stages.rerank`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.evaluation.retrieval import PROTOCOLS
from stages import options, values


@click.command
@click.option("--retriever", metavar="SYSTEM", shell_complete=options.names("scored"),
              help="A head or an ensemble that is scored.")
@click.option("--with", "scorer", metavar="SCORER", shell_complete=options.names("system"),
              help="Another scored system, a head that scores pairs, or KIND:NAME of any scorer of pairs.")
@click.option("--k", type=values.CountOrAll(), default=20, show_default=True,
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
def rerank_command(**given: Any) -> None:
    """Score each query's best candidates with a scorer of pairs, and put them in that order above all others.

    Without --retriever: each entry of run.rerank. A pair that both directions need is scored once. Running again does
    nothing, or resumes: finished shards of pairs are kept. The new system is evaluated, compared and traced like any
    other.

    Example: pipeline rerank --retriever vse2ad-R-bigru-s0 --with vse2ad-RGP-bigru-s0 --k 20
    """
    from stages.rerank import rerank_candidates

    if given["retriever"] is None:
        options.refuse("scorer", "k", "combine", "weight", "tune", "tuned_on", "name", "rules", "folds", "distractors",
                       "trained_on", why="needs --retriever; without it every entry of run.rerank is made")
    if given["tuned_on"]:
        options.refuse("k", "combine", "weight", "tune", why="cannot be given with --tuned-on, which sets it")
    if given["distractors"]:
        options.refuse("rules", "folds", "tune", why="cannot be given with --distractors, which enlarge the whole pool")
    rerank_candidates(**given)

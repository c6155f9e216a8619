"""The command line of `stages.rerank`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from stages import declared, measuring, options, values
from stages.arguments import Workers

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol


@dataclass(frozen=True, kw_only=True)
class RerankOptions(declared.Options):
    """Score each query's best candidates with a scorer of pairs, and put them in that order above
    all others.

    Candidates are sought within the folds of --protocol or --folds; without these, of the data
    set's protocol, on val in one pool. Without --retriever: each entry of run.rerank. A pair that
    both directions need is scored once. Running again does nothing, or resumes: finished shards of
    pairs are kept. The new system is evaluated, compared and traced like any other. The options of
    a scorer KIND:NAME are those in run.rerank, if it is listed there.

    Example: pipeline rerank --retriever vse2ad-R-bigru-s0 --with vse2ad-RGP-bigru-s0 --k 20
    """

    retriever: Annotated[str | None, options.retriever] = None
    scorer: Annotated[str | None, options.scorer] = None
    k: Annotated[
        int | Literal["all"],
        click.option(
            "--k",
            type=values.CountOrAll(),
            show_default=True,
            help="How many candidates of each query are scored; all for the whole pool.",
        ),
    ] = 20
    combine: Annotated[
        str,
        click.option(
            "--combine",
            type=click.Choice(["scorer", "add", "norm_add"]),
            show_default=True,
            help="Order candidates by the scorer alone; or by λ retriever + (1 - λ) scorer (add), each scaled among "
            "the query's candidates (norm_add).",
        ),
    ] = "scorer"
    weight: Annotated[
        float | None,
        click.option(
            "--weight",
            type=click.FloatRange(0, 1),
            metavar="λ",
            help="The retriever's share, for add and norm_add.",
        ),
    ] = None
    tune: Annotated[
        bool,
        declared.flag(
            "--tune",
            help="Choose k up to --k, and λ, by RSUM on the split val, or by its mean over languages.",
        ),
    ] = False
    tuned_on: Annotated[
        Path | None,
        click.option(
            "--tuned-on",
            type=options.FilePath(),
            metavar="STORE",
            help="Take k, the combination and λ from a system of these heads that was reranked with --tune on val.",
        ),
    ] = None
    name: Annotated[
        str | None,
        click.option(
            "--name", metavar="NAME", show_default="RETRIEVER+rerank", help="The new system's name."
        ),
    ] = None
    rules: Annotated["Protocol | None", measuring.rules] = None
    distractors: Annotated[tuple[Path, ...], options.distractors] = ()
    trained_on: Annotated[
        str | None,
        options.trained_on(
            "--dataset",
            "What the scorer's head was trained on; the retriever's must be too. For zero-shot retrieval.",
        ),
    ] = None
    index: Annotated[
        str | None,
        click.option(
            "--index",
            metavar="INDEX",
            help="Find candidates by this index of the retriever's vectors, exact or "
            "another package's, instead of by its scores.",
        ),
    ] = None
    workers: Annotated[Workers, options.on_workers] = Workers()
    batch_size: Annotated[
        int | None, options.batch_size("Pairs", show_default="score.batch_size")
    ] = None
    dataset: Annotated[str | None, options.dataset] = None
    device: Annotated[str | None, options.device()] = None
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"

    def check(self) -> None:
        if self.retriever is None:
            declared.refuse(
                "scorer",
                "k",
                "combine",
                "weight",
                "tune",
                "tuned_on",
                "name",
                "protocol",
                "folds",
                "distractors",
                "trained_on",
                "index",
                why="needs --retriever; without it every entry of run.rerank is made",
            )
            declared.refuse_shipped()
        if self.tuned_on:
            declared.refuse(
                "k",
                "combine",
                "weight",
                "tune",
                why="cannot be given with --tuned-on, which sets it",
            )
        if self.distractors:
            declared.refuse(
                "protocol",
                "folds",
                "tune",
                why="cannot be given with --distractors, which enlarge the whole pool",
            )


rerank_command = declared.command(
    RerankOptions, "rerank.rerank_candidates", declared.with_settings_or_shipped
)

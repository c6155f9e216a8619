"""The command line of `stages.explain`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import click

from stages import declared, measuring, options

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol, Ties
    from pipeline.judge.systems.scores.judged import Columns, Truth


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(declared.Options):
    """Find out why you cannot reproduce a published number: captions, folds, ties, splits, types
    and what else people do differently, tried one at a time and together.

    SCORES are a file of similarities, two files of vectors (images.npy:captions.npy), a store, or a
    system's name. Several with commas between, or a name without its seed, are seeds of one system,
    whose mean is measured; TITLE=SCORES names it. With the --manifest also captions' texts and, in
    scores of all its images, other splits are tried. That nothing gives the numbers is an answer,
    too.

    Example: pipeline explain sims.npy --published R@1=58.4,R@5=81.5
    """

    scores: Annotated[str, click.argument("scores", shell_complete=options.names("scored"))]
    published: Annotated[
        str,
        click.option(
            "--published",
            metavar="NUMBERS",
            required=True,
            help="The numbers to explain: R@1=58.4, several as i2t_R@1=58.4,t2i_R@1=37.8,RSUM=500.2, a file of "
            "results that has such names (of several FILE:SUBSET:SPLIT, FILE:EPOCH), or a published row as --beside of `evaluate` names it: "
            "'flickr30k:VSE∞ RG bert'.",
        ),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    columns: Annotated["Columns", measuring.columns] = field(
        default_factory=measuring.columns.default
    )
    normalise: Annotated[
        bool,
        declared.flag(
            "--normalise",
            help="Normalise vectors in the baseline measurement.",
        ),
    ] = False
    truth: Annotated["Truth", measuring.truth] = field(default_factory=measuring.truth.default)
    rules: Annotated["Protocol | None", measuring.rules] = None
    ties: Annotated["Ties", measuring.ties] = "expected"
    encoder: Annotated[
        str | None,
        click.option(
            "--encoder",
            metavar="KIND:PLACE",
            help="The dual encoder that made the vectors, such as clip:FOLDER: captions are also embedded again, "
            "cut at fewer tokens.",
        ),
    ] = None
    most: Annotated[
        int,
        click.option(
            "--most",
            type=click.IntRange(1, 3),
            show_default=True,
            help="How many differences are tried together; three only where no two give the numbers.",
        ),
    ] = 3
    rows: Annotated[
        int,
        click.option(
            "--rows",
            type=click.IntRange(min=1),
            show_default=True,
            help="How many variants are shown.",
        ),
    ] = 10
    output: Annotated[str, measuring.output] = "text"


explain_command = declared.command(
    ExplainOptions, "explain.explain", declared.with_settings_or_shipped
)

"""The command line of `stages.hard_negatives`."""

from typing import Any

import click

from stages import options


@click.command
@click.argument("questions", required=False)
@options.source(options.HEAD_OR_ENCODER, "head")
@options.training_data
@click.option(
    "--images-of",
    metavar="NAME",
    show_default="as --trained-on",
    help="The data set whose stored features hold the images.",
)
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    show_default="as the benchmark's card or the content says",
    help="Of the file QUESTIONS: csv, entries, sugarcrepe, aro or winoground.",
)
@click.option(
    "--save",
    type=options.OutputPath(endings=(".csv",)),
    metavar="FILE.csv",
    help="Also write the questions.",
)
@options.usage
@options.out(
    "results/hard-negatives/DATASET/QUESTIONS-SYSTEM.json", "The result.", endings=(".json",)
)
@options.device()
@options.with_settings_or_shipped
def hard_negatives_command(**given: Any) -> None:
    """Measure how often an image's caption is more similar to it than hard negatives: captions that
    are nearly the same and wrong.

    QUESTIONS is sugarcrepe, aro or winoground, whose files you fetch, or a CSV with the columns
    image,positive,negative[,category]. Without it, the captions of the split score.split are
    swapped: a colour, a number, the order of two nouns, left and right.

    Ties count by the mean over all their orders. Intervals are over images, each with all its
    questions.

    Example: pipeline lab hard-negatives --system vse2ad-region-bigru-s0

    Example: pipeline lab hard-negatives sugarcrepe --system vse2ad-region-bigru-s0 --trained-on
        coco

    Example: pipeline lab hard-negatives sugarcrepe --system clip:openai/clip-vit-base-patch32
        --images-of coco

    Example: pipeline lab hard-negatives --save swaps.csv
    """
    from stages.hard_negatives import hard_negatives

    if given["source"] is None:
        options.refuse("out", "device", why="needs --system")
    if given["questions"] is None:
        options.refuse("form", why="needs QUESTIONS")
    if given["source"] is None or not given["source"].is_encoder:
        options.refuse(*options.USAGE, why="is for an encoder, KIND:PLACE")
    hard_negatives(**given)

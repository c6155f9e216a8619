"""The command line of `stages.explain`."""

from typing import Any

import click

from stages import measuring, options


@click.command
@click.argument("scores", shell_complete=options.names("scored"))
@click.option(
    "--published",
    metavar="NUMBERS",
    required=True,
    help="The numbers to explain: R@1=58.4, several as i2t_R@1=58.4,t2i_R@1=37.8,RSUM=500.2, or a row of a "
    "shipped table by its number or words: vse_infty_table10:4, 'rerank_table1:coco_5k SCAN'.",
)
@options.dataset
@measuring.columns
@click.option(
    "--normalise",
    is_flag=True,
    help="Vectors are divided by their lengths where nothing is different.",
)
@measuring.truth
@measuring.rules
@measuring.ties
@click.option(
    "--encoder",
    metavar="KIND:PLACE",
    help="The dual encoder that made the vectors, such as clip:FOLDER: captions are also embedded again, "
    "cut at fewer tokens.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 3),
    default=3,
    show_default=True,
    help="How many differences are tried together; three only where no two give the numbers.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many variants are shown.",
)
@measuring.output
@options.with_settings_or_shipped
def explain_command(**given: Any) -> None:
    """Search why a published number is not reached: captions, folds, ties, splits, types and what
    else people do differently, one at a time and together.

    SCORES are a file of similarities, two files of vectors (images.npy:captions.npy), a store, or a
    system's name. With the --manifest also captions' texts and, in scores of all its images, other
    splits are tried. That nothing gives the numbers is an answer, too.

    Example: pipeline explain sims.npy --published R@1=58.4,R@5=81.5
    """
    from stages.explain import explain

    explain(**given)

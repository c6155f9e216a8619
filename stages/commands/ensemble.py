"""The command line of `stages.ensemble`."""

from typing import Any

import click

from pipeline.settings.features import of_ensemble
from pipeline.systems.fusion.methods import FUSIONS
from stages import measuring, options


@click.command
@click.argument("name", required=False)
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="SYSTEM|PATH",
    shell_complete=options.names("scored"),
    help="A system's name, a similarity store, or a matrix (.npy, zarr) of the --manifest; give two or more "
    "for an ensemble of your own.",
)
@click.option(
    "--fusion",
    type=click.Choice(list(FUSIONS)),
    default="mean",
    show_default=True,
    help="What is averaged: similarities (mean); or, of each query's candidates, z-scores, 1 / (60 + rank) "
    "(rank, also called RRF), scores scaled to 0 to 1 (combsum), or these for each member's best 100, times "
    "the number of members that list a candidate (combmnz).",
)
@click.option(
    "--weight",
    "weights",
    type=float,
    multiple=True,
    show_default="equal",
    help="A member's weight; one for each member, in order.",
)
@click.option(
    "--tune-on",
    "on",
    type=options.FilePath(),
    multiple=True,
    metavar="PATH",
    help="Choose the weights by RSUM on these scores of the split val, one for each member, in order.",
)
@click.option(
    "--keep-common",
    is_flag=True,
    help="Leave out images that a member lacks, because an engine failed for instance, and list them.",
)
@measuring.columns
@options.dataset
@options.text
@options.recipe
@options.seed
@options.with_settings_or_shipped
def ensemble_command(**given: Any) -> None:
    """Fuse systems, aligned by image and caption id. Running again does nothing if it is up to
    date.

    NAME consists of letters of features, such as RG: the mean of these features' heads, as in the
    papers. Or it is a name of your own, with --member. Without NAME: all of run.ensembles.

    Example: pipeline ensemble RGP

    Example: pipeline ensemble mine --member vse2ad-region-bigru-s0 --member vse2ad-grid-bigru-s0
        --fusion zscore
    """
    from stages.ensemble import ensemble

    if given["name"] is None:
        options.refuse(
            "members",
            "fusion",
            "weights",
            "on",
            "manifest_file",
            "text",
            "recipe",
            "seed",
            why="needs the NAME of an ensemble",
        )
    elif not of_ensemble(given["name"]):
        options.refuse(
            "text", "recipe", "seed", why="is for ensembles such as RG; your own has its --member"
        )
    ensemble(**given)

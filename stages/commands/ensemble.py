"""The command line of `stages.ensemble`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from pipeline.foundation.settings.features import of_ensemble
from pipeline.judge.systems.fusion.methods import FUSIONS
from stages import declared, measuring, options

if TYPE_CHECKING:
    from pipeline.judge.systems.scores.judged import Columns


@dataclass(frozen=True, kw_only=True)
class EnsembleOptions(declared.Options):
    """Fuse systems, aligned by image and caption id. Running again does nothing if it is up to
    date.

    NAME consists of letters of features, such as RG: the mean of these features' heads, as in the
    papers. Or it is a name of your own, with --member. Without NAME: all of run.ensembles.

    Example: pipeline ensemble RGP

    Example: pipeline ensemble mine --member vse2ad-region-bigru-s0 --member vse2ad-grid-bigru-s0
        --fusion zscore
    """

    name: Annotated[str | None, click.argument("name", required=False)] = None
    members: Annotated[
        tuple[str, ...],
        click.option(
            "--member",
            multiple=True,
            metavar="SYSTEM|PATH",
            shell_complete=options.names("scored"),
            help="A system's name, a similarity store, or a matrix (.npy, zarr) of the --manifest; give two or more "
            "for an ensemble of your own.",
        ),
    ] = ()
    fusion: Annotated[
        str,
        click.option(
            "--fusion",
            type=click.Choice(list(FUSIONS)),
            show_default=True,
            help="What is averaged: similarities (mean); or, of each query's candidates, z-scores, 1 / (60 + rank) "
            "(rank, also called RRF), scores scaled to 0 to 1 (combsum), or these for each member's best 100, times "
            "the number of members that list a candidate (combmnz).",
        ),
    ] = "mean"
    weights: Annotated[
        tuple[float, ...],
        click.option(
            "--weight",
            type=float,
            multiple=True,
            show_default="equal",
            help="A member's weight; one for each member, in order.",
        ),
    ] = ()
    on: Annotated[
        tuple[Path, ...],
        click.option(
            "--tune-on",
            type=options.FilePath(),
            multiple=True,
            metavar="PATH",
            help="Choose the weights by RSUM on these scores of the split val, one for each member, in order.",
        ),
    ] = ()
    keep_common: Annotated[
        bool,
        declared.flag(
            "--keep-common",
            help="Leave out images that a member lacks, because an engine failed for instance, and list them.",
        ),
    ] = False
    columns: Annotated["Columns", measuring.columns] = field(
        default_factory=measuring.columns.default
    )
    dataset: Annotated[str | None, options.dataset] = None
    text: Annotated[str, options.text] = "bigru"
    recipe: Annotated[str, options.recipe] = "vse2ad"
    seed: Annotated[int, options.seed] = 0

    def check(self) -> None:
        if self.name is None:
            declared.refuse(
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
        elif not of_ensemble(self.name):
            declared.refuse(
                "text",
                "recipe",
                "seed",
                why="is for ensembles such as RG; your own has its --member",
            )


ensemble_command = declared.command(
    EnsembleOptions, "ensemble.ensemble", declared.with_settings_or_shipped
)

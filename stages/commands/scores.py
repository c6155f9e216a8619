"""The command line of `stages.scores`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options
from stages.arguments import Source, Workers


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(declared.Options):
    """Write similarity matrices, embeddings and ids of heads and dual encoders for the split
    score.split.

    Test scores go to similarities/DATASET, those of val to similarities/DATASET/val. An interrupted
    run resumes.

    Example: pipeline score

    Example: pipeline score --feature region

    Example: pipeline score --feature region --recipe vse2ad --recipe vse2ad-noadopt --seed 0 --seed
        1 --seed 2

    Example: pipeline score --system clip-vit-base-patch32 --dataset flickr8k

    Example: pipeline score --system coco-vse2ad-region-bigru-s0 --dataset flickr8k
    """

    feature: Annotated[
        str | None,
        options.feature(
            "Which visual feature; without it and --system all heads and encoders of the run."
        ),
    ] = None
    dataset: Annotated[str | None, options.dataset] = None
    text: Annotated[str, options.text] = "bigru"
    recipes: Annotated[tuple[str, ...], options.recipes] = ("vse2ad",)
    seeds: Annotated[tuple[int, ...], options.seeds] = (0,)
    source: Annotated[
        Source | None,
        options.source(
            "A head by its name, or its folder if it was trained with --out; or a store of embeddings by `pipeline "
            "embed`, of a dual encoder or of a head that was trained on other data, by its path or its name. The "
            "matrix gets its name."
        ),
    ] = None
    images: Annotated[Path | None, options.images(", for a fine-tuned head")] = None
    device: Annotated[str | None, options.device()] = None
    workers: Annotated[Workers, options.on_workers] = Workers()

    def check(self) -> None:
        if self.source:
            declared.refuse(
                "feature",
                "text",
                "recipes",
                "seeds",
                why="cannot be given with --system, which names the head",
            )
        elif self.feature is None:
            declared.refuse(
                "text",
                "recipes",
                "seeds",
                why="needs --feature; without it all heads of the run are scored",
            )
            declared.refuse_shipped()


score_command = declared.command(ScoreOptions, "scores.score", declared.with_settings_or_shipped)


@dataclass(frozen=True, kw_only=True)
class RescoreOptions(declared.Options):
    """Rescore SYSTEM by one rescorer; without SYSTEM, all heads and ensembles of the run by each of
    run.rescorers.

    Rescorers correct hubs: images and captions that are similar to everything. csls subtracts each
    image's and caption's mean similarity to its nearest neighbours, nnn to the nearest queries of a
    bank; the others are softmaxes over a bank. The new system is called SYSTEM+NAME, or
    SYSTEM+NAME-test with --bank test. Running again does nothing if it is up to date.

    Example: pipeline rescore vse2ad-RGP-bigru-s0 --by csls
    """

    system: Annotated[
        str | None, click.argument("system", required=False, shell_complete=options.names("scored"))
    ] = None
    name: Annotated[
        str | None,
        click.option(
            "--by",
            metavar="NAME",
            help="A rescorer: csls, nnn, inverted-softmax, qb-norm, dual-softmax or db-norm. Its options are "
            "those in run.rescorers, if it is listed there.",
        ),
    ] = None
    bank: Annotated[
        str | None,
        click.option(
            "--bank",
            type=click.Choice(["train", "test"]),
            help="The queries that show which candidates are hubs: the captions and images of train, which `pipeline "
            "embed` embeds, or those that are ranked. Tables mark what was rescored by test. csls takes none.",
        ),
    ] = None
    dataset: Annotated[str | None, options.dataset] = None

    def check(self) -> None:
        if self.system is None:
            declared.refuse("name", "bank", why="needs a SYSTEM")
            declared.refuse_shipped()


rescore_command = declared.command(
    RescoreOptions, "scores.rescore", declared.with_settings_or_shipped
)

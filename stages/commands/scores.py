"""The command line of `stages.scores`."""

from typing import Any

import click

from stages import options


@click.command
@options.feature("Which visual feature; without it and --system all heads and encoders of the run.")
@options.dataset
@options.text
@options.recipes
@options.seeds
@options.source(
    "A head by its name, or its folder if it was trained with --out; or a store of embeddings by `pipeline "
    "embed`, of a dual encoder or of a head that was trained on other data, by its path or its name. The "
    "matrix gets its name."
)
@options.images(", for a fine-tuned head")
@options.device()
@options.on_workers
@options.with_settings_or_shipped
def score_command(**given: Any) -> None:
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
    from stages.scores import score

    if given["source"]:
        options.refuse(
            "feature",
            "text",
            "recipes",
            "seeds",
            why="cannot be given with --system, which names the head",
        )
    elif given["feature"] is None:
        options.refuse(
            "text",
            "recipes",
            "seeds",
            why="needs --feature; without it all heads of the run are scored",
        )
        options.refuse_shipped()
    score(**given)


@click.command
@click.argument("system", required=False, shell_complete=options.names("scored"))
@click.option(
    "--by",
    "name",
    metavar="NAME",
    help="A rescorer: csls, nnn, inverted-softmax, qb-norm, dual-softmax or db-norm. Its options are "
    "those in run.rescorers, if it is listed there.",
)
@click.option(
    "--bank",
    type=click.Choice(["train", "test"]),
    help="The queries that show which candidates are hubs: the captions and images of train, which `pipeline "
    "embed` embeds, or those that are ranked. Tables mark what was rescored by test. csls takes none.",
)
@options.dataset
@options.with_settings_or_shipped
def rescore_command(**given: Any) -> None:
    """Rescore SYSTEM by one rescorer; without SYSTEM, all heads and ensembles of the run by each of
    run.rescorers.

    Rescorers correct hubs: images and captions that are similar to everything. csls subtracts each
    image's and caption's mean similarity to its nearest neighbours, nnn to the nearest queries of a
    bank; the others are softmaxes over a bank. The new system is called SYSTEM+NAME, or
    SYSTEM+NAME-test with --bank test. Running again does nothing if it is up to date.

    Example: pipeline rescore vse2ad-RGP-bigru-s0 --by csls
    """
    from stages.scores import rescore

    if given["system"] is None:
        options.refuse("name", "bank", why="needs a SYSTEM")
        options.refuse_shipped()
    rescore(**given)

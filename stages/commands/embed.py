"""The command line of `stages.embed`."""

from typing import Any

import click

from stages import options


@click.command
@click.argument(
    "dataset", metavar="[NAME]", required=False, shell_complete=options.names("dataset")
)
@options.source(options.HEAD_OR_ENCODER, "head")
@options.training_data
@click.option(
    "--name",
    metavar="NAME",
    callback=options.called,
    show_default="the last part of PLACE, of a checkpoint with its run",
    help="What the encoder is called in results.",
)
@options.usage
@options.batch_size("Images or captions", default=64, show_default=True)
@options.split(
    "Which images; may be given several times.", "splits", multiple=True, show_default="all of them"
)
@options.out(
    "embeddings/NAME/…",
    "The store: DATASET-SYSTEM.zarr of a head, NAME.zarr of an encoder.",
    "store of embeddings",
)
@options.images(", for an encoder or a fine-tuned head")
@options.device()
@options.on_workers
@options.with_settings_or_shipped
def embed_command(**given: Any) -> None:
    """Embed the images and captions of data set NAME: for `pipeline search`, or as distractors of
    `pipeline evaluate`.

    A head reads stored features, which must be made by the same engine with the same settings as
    those that the head was trained on. A fine-tuned head has its own network and reads the image
    files. Photographs without captions need a captions.csv, too: it may have the files' names as
    captions.

    A pretrained encoder such as CLIP reads the image files. Then `pipeline score --system NAME`
    makes a system of it. Without NAME: all of run.encoders, and the heads whose vectors of the
    split train are the bank of run.rescorers. An interrupted run resumes.

    A head that was trained on other data becomes a system of the data set in the same way: its
    store is called after both, `pipeline score --system coco-vse2ad-region-bigru-s0 --dataset
    flickr8k`, and so is the system.

    Example: pipeline embed flickr8k --system vse2ad-region-bigru-s0 --trained-on coco

    Example: pipeline embed flickr8k --system clip:openai/clip-vit-base-patch32
    """
    from stages.embed import embed

    if given["dataset"] is None:
        options.refuse(
            "source",
            "name",
            *options.USAGE,
            "trained_on",
            "splits",
            "out",
            why="needs the NAME of a data set",
        )
    elif given["source"] and not given["source"].is_encoder:
        options.refuse("name", *options.USAGE, "batch_size", why="is for an encoder, KIND:PLACE")
    embed(**given)

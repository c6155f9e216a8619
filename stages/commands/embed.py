"""The command line of `stages.embed`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import click

from stages import declared, options
from stages.arguments import Source, Workers


@dataclass(frozen=True, kw_only=True)
class EmbedOptions(declared.Options):
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

    dataset: Annotated[
        str | None,
        click.argument(
            "dataset", metavar="[NAME]", required=False, shell_complete=options.names("dataset")
        ),
    ] = None
    source: Annotated[Source | None, options.source(options.HEAD_OR_ENCODER, "head")] = None
    trained_on: Annotated[str | None, options.training_data] = None
    name: Annotated[
        str | None,
        click.option(
            "--name",
            metavar="NAME",
            callback=options.called,
            show_default="the last part of PLACE, of a checkpoint with its run",
            help="What the encoder is called in results.",
        ),
    ] = None
    usage: Annotated[Mapping[str, Any], options.usage] = field(default_factory=dict)
    batch_size: Annotated[
        int, options.batch_size("Images or captions", default=64, show_default=True)
    ] = 64
    splits: Annotated[
        tuple[str, ...],
        options.split(
            "Which images; may be given several times.",
            "splits",
            multiple=True,
            show_default="all of them",
        ),
    ] = ()
    out: Annotated[
        Path | None,
        options.out(
            "embeddings/NAME/…",
            "The store: DATASET-SYSTEM.zarr of a head, NAME.zarr of an encoder.",
            "store of embeddings",
        ),
    ] = None
    images: Annotated[Path | None, options.images(", for an encoder or a fine-tuned head")] = None
    device: Annotated[str | None, options.device()] = None
    workers: Annotated[Workers, options.on_workers] = Workers()

    def check(self) -> None:
        if self.dataset is None:
            declared.refuse(
                "source",
                "name",
                *options.USAGE,
                "trained_on",
                "splits",
                "out",
                why="needs the NAME of a data set",
            )
        elif self.source and not self.source.is_encoder:
            declared.refuse(
                "name", *options.USAGE, "batch_size", why="is for an encoder, KIND:PLACE"
            )


embed_command = declared.command(EmbedOptions, "embed.embed", declared.with_settings_or_shipped)

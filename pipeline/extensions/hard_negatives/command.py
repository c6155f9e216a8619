"""The options of `pipeline lab hard-negatives`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import click

from stages import declared, options
from stages.arguments import Source


@dataclass(frozen=True, kw_only=True)
class HardNegativesOptions(declared.Options):
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

    questions: Annotated[str | None, click.argument("questions", required=False)] = None
    source: Annotated[Source | None, options.source(options.HEAD_OR_ENCODER, "head")] = None
    trained_on: Annotated[str | None, options.training_data] = None
    images_of: Annotated[
        str | None,
        click.option(
            "--images-of",
            metavar="NAME",
            show_default="as --trained-on",
            help="The data set whose stored features hold the images.",
        ),
    ] = None
    form: Annotated[
        str | None,
        click.option(
            "--format",
            metavar="FORMAT",
            show_default="as the benchmark's card or the content says",
            help="Of the file QUESTIONS: csv, entries, sugarcrepe, aro or winoground.",
        ),
    ] = None
    save: Annotated[
        Path | None,
        click.option(
            "--save",
            type=options.OutputPath(endings=(".csv",)),
            metavar="FILE.csv",
            help="Also write the questions.",
        ),
    ] = None
    usage: Annotated[Mapping[str, Any], options.usage] = field(default_factory=dict)
    out: Annotated[
        Path | None,
        options.out(
            "results/hard-negatives/DATASET/QUESTIONS-SYSTEM.json",
            "The result.",
            endings=(".json",),
        ),
    ] = None
    device: Annotated[str | None, options.device()] = None

    def check(self) -> None:
        if self.source is None:
            declared.refuse("out", "device", why="needs --system")
        if self.questions is None:
            declared.refuse("form", why="needs QUESTIONS")
        if self.source is None or not self.source.is_encoder:
            declared.refuse(*options.USAGE, why="is for an encoder, KIND:PLACE")


hard_negatives_command = declared.command(
    HardNegativesOptions,
    "pipeline.extensions.hard_negatives.stage:hard_negatives",
    declared.with_settings_or_shipped,
)

"""The command line of `stages.finetune`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click

from stages import declared, options
from stages.arguments import Source


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(declared.Options):
    """Train a dual encoder on: its projections, its last blocks, low-rank adapters in its blocks,
    or all of it.

    The photographs and captions of the split train are learned from, val selects the best epoch,
    and test is not read. The result is a folder, used as tuned:FOLDER by --system of other
    commands. It holds what was trained, and needs the model's own folder, where it was or as
    FOLDER/base.

    Without --system: the encoders of run.encoders that name a recipe as `finetune`, each into
    encoders/NAME/ENCODER.

    Example: pipeline finetune flickr8k --system clip:models/clip-vit-base-patch32 --recipe lora

    Example: pipeline finetune --system siglip:models/b16 --recipe lora -S
        finetuning.lora.pieces=8
    """

    dataset: Annotated[
        str | None,
        click.argument(
            "dataset", metavar="[NAME]", required=False, shell_complete=options.names("dataset")
        ),
    ] = None
    source: Annotated[
        Source | None,
        options.source(
            "The dual encoder, KIND:PLACE, such as clip:FOLDER; tuned:FOLDER is trained on once more.",
            "head",
        ),
    ] = None
    recipe: Annotated[
        str,
        click.option(
            "--recipe",
            metavar="NAME",
            show_default=True,
            help="How: a section of the settings' finetuning, such as projections, blocks, lora or all.",
        ),
    ] = "projections"
    prompt: Annotated[
        str,
        click.option(
            "--prompt",
            show_default=True,
            help="Its text, {} being the caption: 'a photo of {}'.",
        ),
    ] = "own"
    images: Annotated[Path | None, options.images()] = None
    seed: Annotated[int, options.seed] = 0
    out: Annotated[
        Path | None,
        options.out("encoders/NAME/RECIPE-PLACE-sSEED", "The folder of the weights.", "head"),
    ] = None
    device: Annotated[str | None, options.device("finetuning.RECIPE.device")] = None
    processes: Annotated[
        int | None,
        click.option(
            "--processes",
            type=click.IntRange(min=1),
            callback=options.of_this_machine,
            show_default="finetuning.RECIPE.processes",
            help="GPUs that share each batch.",
        ),
    ] = None
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"

    def check(self) -> None:
        if self.source is None:
            declared.refuse("recipe", "prompt", "seed", "out", why="needs --system")


finetune_command = declared.command(
    FinetuneOptions, "finetune.finetune", declared.with_settings_or_shipped
)

"""The command line of `stages.finetune`."""

from typing import Any

import click

from stages import options


@click.command
@click.argument(
    "dataset", metavar="[NAME]", required=False, shell_complete=options.names("dataset")
)
@options.source(
    "The dual encoder, KIND:PLACE, such as clip:FOLDER; tuned:FOLDER is trained on once more.",
    "head",
)
@click.option(
    "--recipe",
    metavar="NAME",
    default="projections",
    show_default=True,
    help="How: a section of the settings' finetuning, such as projections, blocks, lora or all.",
)
@click.option(
    "--prompt",
    default="own",
    show_default=True,
    help="Its text, {} being the caption: 'a photo of {}'.",
)
@options.images()
@options.seed
@options.out("encoders/NAME/RECIPE-PLACE-sSEED", "The folder of the weights.", "head")
@options.device("finetuning.RECIPE.device")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    callback=options.of_this_machine,
    show_default="finetuning.RECIPE.processes",
    help="GPUs that share each batch.",
)
@options.if_changed
@options.with_settings_or_shipped
def finetune_command(**given: Any) -> None:
    """Train a dual encoder on: its projections, its last blocks, low-rank adapters in its blocks,
    or all of it.

    The photographs and captions of the split train are learned from, val selects the best epoch,
    and test is not read. The result is a folder, used as tuned:FOLDER by --system of other
    commands. It holds what was trained, and needs the model's own folder, where it was or as
    FOLDER/base.

    Without --system: the encoders of run.encoders that name a recipe as `finetune`, each into
    encoders/NAME/ENCODER.

    Example: pipeline finetune flickr8k --system clip:models/clip-vit-base-patch32 --recipe lora

    Example: pipeline finetune --system open_clip:models/b32 --recipe lora -S
        finetuning.lora.pieces=8
    """
    from stages.finetune import finetune

    if given["source"] is None:
        options.refuse("recipe", "prompt", "seed", "out", why="needs --system")
    finetune(**given)

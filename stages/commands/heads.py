"""The command line of `stages.heads`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stages import options, values

if TYPE_CHECKING:
    from pipeline.settings import Variation


POOLING = values.PartName("poolings")


def _varied(
    pooling: str | None,
    image_pooling: str | None,
    text_pooling: str | None,
    objective: str | None,
    languages: tuple[str, ...],
    finetune: bool,
    noise: float,
) -> Variation:
    from pipeline.settings import Variation

    return Variation(pooling, image_pooling, text_pooling, objective, finetune, languages, noise)


# Options that vary a recipe; the command takes `variation`.
_variation = options.joined(
    "variation",
    _varied,
    click.option("--pooling", type=POOLING, help="Vary the recipe: the pooling of both sides."),
    click.option("--image-pooling", type=POOLING, help="Vary the recipe: the pooling of images."),
    click.option("--text-pooling", type=POOLING, help="Vary the recipe: the pooling of captions."),
    click.option(
        "--objective", type=values.PartName("objectives"), help="Vary the recipe: the objective."
    ),
    click.option(
        "--language",
        "languages",
        metavar="TAG",
        multiple=True,
        show_default="as the recipe",
        help="Vary the recipe: train on captions in this language alone. May be given several times.",
    ),
    click.option(
        "--finetune",
        is_flag=True,
        help="Vary the recipe: train the features' network too, from the images.",
    ),
    click.option(
        "--noise",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        metavar="SHARE",
        help="Vary the recipe: this share of the training captions exchange their images.",
    ),
)


@click.command
@options.feature(required=True)
@options.dataset
@options.text
@options.recipes
@_variation
@options.images(", for fine-tuning")
@click.option(
    "--name",
    metavar="NAME",
    callback=options.called,
    show_default="after what varies",
    help="The name of a varied recipe, for its head's folder and in results.",
)
@options.seeds
@options.out("heads/DATASET/RECIPE-FEATURE-TEXT-sSEED", "The head's folder.", "head")
@options.precision(
    "bf16 trains faster on a GPU, and on a CPU where `pipeline lab machine` finds it faster.",
    show_default="training.DATASET.precision",
)
@options.device()
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    callback=options.of_this_machine,
    show_default="training.DATASET.processes",
    help="GPUs that share each batch.",
)
@options.if_changed
@options.with_settings
def train_command(**given: Any) -> None:
    """Train heads on one feature, select each one's best epoch on val. Running again does nothing,
    or resumes.

    The same seed gives the same head, bit for bit, on one kind of CPU with one number of threads
    and one version of torch; its record.json names these. With others, heads differ as they do
    between seeds.

    The head that a recipe starts from, and the run's head by which it mines negatives, are trained
    first if they are missing; with --if-changed redo also if they are out of date. So are the
    features of captions that --text features reads extracted.

    Example: pipeline train --feature region --recipe vse2ad

    Example: pipeline train --feature region --recipe vse2ad --recipe vse2ad-noadopt --seed 0 --seed
        1 --seed 2

    Example: pipeline train --feature region --recipe vse_infty --image-pooling fspool

    Example: pipeline train --feature region --recipe vse_infty --language en --language de

    Example: pipeline train --feature region --recipe vse_infty --recipe vse_infty-crcl --noise 0.4

    Example: pipeline train --feature grid --recipe vse_infty --finetune --device cuda
    """
    from stages.heads import train

    train(**given, changes=options.changes())


@click.command
@click.argument("checkpoint", type=options.FilePath())
@options.dataset
@click.option(
    "--vocabulary",
    type=options.FilePath(dir_okay=False),
    help="SCAN's JSON with the words of a BiGRU: coco_precomp_vocab.json, f30k_precomp_vocab.json.",
)
@options.images(", for a grid checkpoint")
@options.feature("The feature that a cross-encoder reads.", show_default="region")
@click.option(
    "--name",
    callback=options.called,
    show_default="vse_infty_released or oscar",
    metavar="NAME",
    help="Its recipe's name, in its folder and in results.",
)
@options.out("heads/DATASET/NAME-FEATURE-TEXT-s0", "The head's folder.", "head")
@options.if_changed
@options.with_settings
def convert_command(**given: Any) -> None:
    """Turn a checkpoint of VSE∞'s released code (github.com/woodfrog/vse_infty, model_best.pth)
    into a head.

    Or one of OSCAR's (microsoft/Oscar) or MMT-Retrieval's (UKPLab/MMT-Retrieval): their folder, a
    zip of it, or the file pytorch_model.bin. Its vocabulary is that of training.NAME.bert, the BERT
    from which its training started. A checkpoint that was trained for retrieval can rerank
    (`pipeline rerank`); from another one a recipe can `start`.

    The head is scored like one trained here, on features of the same kind: region features of
    SCAN's files (`pipeline store import`), with BUTD's 36 boxes. A grid checkpoint contains its
    network and is scored from the images: features.PRESET.grid must name that network,
    butd_resnet101 at 512 px and 16 x 16. Nothing in the file is run.

    Example: pipeline convert model_best.pth --dataset coco --vocabulary coco_precomp_vocab.json

    Example: pipeline convert checkpoint-29-66420 --dataset coco --name oscar
    """
    from stages.heads import convert

    convert(**given)

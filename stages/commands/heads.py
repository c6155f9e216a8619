"""The command line of `stages.heads`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from stages import declared, options, values

if TYPE_CHECKING:
    from pipeline.foundation.settings import Variation


POOLING = values.PartName("poolings")


def _varied(**given: Any) -> "Variation":
    from pipeline.foundation.settings import Variation

    return Variation(**given)


# Options that vary a recipe; the command takes `variation`.
_variation = declared.Group(
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
    declared.flag(
        "--finetune",
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


@dataclass(frozen=True, kw_only=True)
class TrainOptions(declared.Options):
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

    feature: Annotated[str, options.feature(required=True)]
    dataset: Annotated[str | None, options.dataset] = None
    text: Annotated[str, options.text] = "bigru"
    recipes: Annotated[tuple[str, ...], options.recipes] = ("vse2ad",)
    variation: Annotated["Variation", _variation] = field(default_factory=_variation.default)
    images: Annotated[Path | None, options.images(", for fine-tuning")] = None
    name: Annotated[
        str | None,
        click.option(
            "--name",
            metavar="NAME",
            callback=options.called,
            show_default="after what varies",
            help="The name of a varied recipe, for its head's folder and in results.",
        ),
    ] = None
    seeds: Annotated[tuple[int, ...], options.seeds] = (0,)
    out: Annotated[
        Path | None,
        options.out("heads/DATASET/RECIPE-FEATURE-TEXT-sSEED", "The head's folder.", "head"),
    ] = None
    precision: Annotated[
        str | None,
        options.precision(
            "bf16 trains faster on a GPU, and on a CPU where `pipeline lab machine` finds it faster.",
            show_default="training.DATASET.precision",
        ),
    ] = None
    device: Annotated[str | None, options.device()] = None
    processes: Annotated[
        int | None,
        click.option(
            "--processes",
            type=click.IntRange(min=1),
            callback=options.of_this_machine,
            show_default="training.DATASET.processes",
            help="GPUs that share each batch.",
        ),
    ] = None
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"
    # The keys of the settings that are changed for this run; a recipe among them gets another name.
    changed: Annotated[tuple[str, ...], options.changed_settings] = ()


train_command = declared.command(TrainOptions, "heads.train", declared.with_settings)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(declared.Options):
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

    checkpoint: Annotated[Path, click.argument("checkpoint", type=options.FilePath())]
    dataset: Annotated[str | None, options.dataset] = None
    vocabulary: Annotated[
        Path | None,
        click.option(
            "--vocabulary",
            type=options.FilePath(dir_okay=False),
            help="SCAN's JSON with the words of a BiGRU: coco_precomp_vocab.json, f30k_precomp_vocab.json.",
        ),
    ] = None
    images: Annotated[Path | None, options.images(", for a grid checkpoint")] = None
    feature: Annotated[
        str | None,
        options.feature("The feature that a cross-encoder reads.", show_default="region"),
    ] = None
    name: Annotated[
        str | None,
        click.option(
            "--name",
            callback=options.called,
            show_default="vse_infty_released or oscar",
            metavar="NAME",
            help="Its recipe's name, in its folder and in results.",
        ),
    ] = None
    out: Annotated[
        Path | None, options.out("heads/DATASET/NAME-FEATURE-TEXT-s0", "The head's folder.", "head")
    ] = None
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"


convert_command = declared.command(ConvertOptions, "heads.convert", declared.with_settings)

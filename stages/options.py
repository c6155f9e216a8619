"""Options that commands share."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import click

from pipeline.foundation import settings
from pipeline.foundation.files import remote
from pipeline.foundation.files.atomic import SET_ASIDE
from pipeline.foundation.manifest import SPLITS
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings.features import FEATURES
from pipeline.foundation.settings.kinds import TABLES
from stages.arguments import Source, Workers
from stages.declared import Command, Group, Option, flag, was_given
from stages.values import FilePath, OutputPath, PartName, below_root

_SYSTEMS = ("similarities/*/*.zarr", "similarities/*/*/*.zarr")
_FILES = {
    "recipe": ("manifests/recipes/*.yaml",),
    "dataset": ("manifests/*.yaml", "data/*.parquet"),
    "head": ("heads/*/*",),
    "system": ("heads/*/*", *_SYSTEMS),
    "scored": _SYSTEMS,
    "embedded": tuple(f"{store}/image_embeddings" for store in _SYSTEMS),
}


def names(kind: str) -> Callable[..., list[str]]:
    """Shell completion for an option that names a recipe, dataset, head or encoder, system, scored
    or embedded one.
    """

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        root = Path(context.params.get("root") or ".")
        shipped = Path(str(files("manifests") / "weights.yaml")).parents[1]
        places: list[Path] = []
        for pattern in _FILES[kind]:
            places += root.glob(pattern)
            if pattern.startswith("manifests/"):  # of a clone, only its manifests are everyone's
                places += shipped.glob(pattern)
        known = set()
        for place in places:
            if place.suffix in SET_ASIDE:
                continue
            name = place.name
            if kind == "embedded":
                name = place.parent.name
            known.add(re.sub(r"\.(zarr|yaml|parquet)$", "", name))
        known -= {"claims", "weights"}
        if kind == "recipe":
            from pipeline.foundation.settings import written  # and with it yaml

            known |= written.recipes_of_extensions()
        if kind == "head":
            known |= {f"{encoder}:" for encoder in TABLES["dual_encoders"]}
        visible = [name for name in known if not name.startswith(".")]
        return sorted(name for name in visible if name.startswith(typed))

    return complete


def opened(context: click.Context, option: click.Parameter, named: str | None) -> Source | None:
    """What an option or argument names: a system, head or encoder."""
    if named is None:
        return None
    return Source(named, below_root("", context))


def source(takes: str, completed: str = "system", **more: Any) -> Option:
    """The option --system. takes: the help text on what the command takes; completed: the kind, as
    for `names`.
    """

    return click.option(
        "--system",
        "source",
        metavar="SYSTEM",
        callback=opened,
        shell_complete=names(completed),
        help=takes,
        **more,
    )


HEAD_OR_ENCODER = (
    "A head's name, such as vse2ad-region-bigru-s0, or its folder. Or a pretrained dual encoder, "
    "KIND:PLACE, such as clip:FOLDER: its kind, and its folder, its name on the hub of Hugging Face, or "
    "what else its kind reads."
)


def _existing(context: click.Context, option: click.Parameter, place: Path | None) -> Path | None:
    if place is not None and not (remote.is_address(place) or place.exists()):
        raise InputError(f"{option.opts[-1]} {place}: no such folder")
    return place


def known_device(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Check the kind of device before anything else, even if there is nothing to do."""
    from pipeline.foundation.settings import section

    with refusing(ValueError, lambda error: f"{option.opts[-1]}: {error}"):
        return name and section.device(name)


def of_this_machine(
    context: click.Context, option: click.Parameter, count: int | None
) -> int | None:
    """Check a number of processes of this machine; torchrun's may be on several machines."""
    from pipeline.foundation.compute import machine

    if count is not None and "LOCAL_RANK" not in os.environ:
        with refusing(InputError, lambda error: f"{option.opts[-1]}: {error}"):
            machine.refuse_processes(count)
    return count


def _address(context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    if address is not None and not re.fullmatch(r"(\w+://)?[^/\s]+:\d+/?", address):
        raise InputError(f"--scheduler {address}: expected an address such as tcp://host:8786")
    return address


def called(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    if name is None:
        return None
    from pydantic import TypeAdapter, ValidationError

    with refusing(
        ValidationError,
        f"{option.opts[-1]} {name!r}: expected letters, digits and _, in parts joined by -",
    ):
        return TypeAdapter(settings.Name).validate_python(name)


def out(default: str, help: str = "The store.", kind: str | None = None, **type_: Any) -> Option:
    """The option --out: where the result is written. kind, type_: as for `OutputPath`."""
    return click.option("--out", type=OutputPath(kind, **type_), show_default=default, help=help)


def images(use: str = "", in_store: bool = True) -> Option:
    """The option --images: a folder. use: what the images are for, as its help says; in_store: as
    for `FilePath`.
    """
    return click.option(
        "--images",
        type=FilePath(in_store=in_store),
        callback=_existing,
        show_default="as in the manifest",
        help=f"The folder of the image files{use}.",
    )


def manifest(of: str = "The manifest that the store was made for.", **more: Any) -> Option:
    """The option --manifest: a manifest that is not the data set's own. of: its help."""
    return click.option(
        "--manifest", "manifest_file", type=FilePath(dir_okay=False), help=of, **more
    )


def annotation_format(default: str) -> Option:
    """The option --format of annotations. default: what is chosen without it, as its help says."""
    return click.option(
        "--format",
        "form",
        metavar="NAME",
        show_default=default,
        help="The format of the annotations, such as coco, karpathy or csv; an unknown one lists all.",
    )


def feature(which: str = "Which visual feature.", **more: Any) -> Option:
    return click.option("--feature", type=click.Choice(list(FEATURES)), help=which, **more)


def split(which: str, *names: str, **more: Any) -> Option:
    return click.option("--split", *names, type=click.Choice(SPLITS), help=which, **more)


def device(
    default: str = "training.DATASET.device",
    which: str = "A torch device: cpu, cuda, cuda:1. A head that one trained can be used on another.",
) -> Option:
    return click.option(
        "--device", metavar="DEVICE", show_default=default, callback=known_device, help=which
    )


def precision(effect: str, **default: Any) -> Option:
    return click.option(
        "--precision", type=click.Choice(["fp32", "bf16", "fp16"]), help=effect, **default
    )


def dtype(default: str) -> Option:
    """The option --dtype of stored features. default: what is stored without it, as its help
    says.
    """
    return click.option(
        "--dtype",
        type=click.Choice(["float16", "float32"]),
        show_default=default,
        help="How features are stored.",
    )


def batch_size(of: str, **default: Any) -> Option:
    return click.option(
        "--batch-size",
        type=click.IntRange(min=1),
        help=f"{of} in a batch of the network.",
        **default,
    )


def on_error(default: str, what: str) -> Option:
    """The option --on-error. default: the setting that it replaces; what: what goes wrong, as its
    help says.
    """
    return click.option(
        "--on-error",
        type=click.Choice(["fail", "skip"]),
        show_default=default,
        help=f"Whether {what} ends the command, or is left out.",
    )


def workers(what: str = "Processes on this machine.", **default: Any) -> Option:
    return click.option(
        "--workers",
        "processes",
        type=click.IntRange(min=1),
        callback=of_this_machine,
        help=what,
        **default,
    )


def trained_on(default: str, what: str) -> Option:
    """The option --trained-on of a head or encoder. default: what is meant without it; what: its
    help.
    """
    return click.option("--trained-on", metavar="NAME", show_default=default, help=what)


_recipe = "Which recipe: a name in manifests/recipes, an extension's, or one of your own"
_seed = click.IntRange(0, 2**32 - 1)
dataset = click.option(
    "--dataset",
    metavar="NAME",
    show_default="run.dataset",
    help="The data set.",
    shell_complete=names("dataset"),
)


def of_dataset(command: Command) -> Command:
    """Add --dataset to a command that takes the whole run: another run.dataset in the settings that
    it receives.
    """

    @dataset
    @functools.wraps(command)
    def wrapped(settings: settings.Settings, dataset: str | None, **given: Any) -> None:
        if dataset is not None:
            run = settings.run.model_copy(update={"dataset": dataset})
            settings = settings.model_copy(update={"run": run})
        command(settings=settings, **given)

    return cast(Command, wrapped)


text = click.option("--text", type=PartName("texts"), show_default=True, help="Which text encoder.")
recipe = click.option(
    "--recipe",
    metavar="NAME",
    show_default=True,
    help=f"{_recipe}.",
    shell_complete=names("recipe"),
)
recipes = click.option(
    "--recipe",
    "recipes",
    metavar="NAME",
    multiple=True,
    show_default=True,
    shell_complete=names("recipe"),
    help=f"{_recipe}; give several for one after another.",
)
seed = click.option("--seed", type=_seed, show_default=True, help="The seed of the training.")
seeds = click.option(
    "--seed",
    "seeds",
    type=_seed,
    multiple=True,
    show_default=True,
    help="The seed of the training; give several for one after another.",
)
training_data = trained_on(
    "of a head run.dataset, of an encoder its card",
    "What it was trained on: of a head the data set, of an encoder words for the tables.",
)
retriever = click.option(
    "--retriever",
    metavar="SYSTEM",
    shell_complete=names("scored"),
    help="A head or an ensemble that is scored.",
)
scorer = click.option(
    "--with",
    "scorer",
    metavar="SCORER",
    shell_complete=names("system"),
    help="Another scored system, a head that scores pairs, or KIND:NAME of any scorer of pairs.",
)
distractors = click.option(
    "--distractors",
    type=FilePath(),
    multiple=True,
    metavar="STORE",
    help="Enlarge the pool by the images and captions of another store of the same head (see "
    "pipeline embed); they are candidates only, never queries. May be given several times.",
)
as_json = flag("--json", "as_json", help="Print JSON.")
if_changed = click.option(
    "--if-changed",
    type=click.Choice(["refuse", "redo"]),
    show_default=True,
    help="What to do with an existing result that was made with other settings.",
)
scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    callback=_address,
    help="Compute on a running dask cluster, not here: tcp://host:8786.",
)


def refuse_workers_of_both() -> None:
    """Check that the user did not give both --workers and --scheduler."""
    if was_given("processes") and was_given("scheduler"):
        raise InputError(
            "--workers are processes of this machine, --scheduler is a cluster with its own; give one"
        )


def _workers(**given: Any) -> Workers:
    refuse_workers_of_both()
    return Workers(**given)


def _usage(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in ("own", None, "fp32")}


_prompt = click.option(
    "--prompt",
    default="own",
    show_default=True,
    help="The text that an encoder reads of each caption, which stands for {}: 'a photo of {}'. Its own is that of "
    "its fine-tuning.",
)
_preprocessing = click.option(
    "--preprocessing",
    type=click.Choice(["own", "squash", "torchvision"]),
    default="own",
    show_default=True,
    help="How images get the size that the encoder reads: own, its rule, such as a crop of the centre, computed by "
    "Pillow; torchvision, the same as transformers computes it by default; squash, without a crop.",
)
_interpolation = click.option(
    "--interpolation",
    type=click.Choice(["own", "bilinear", "bicubic"]),
    default="own",
    show_default=True,
    help="How pixels are interpolated where an encoder's images are resized.",
)
_token_limit = click.option(
    "--token-limit",
    type=click.IntRange(min=3),
    show_default="the encoder's own",
    help="Cut captions at fewer tokens than an encoder reads.",
)
_precision = precision(
    "The precision in which the encoder computes.", default="fp32", show_default=True
)
# How a dual encoder is used; the command takes `usage`, what differs from the defaults.
usage = Group("usage", _usage, _prompt, _preprocessing, _interpolation, _token_limit, _precision)
USAGE = usage.names

# --workers and --scheduler; the command takes `workers`.
on_workers = Group("workers", _workers, scheduler, workers(default=1, show_default=True))


def _changed_settings() -> tuple[str, ...]:
    changes = click.get_current_context().params["changes"]
    return tuple(change.partition("=")[0].strip() for change in changes)


# Of no option of its own: the command takes `changed`, the keys of the settings that -S changes.
changed_settings = Group("changed", _changed_settings)

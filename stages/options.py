"""Options that commands share."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from pipeline import settings
from pipeline.dual_encoders import DUAL_ENCODERS
from pipeline.files import remote
from pipeline.parts.errors import InputError, refusing, unknown
from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths
from pipeline.text import TEXTS
from stages.arguments import Source, Workers
from stages.values import FilePath, OutputPath, RootPath, below_root

Command = TypeVar("Command", bound=Callable[..., Any])

_SYSTEMS = ("similarities/*/*.zarr", "similarities/*/*/*.zarr")
_FILES = {"recipe": ("manifests/recipes/*.yaml",), "dataset": ("manifests/*.yaml", "data/*.parquet"),
          "head": ("heads/*/*",), "system": ("heads/*/*", *_SYSTEMS), "scored": _SYSTEMS,
          "embedded": tuple(f"{store}/image_embeddings" for store in _SYSTEMS)}


def names(kind: str) -> Callable[..., list[str]]:
    """Shell completion for an option that names a recipe, dataset, head or encoder, system, scored or embedded one."""
    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        root = Path(context.params.get("root") or ".")
        shipped = Path(str(files("manifests") / "weights.yaml")).parents[1]
        found = {(file.parent if kind == "embedded" else file).name
                 for pattern in _FILES[kind] for folder in (root, shipped) for file in folder.glob(pattern)
                 if folder is root or pattern.startswith("manifests/")}  # of a clone, only its manifests are everyone's
        known = {re.sub(r"\.(zarr|yaml|parquet)$", "", name) for name in found} - {"claims", "weights"}
        known |= {f"{each}:" for each in DUAL_ENCODERS} if kind == "head" else set()
        return sorted(name for name in known if name.startswith(typed) and not name.startswith("."))

    return complete


def with_settings(command: Callable[..., None], required: bool = True) -> Callable[..., None]:
    """Add --root, --params and -S to a command, which receives `paths` and the checked `settings`."""
    @click.option("--root", type=RootPath(), default=Path(), show_default="current directory", is_eager=True,
                  help="An existing directory, below which everything is read and written, and relative paths of other "
                  "options are.")
    @click.option("--params", type=FilePath(dir_okay=False), show_default="params.yaml of the root, or here",
                  help="The settings file.")
    @click.option("-S", "--set", "changes", multiple=True, metavar="KEY=VALUE",
                  help="Change one setting for this run: -S training.sample.epochs=3.")
    @functools.wraps(command)
    def wrapped(root: Path, params: Path | None, changes: tuple[str, ...], **options: Any) -> None:
        from pipeline.features.project import new

        if params is None:  # without a file of its own, the shipped one
            own = settings_file(root)
            click.get_current_context().meta["shipped"] = own is None
            params = own or new.path("params.yaml")
            if required:
                refuse_shipped()
        chosen = settings.load(params, changes)
        if other := [name for name in chosen.run.texts if name not in TEXTS]:
            raise InputError(f"{params}: run.texts: {unknown('text encoder', other[0], TEXTS)}")
        command(paths=Paths(root), settings=chosen, **options)

    return wrapped


# Like `with_settings`, for commands that run in any folder: without a settings file they use the shipped one.
with_settings_or_shipped = functools.partial(with_settings, required=False)


def settings_file(root: Path) -> Path | None:
    """The settings file of the root, or of the current directory, if there is one."""
    return next((place for place in (root / "params.yaml", Path("params.yaml")) if place.exists()), None)


def refuse_shipped() -> None:
    """Check that the project has settings of its own."""
    if click.get_current_context().meta.get("shipped"):
        raise InputError("there is no params.yaml here; `pipeline init` writes one, --params names one elsewhere")


def joined(argument: str, build: Callable[..., Any], *options: Callable[[Any], Any]
           ) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options that a command receives together, as one argument that `build` makes of their values."""
    names = list(inspect.signature(build).parameters)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            command(**{argument: build(**{name: given.pop(name) for name in names})}, **given)

        return functools.reduce(lambda inner, option: option(inner), reversed(options), wrapped)

    return decorate


def source(takes: str, completed: str = "system", **more: Any) -> Callable[[Command], Command]:
    """The option --system. takes: the help text on what the command takes; completed: the kind, as for `names`."""
    def opened(context: click.Context, option: click.Parameter, named: str | None) -> Source | None:
        return named if named is None else Source(named, below_root("", context))

    return click.option("--system", "source", metavar="SYSTEM", callback=opened, shell_complete=names(completed),
                        help=takes, **more)


HEAD_OR_ENCODER = ("A head's name, such as vse2ad-region-bigru-s0, or its folder. Or a pretrained dual encoder, "
                   "KIND:PLACE: clip, siglip, siglip2 or open_clip, and its folder or name on the Hugging Face hub.")
def _existing_folder(context: click.Context, option: click.Parameter, folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise InputError(f"{option.opts[-1]} {folder}: no such folder")
    return folder


def _existing(context: click.Context, option: click.Parameter, place: Path | None) -> Path | None:
    if place is not None and not (remote.is_address(place) or place.exists()):
        raise InputError(f"{option.opts[-1]} {place}: no such folder")
    return place


def known_device(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Check the kind of device before anything else, even if there is nothing to do."""
    from pipeline.settings import section

    with refusing(ValueError, lambda error: f"{option.opts[-1]}: {error}"):
        return name and section.device(name)


def of_this_machine(context: click.Context, option: click.Parameter, count: int | None) -> int | None:
    """Check a number of processes of this machine; torchrun's may be on several machines."""
    from pipeline.compute import machine

    if count is not None and "LOCAL_RANK" not in os.environ:
        with refusing(InputError, lambda error: f"{option.opts[-1]}: {error}"):
            machine.refuse_processes(count)
    return count


def _address(context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    if address is not None and not re.fullmatch(r"(\w+://)?[^/\s]+:\d+/?", address):
        raise InputError(f"--scheduler {address}: expected an address such as tcp://host:8786")
    return address


def called(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Check an option that names a recipe, which becomes part of a folder's name."""
    from pydantic import TypeAdapter, ValidationError

    with refusing(ValidationError, f"{option.opts[-1]} {name!r}: expected letters, digits and _, in parts joined by -"):
        return None if name is None else TypeAdapter(settings.Name).validate_python(name)


def out(default: str, help: str = "The store.", kind: str | None = None, **type_: Any) -> Callable[[Command], Command]:
    """The option --out: where the result is written. kind, type_: as for `OutputPath`."""
    return click.option("--out", type=OutputPath(kind, **type_), show_default=default, help=help)


def image_files(use: str = "", *names: str) -> Callable[[Command], Command]:
    """The option --images: a folder. use: what the images are for, as its help says."""
    return click.option("--images", *names, type=FilePath(in_store=True), callback=_existing,
                        show_default="as in the manifest", help=f"Where the image files lie{use}.")


_recipe, _seed = "Which recipe: a name in manifests/recipes, or one of your own", click.IntRange(0, 2**32 - 1)
dataset = click.option("--dataset", metavar="NAME", show_default="run.dataset", help="The data set.",
                       shell_complete=names("dataset"))
manifest = click.option("--manifest", "manifest_file", type=FilePath(dir_okay=False),
                        show_default="data/DATASET.parquet", help="The manifest that the store was made for.")
images = click.option("--images", type=FilePath(), show_default="as in the manifest", callback=_existing_folder,
                      help="Where the image files lie.")
feature = click.option("--feature", type=click.Choice(list(FEATURES)), required=True, help="Which visual feature.")
text = click.option("--text", type=click.Choice(list(TEXTS)), default="bigru", show_default=True,
                    help="Which text encoder.")
recipe = click.option("--recipe", metavar="NAME", default="vse2ad", show_default=True, help=f"{_recipe}.",
                      shell_complete=names("recipe"))
recipes = click.option("--recipe", "recipes", metavar="NAME", multiple=True, default=("vse2ad",), show_default=True,
                       shell_complete=names("recipe"), help=f"{_recipe}; give several for one after another.")
seed = click.option("--seed", type=_seed, default=0, show_default=True)
seeds = click.option("--seed", "seeds", type=_seed, multiple=True, default=(0,), show_default=True,
                     help="Give several for one after another.")
trained_on = click.option("--trained-on", metavar="NAME", show_default="of a head run.dataset, of an encoder its card",
                          help="What it was trained on: of a head the data set, of an encoder words for the tables.")
device = click.option("--device", metavar="DEVICE", show_default="training.DATASET.device", callback=known_device,
                      help="A torch device: cpu, cuda, cuda:1. A head that one trained can be used on another.")
if_changed = click.option("--if-changed", type=click.Choice(["refuse", "redo"]), default="refuse", show_default=True,
                          help="What to do with an existing result that was made with other settings.")
scheduler = click.option("--scheduler", metavar="ADDRESS", callback=_address, help="A running dask cluster instead: tcp://host:8786.")


def _workers(processes: int, scheduler: str | None) -> Workers:
    if scheduler is not None and was_given("processes"):
        raise InputError("--workers are processes of this machine, --scheduler is a cluster with its own; give one")
    return Workers(processes, scheduler)


# --workers and --scheduler; the command takes `workers`.
on_workers = joined("workers", _workers, scheduler, click.option(
    "--workers", "processes", type=click.IntRange(min=1), default=1, show_default=True, callback=of_this_machine,
    help="Processes on this machine."))


def was_given(name: str) -> bool:
    """Whether the user gave an option."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse(*names: str, why: str) -> None:
    """Check that the user did not give options that have no effect here. why: the message after the option."""
    flags = {option.name: option.opts[-1] for option in click.get_current_context().command.params}
    for name in names:
        if was_given(name):
            raise InputError(f"{flags[name]} {why}")


def changes() -> tuple[str, ...]:
    """The keys of the settings that the user changes by -S."""
    return tuple(change.partition("=")[0].strip() for change in click.get_current_context().params["changes"])

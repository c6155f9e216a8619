"""Heads: trained here, or converted from published weights."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline import artefacts, training
from pipeline.compute import machine
from pipeline.features.store import FeatureStore, read_header
from pipeline.files import weights
from pipeline.manifest import Manifest
from pipeline.parts import extras
from pipeline.parts.errors import InputError, counted, similar
from pipeline.settings import Recipe, Settings, Training, Variation, named
from pipeline.settings.features import FEATURES
from pipeline.settings.kinds import TABLES
from pipeline.settings.paths import Paths, heads, system_name
from stages.arguments import refuse_given
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.training.job import Job  # and with it torch


def train(
    paths: Paths,
    settings: Settings,
    feature: str,
    dataset: str | None = None,
    text: str = "bigru",
    recipes: tuple[str, ...] = ("vse2ad",),
    seeds: tuple[int, ...] = (0,),
    out: Path | None = None,
    precision: str | None = None,
    device: str | None = None,
    processes: int | None = None,
    if_changed: Literal["refuse", "redo"] = "refuse",
    name: str | None = None,
    images: Path | None = None,
    variation: Variation = Variation(),
    changes: tuple[str, ...] = (),
) -> None:
    """Train heads on one feature, select each one's best epoch on val. Running again does nothing,
    or resumes.

    changes: the keys of the settings that are changed for this run; a recipe among them gets a name
        of its own.
    """
    dataset = dataset or settings.run.dataset
    if variation.finetune and not FEATURES[feature].trainable:
        trainable = " and ".join(name for name, known in FEATURES.items() if known.trainable)
        raise InputError(f"--finetune is for {trainable} features; a detector is not trained")
    chosen = _recipes(settings, recipes, variation, name, changes)
    if out and len(chosen) * len(seeds) > 1:
        raise InputError(
            "--out is the folder of one head; give one --recipe and one --seed with it"
        )
    finetuned = {
        called: recipe.finetune and FEATURES[feature].trainable for called, recipe in chosen.items()
    }
    for called, recipe in chosen.items():
        if recipe.finetune and not FEATURES[feature].trainable:
            say(
                f"{called}: {feature} features come from a detector, which the papers do not train; the head "
                "alone is trained"
            )
    if not any(finetuned.values()):
        refuse_given(
            "needs --finetune; without it features are read from their store", images=images
        )
    where = {"precision": precision, "device": device, "processes": processes}
    how = settings.training_of(dataset).model_copy(
        update={key: value for key, value in where.items() if value is not None}
    )
    asked: dict[Path, _Head] = {}
    for called, recipe in chosen.items():
        for seed in seeds:
            folder = out or paths.head(dataset, system_name(called, feature, text, seed))
            _ask(
                asked,
                paths,
                settings,
                folder,
                _Head(dataset, feature, text, called, seed, recipe, how),
                if_changed == "redo",
            )
    waiting: dict[Path, _Head] = {}
    for folder, head in asked.items():
        if {*head.others(paths).values()} & waiting.keys() or not head.is_kept(
            paths, folder, if_changed
        ):
            waiting[folder] = head
        else:
            say(f"{folder}: nothing to do, {training.summary(folder)}", err=False)
    if not waiting:
        return
    manifest = Manifest.load(paths.manifest(dataset))
    for head in waiting.values():  # what is missing is refused before torch is imported
        stored = not finetuned.get(head.name, False)
        training.inputs.require(
            paths.features(dataset, head.feature) if stored else None, head.text, how
        )
    machine.keep_freed()  # before the first tensor
    if text == "features":
        _extract_captions(paths, settings, dataset, if_changed)
    together = training.launch(how.processes, how.device)
    how = how.model_copy(update={"processes": together.count})
    try:
        for folder, head in waiting.items():
            source = _source(
                paths,
                settings,
                manifest,
                head.feature,
                images,
                head.recipe,
                finetuned.get(head.name, False),
            )
            by_role = head.others(paths)
            captions = _captions(paths, settings, manifest) if head.text == "features" else None
            learn(
                training.TrainingJob(
                    manifest,
                    source,
                    head.feature,
                    head.text,
                    head.name,
                    head.recipe,
                    how,
                    head.seed,
                    folder,
                    if_changed,
                    together,
                    captions=captions,
                    start=by_role.get("start"),
                    retriever=by_role.get("retriever"),
                )
            )
    except InputError:
        if together.local_rank == 0:
            raise
        sys.exit(2)  # the first process of each machine says why


@dataclass(frozen=True)
class _Head:
    """A head to train, of which nothing is loaded yet."""

    dataset: str
    feature: str
    text: str
    name: str
    seed: int
    recipe: Recipe
    how: Training

    def others(self, paths: Paths) -> dict[str, Path]:
        """The folders of the heads that it starts from and mines negatives by, by their roles."""
        names = {
            "start": self.recipe.start
            and system_name(self.recipe.start, self.feature, self.text, self.seed),
            "retriever": self.recipe.pairs.retriever,
        }
        return {role: paths.head(self.dataset, name) for role, name in names.items() if name}

    def is_kept(self, paths: Paths, folder: Path, if_changed: Literal["refuse", "redo"]) -> bool:
        """Whether it is up to date, as far as that is known without loading its inputs."""
        request = training.TrainRequest.of(
            self.name, self.feature, self.text, self.seed, self.recipe, self.how
        )
        made_from = training.inputs.of_files(
            request,
            self.dataset,
            paths.manifest(self.dataset),
            paths.features(self.dataset, self.feature),
            self.others(paths),
        )
        return made_from is not None and artefacts.is_kept(
            folder, request, made_from, training.HeadArtefact.policy(folder, if_changed)
        )


def _ask(
    asked: dict[Path, _Head],
    paths: Paths,
    settings: Settings,
    folder: Path,
    head: _Head,
    redo: bool,
    above: tuple[Path, ...] = (),
) -> None:
    """Add a head to the requested ones, after missing heads that it depends on."""
    if folder in above:
        raise InputError(
            f"{folder}: circular dependency: its recipe's `start` or `pairs.retriever` "
            "leads back to this head; change one of them"
        )
    if folder in asked:
        return
    recipe, known = head.recipe, heads(settings.run) if head.dataset == settings.run.dataset else {}
    below = (
        [(recipe.start, head.feature, head.text, head.seed)]
        if recipe.start in settings.recipes
        else []
    )
    below += [known[recipe.pairs.retriever]] if recipe.pairs.retriever in known else []
    for called, feature, text, seed in below:
        place = paths.head(head.dataset, system_name(called, feature, text, seed))
        if redo or not training.HeadArtefact.is_finished(place):
            other = _Head(
                head.dataset, feature, text, called, seed, settings.recipe(called), head.how
            )
            _ask(asked, paths, settings, place, other, redo, (*above, folder))
    asked[folder] = head


def _recipes(
    settings: Settings,
    names: tuple[str, ...],
    varied: Variation,
    name: str | None,
    changes: tuple[str, ...],
) -> dict[str, Recipe]:
    """The recipes to train, by the names in their heads' folders. A recipe that -S changes needs a
    name of its own.
    """
    if name and len(names) > 1:
        raise InputError("--name is for one recipe; give one --recipe with it")
    chosen = {}
    for base in names:
        recipe = varied.of(settings.recipe(base))
        if twice := [key for key in varied.replaced if _changed(f"recipes.{base}.{key}", changes)]:
            raise InputError(
                f"-S and another option both set {twice[0]} of {base}; use -S for all of it, or no -S"
            )
        as_shipped = {
            other: known
            for other, known in settings.recipes.items()
            if not _changed(f"recipes.{other}", changes)
        }
        taken = settings.recipes if name in (None, varied.name(base)) else _reserved(settings)
        chosen[named(recipe, name, varied.name(base), as_shipped, taken)] = recipe
    return chosen


def _reserved(settings: Settings) -> set[str]:
    """The names under which tables show the settings' recipes, and these with another pooling of
    both sides.
    """
    varied = (
        Variation(pooling=each).name(base)
        for base in settings.recipes
        for each in TABLES["poolings"]
    )
    return {*settings.recipes, *varied}


def _changed(section: str, changes: Iterable[str]) -> bool:
    """Whether keys of the settings are in a section, such as "recipes.vse2ad", or contain it."""
    keys = [
        *changes,
        *(
            re.sub(r"^(recipes\.[^.]+\.)(pooling)\b", rf"\g<1>{side}_\2", key)
            for key in changes
            for side in ("image", "text")
        ),
    ]  # `pooling` sets both sides
    return any(
        f"{key}.".startswith(f"{section}.") or f"{section}.".startswith(f"{key}.") for key in keys
    )


def _source(
    paths: Paths,
    settings: Settings,
    manifest: Manifest,
    feature: str,
    images: Path | None,
    recipe: Recipe,
    from_pixels: bool,
) -> FeatureStore | training.Photographs:
    """The features that a head is trained on; or photographs, if the network is trained too, loaded
    anew for each.
    """
    if not from_pixels:
        return training.stored(paths.features(manifest.dataset, feature), manifest, recipe)
    manifest.require_photographs("fine-tuning")
    engine = settings.engine_of(manifest.dataset, feature)
    return training.Photographs(
        manifest, images or manifest.images_folder, engine.engine, engine.options
    )


def _extract_captions(
    paths: Paths, settings: Settings, dataset: str, if_changed: Literal["refuse", "redo"]
) -> None:
    """Extract the features of captions that heads read, where they are missing or, with redo, out
    of date.
    """
    feature = settings.captions_of(dataset)
    if (
        "LOCAL_RANK" in os.environ
    ):  # the first of several processes has done it, before it started the others
        return
    if if_changed == "redo" or not paths.features(dataset, feature).exists():
        extras.require("features", f"extracting {feature}")
        from stages.extract import extract

        extract(paths, settings, feature, dataset, if_changed=if_changed)


def _captions(paths: Paths, settings: Settings, manifest: Manifest) -> FeatureStore:
    """The features of captions that a head is trained on."""
    return FeatureStore(
        paths.features(manifest.dataset, settings.captions_of(manifest.dataset))
    ).require(manifest)


def learn(job: Job[Any], **more: Any) -> None:
    """Train, and show how it goes. more: as for `training.train`."""
    first = job.processes.rank == 0
    with Progress(job.folder.name, "step", shown=first) as bar:

        def on_step(epoch: int, step: int, log: Mapping[str, float]) -> None:
            bar.step(
                f"epoch {epoch} " + " ".join(f"{name} {value:.3g}" for name, value in log.items())
            )

        def on_epoch(row: Mapping[str, float]) -> None:
            say(
                f"{job.folder.name} epoch {row['epoch']:.0f}: loss {row['loss']:.3f}, val RSUM {row['RSUM']:.1f}"
            )

        def on_words(line: str) -> None:
            say(f"{job.folder.name}: {line}")

        def on_start(done: float, steps: float) -> None:
            bar.resume(done, steps)
            if done and first:
                say(f"{job.folder.name}: resumes after step {done:.0f} of {steps:.0f}")

        training.train(job, on_step, on_epoch, on_start, on_words, **more)
    if first:
        say(
            f"{job.folder}: {'' if bar.total else 'nothing to do, '}{training.summary(job.folder)}",
            err=False,
        )


def convert(
    paths: Paths,
    settings: Settings,
    checkpoint: Path,
    dataset: str | None = None,
    vocabulary: Path | None = None,
    images: Path | None = None,
    feature: str | None = None,
    name: str | None = None,
    out: Path | None = None,
    if_changed: Literal["refuse", "redo"] = "refuse",
) -> None:
    """Turn a checkpoint of VSE∞'s released code (github.com/woodfrog/vse_infty, model_best.pth)
    into a head.
    """
    if name in _reserved(settings):
        raise InputError(
            f"--name {name}: is a recipe's name, and tables would show the checkpoint as trained by it; "
            "choose another"
        )
    dataset = dataset or settings.run.dataset
    for file in filter(None, (checkpoint, vocabulary)):
        if not file.exists():
            raise InputError(f"{file}: no such file{similar(file)}")
    manifest = Manifest.load(paths.manifest(dataset))
    if checkpoint.is_dir() or checkpoint.suffix in (".bin", ".zip"):
        refuse_given(
            "is for VSE∞'s checkpoints; a cross-encoder has a BERT's words and reads stored features",
            vocabulary=vocabulary,
            images=images,
        )
        _convert_cross(
            paths,
            settings,
            checkpoint,
            manifest,
            feature or "region",
            name or "oscar",
            out,
            if_changed,
        )
        return
    refuse_given("is for cross-encoders; a checkpoint of VSE∞ says what it reads", feature=feature)
    name = name or "vse_infty_released"
    released = training.read_released(checkpoint)
    if released.text == "bert":
        refuse_given(
            "is for a BiGRU; this checkpoint has a BERT, whose words are its tokenizer's",
            vocabulary=vocabulary,
        )
    source: FeatureStore | training.Photographs
    if FEATURES[
        released.feature
    ].trainable:  # it contains its network, which must be the settings' one
        manifest.require_photographs("a fine-tuned head")
        engine = settings.engine_of(manifest.dataset, released.feature)
        untrained = {**engine.options, "weights": weights.UNTRAINED}
        source = training.Photographs(
            manifest, images or manifest.images_folder, engine.engine, untrained
        )
    else:
        refuse_given("is for grid checkpoints, which have their own network", images=images)
        source = FeatureStore(paths.features(manifest.dataset, released.feature)).require(manifest)
    folder = out or paths.head(
        manifest.dataset, system_name(name, released.feature, released.text, 0)
    )
    job = training.TrainingJob(
        manifest,
        source,
        released.feature,
        released.text,
        name,
        settings.recipe("vse_infty"),
        settings.training_of(manifest.dataset),
        0,
        folder,
        if_changed,
    )
    training.convert(job, released, vocabulary)
    rsum = "" if released.rsum is None else f", val RSUM {released.rsum:.1f} as its code counted"
    say(
        f"{folder}: {released.feature} and {released.text}, {counted(released.epoch, 'epoch')}{rsum}; next: "
        f"`pipeline score --system {folder}`",
        err=False,
    )


def _convert_cross(
    paths: Paths,
    settings: Settings,
    checkpoint: Path,
    manifest: Manifest,
    feature: str,
    name: str,
    out: Path | None,
    if_changed: Literal["refuse", "redo"],
) -> None:
    dataset, store = manifest.dataset, paths.features(manifest.dataset, feature)
    read_header(store)
    released = training.read_released_cross(checkpoint)
    without_boxes = FeatureStore(store).width == released.width
    recipe = training.recipe_of(released, settings.recipe("join"), boxes=not without_boxes)
    folder = out or paths.head(dataset, system_name(name, feature, "bert", 0))
    training.convert_cross(
        training.TrainingJob(
            manifest,
            training.stored(store, manifest, recipe),
            feature,
            "bert",
            name,
            recipe,
            settings.training_of(dataset),
            0,
            folder,
            if_changed,
        ),
        released,
    )
    use = (
        f"`pipeline rerank --with {folder.name}`"
        if "ce" in released.tasks
        else f"a recipe with start: {name}"
    )
    say(f"{folder}: {feature}, {released.layers} layers; next: {use}", err=False)

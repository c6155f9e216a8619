"""Heads: trained here, or converted from published weights."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline.foundation import artefacts
from pipeline.foundation.compute import machine
from pipeline.foundation.files import parsing, weights
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, counted, similar
from pipeline.foundation.settings import Recipe, Settings, Training, Variation, named
from pipeline.foundation.settings.features import FEATURES
from pipeline.foundation.settings.kinds import TABLES
from pipeline.foundation.settings.paths import Paths, heads, system_name
from pipeline.make import training
from pipeline.make.features.store import FeatureStore, read_header
from stages.arguments import refuse_given
from stages.commands.extract import ExtractOptions
from stages.commands.heads import ConvertOptions, TrainOptions
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.make.training.job import Job  # and with it torch


def train(paths: Paths, settings: Settings, options: TrainOptions) -> None:
    """Train heads on one feature, select each one's best epoch on val. Running again does nothing,
    or resumes.
    """
    trainable = FEATURES[options.feature].trainable
    if options.variation.finetune and not trainable:
        names = " and ".join(name for name, feature in FEATURES.items() if feature.trainable)
        raise InputError(f"--finetune is for {names} features; a detector is not trained")
    recipes = _recipes(settings, options)
    if options.out and len(recipes) * len(options.seeds) > 1:
        raise InputError(
            "--out is the folder of one head; give one --recipe and one --seed with it"
        )
    finetuned = {name: recipe.finetune and trainable for name, recipe in recipes.items()}
    for name, recipe in recipes.items():
        if recipe.finetune and not trainable:
            say(
                f"{name}: {options.feature} features come from a detector, which the papers do not train; the head "
                "alone is trained"
            )
    if not any(finetuned.values()):
        refuse_given(
            "needs --finetune; without it features are read from their store", images=options.images
        )
    dataset = options.dataset or settings.run.dataset
    given = {
        "precision": options.precision,
        "device": options.device,
        "processes": options.processes,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    how = settings.training_of(dataset).model_copy(update=changes)
    asked: dict[Path, _Head] = {}
    redo = options.if_changed == "redo"
    for name, recipe in recipes.items():
        for seed in options.seeds:
            head = _Head(dataset, options.feature, options.text, name, seed, recipe, how)
            folder = options.out or paths.head(dataset, head.system)
            _ask(asked, paths, settings, folder, head, redo)
    waiting = _out_of_date(asked, paths, options.if_changed)
    if not waiting:
        return
    manifest = Manifest.load(paths.manifest(dataset))
    for head in waiting.values():  # what is missing is refused before torch is imported
        features = None
        if not finetuned.get(head.name, False):
            features = paths.features(dataset, head.feature)
        training.inputs.require(features, head.text, how)
    machine.keep_freed()  # before the first tensor
    if options.text == "features":
        _extract_captions(paths, settings, dataset, options.if_changed)
    together = training.launch(how.processes, how.device)
    how = how.model_copy(update={"processes": together.count})
    try:
        for folder, head in waiting.items():
            source: FeatureStore | training.Photographs
            if finetuned.get(head.name, False):
                source = _photographs(settings, manifest, head.feature, options.images)
            else:
                store = paths.features(manifest.dataset, head.feature)
                source = training.stored(store, manifest, head.recipe)
            by_role = head.others(paths)
            captions = None
            if head.text == "features":
                captions = _captions(paths, settings, manifest)
            job = training.TrainingJob(
                manifest,
                source,
                head.feature,
                head.text,
                head.name,
                head.recipe,
                how,
                head.seed,
                folder,
                options.if_changed,
                together,
                captions=captions,
                start=by_role.get("start"),
                retriever=by_role.get("retriever"),
            )
            learn(job)
    except InputError:
        if together.local_rank == 0:
            raise
        sys.exit(2)  # the first process of each machine says why
    if together.rank == 0 and options.out is None and dataset == settings.run.dataset:
        for head in waiting.values():
            if head.system not in heads(settings.run):
                say(f"note: {head.system}: {_how_to_have_a_row(head, settings, options)}")


def _how_to_have_a_row(head: _Head, settings: Settings, options: TrainOptions) -> str:
    """Say that a run leaves out a head that it lacks, and what to do for a row in tables."""
    leaves_out = (
        "is not in `run` of params.yaml, and `dvc repro` leaves it out; for a row in tables"
    )
    if head.name in settings.recipes:
        return f"{leaves_out} add its recipe, feature, text encoder and seed to `run`"
    leaves_out += f" run `pipeline score --system {head.system}`, `pipeline evaluate` and `pipeline tables`, or write"
    if len(options.recipes) > 1 or _changed("recipes", options.changed):
        return f"{leaves_out} its settings as a recipe into `recipes`, and name that in `ablations`"
    (base,) = options.recipes
    of_base = settings.recipe(base).recorded()
    recipe: dict[str, Any] = {"base": base}
    for key, value in head.recipe.recorded().items():
        if of_base.get(key) != value:
            recipe[key] = value
    if recipe.get("image_pooling") == recipe.get("text_pooling", ""):
        recipe["pooling"] = recipe.pop("image_pooling")
        del recipe["text_pooling"]
    written = parsing.to_yaml_line({head.name: recipe})
    return f"{leaves_out} `recipes: {written}` there, and `{head.name}` into `ablations`"


def _out_of_date(
    asked: Mapping[Path, _Head], paths: Paths, if_changed: Literal["refuse", "redo"]
) -> dict[Path, _Head]:
    """The heads that are not up to date, or depend on one that is not; the others are named."""
    waiting: dict[Path, _Head] = {}
    for folder, head in asked.items():
        depends = not waiting.keys().isdisjoint(head.others(paths).values())
        if depends or not head.is_kept(paths, folder, if_changed):
            waiting[folder] = head
        else:
            say(f"{folder}: nothing to do, {training.summary(folder)}", err=False)
    return waiting


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

    @property
    def system(self) -> str:
        return system_name(self.name, self.feature, self.text, self.seed)

    def others(self, paths: Paths) -> dict[str, Path]:
        """The folders of the heads that it starts from and mines negatives by, by their roles."""
        folders = {}
        if self.recipe.start:
            start = system_name(self.recipe.start, self.feature, self.text, self.seed)
            folders["start"] = paths.head(self.dataset, start)
        if self.recipe.pairs.retriever:
            folders["retriever"] = paths.head(self.dataset, self.recipe.pairs.retriever)
        return folders

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
        if made_from is None:
            return False
        policy = training.HeadArtefact.policy(folder, if_changed)
        return artefacts.is_kept(folder, request, made_from, policy)


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
    recipe = head.recipe
    below = []
    if recipe.start in settings.recipes:
        below.append((recipe.start, head.feature, head.text, head.seed))
    if head.dataset == settings.run.dataset:
        of_the_run = heads(settings.run)
        if recipe.pairs.retriever in of_the_run:
            below.append(of_the_run[recipe.pairs.retriever])
    for name, feature, text, seed in below:
        other = _Head(head.dataset, feature, text, name, seed, settings.recipe(name), head.how)
        place = paths.head(head.dataset, other.system)
        if redo or not training.HeadArtefact.is_finished(place):
            _ask(asked, paths, settings, place, other, redo, (*above, folder))
    asked[folder] = head


def _recipes(settings: Settings, options: TrainOptions) -> dict[str, Recipe]:
    """The recipes to train, by the names in their heads' folders. A recipe that -S changes needs a
    name of its own.
    """
    name = options.name
    if name and len(options.recipes) > 1:
        raise InputError("--name is for one recipe; give one --recipe with it")
    variation = options.variation
    recipes = {}
    for base in options.recipes:
        recipe = variation.of(settings.recipe(base))
        for key in variation.replaced:
            if _changed(f"recipes.{base}.{key}", options.changed):
                raise InputError(
                    f"-S and another option both set {key} of {base}; use -S for all of it, or no -S"
                )
        as_shipped = {}
        for other, known in settings.recipes.items():
            if not _changed(f"recipes.{other}", options.changed):
                as_shipped[other] = known
        taken: Iterable[str] = settings.recipes
        if name not in (None, variation.name(base)):
            taken = _reserved(settings)
        varied = named(recipe, name, variation.name(base), as_shipped, taken)
        recipes[varied] = recipe
    return recipes


def _reserved(settings: Settings) -> set[str]:
    """The names under which tables show the settings' recipes, and these with another pooling of
    both sides.
    """
    reserved = {*settings.recipes}
    for pooling in TABLES["poolings"]:
        variation = Variation(pooling=pooling)
        reserved.update(variation.name(base) for base in settings.recipes)
    return reserved


def _changed(section: str, changes: Iterable[str]) -> bool:
    """Whether keys of the settings are in a section, such as "recipes.vse2ad", or contain it."""
    keys = list(changes)
    for key in changes:
        for side in ("image", "text"):  # `pooling` sets both sides
            keys.append(re.sub(r"^(recipes\.[^.]+\.)(pooling)\b", rf"\g<1>{side}_\2", key))
    for key in keys:
        is_in_section = f"{key}.".startswith(f"{section}.")
        contains_section = f"{section}.".startswith(f"{key}.")
        if is_in_section or contains_section:
            return True
    return False


def _photographs(
    settings: Settings, manifest: Manifest, feature: str, images: Path | None
) -> training.Photographs:
    """The photographs of a head whose network is trained too, loaded anew for each."""
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
    # The first of several processes has done it, before it started the others.
    if "LOCAL_RANK" in os.environ:
        return
    if if_changed == "redo" or not paths.features(dataset, feature).exists():
        extras.require("features", f"extracting {feature}")
        from stages.extract import extract

        captions = ExtractOptions(feature=feature, dataset=dataset, if_changed=if_changed)
        extract(paths, settings, captions)


def _captions(paths: Paths, settings: Settings, manifest: Manifest) -> FeatureStore:
    """The features of captions that a head is trained on."""
    feature = settings.captions_of(manifest.dataset)
    store = FeatureStore(paths.features(manifest.dataset, feature))
    return store.require(manifest)


def learn(job: Job[Any], **more: Any) -> None:
    """Train, and show how it goes. more: as for `training.train`."""
    first = job.processes.rank == 0
    with Progress(job.folder.name, "step", shown=first) as bar:

        def on_step(epoch: int, step: int, log: Mapping[str, float]) -> None:
            bar.step(f"epoch {epoch} loss {log['loss']:.3g}")

        def on_epoch(row: Mapping[str, float]) -> None:
            measured = f"loss {row['loss']:.3f}, val RSUM {row['RSUM']:.1f}"
            say(f"{job.folder.name} epoch {row['epoch']:.0f}: {measured}")

        def on_words(line: str) -> None:
            say(f"{job.folder.name}: {line}")

        def on_start(done: float, steps: float) -> None:
            bar.resume(done, steps)
            if done and first:
                say(f"{job.folder.name}: resumes after step {done:.0f} of {steps:.0f}")

        training.train(job, on_step, on_epoch, on_start, on_words, **more)
    if first:
        said = training.summary(job.folder)
        if not bar.total:
            said = f"nothing to do, {said}"
        say(f"{job.folder}: {said}", err=False)


def convert(paths: Paths, settings: Settings, options: ConvertOptions) -> None:
    """Turn a checkpoint of VSE∞'s released code (github.com/woodfrog/vse_infty, model_best.pth)
    into a head.
    """
    checkpoint = options.checkpoint
    if options.name in _reserved(settings):
        raise InputError(
            f"--name {options.name}: is a recipe's name, and tables would show the checkpoint as trained by it; "
            "choose another"
        )
    for file in filter(None, (checkpoint, options.vocabulary)):
        if not file.exists():
            raise InputError(f"{file}: no such file{similar(file)}")
    manifest = Manifest.load(paths.manifest(options.dataset or settings.run.dataset))
    if checkpoint.is_dir() or checkpoint.suffix in (".bin", ".zip"):
        _convert_cross(paths, settings, manifest, options)
        return
    refuse_given(
        "is for cross-encoders; a checkpoint of VSE∞ says what it reads", feature=options.feature
    )
    released = training.read_released(checkpoint)
    if released.text == "bert":
        refuse_given(
            "is for a BiGRU; this checkpoint has a BERT, whose words are its tokenizer's",
            vocabulary=options.vocabulary,
        )
    source: FeatureStore | training.Photographs
    # It contains its network, which must be the settings' one.
    if FEATURES[released.feature].trainable:
        manifest.require_photographs("a fine-tuned head")
        engine = settings.engine_of(manifest.dataset, released.feature)
        untrained = {**engine.options, "weights": weights.UNTRAINED}
        source = training.Photographs(
            manifest, options.images or manifest.images_folder, engine.engine, untrained
        )
    else:
        refuse_given("is for grid checkpoints, which have their own network", images=options.images)
        source = FeatureStore(paths.features(manifest.dataset, released.feature)).require(manifest)
    name = options.name or "vse_infty_released"
    system = system_name(name, released.feature, released.text, 0)
    folder = options.out or paths.head(manifest.dataset, system)
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
        options.if_changed,
    )
    training.convert(job, released, options.vocabulary)
    epochs = counted(released.epoch, "epoch")
    said = f"{folder}: {released.feature} and {released.text}, {epochs}"
    if released.rsum is not None:
        said += f", val RSUM {released.rsum:.1f} as its code counted"
    say(f"{said}; next: `pipeline score --system {folder}`", err=False)


def _convert_cross(
    paths: Paths, settings: Settings, manifest: Manifest, options: ConvertOptions
) -> None:
    """Turn a cross-encoder's checkpoint into a head."""
    refuse_given(
        "is for VSE∞'s checkpoints; a cross-encoder has a BERT's words and reads stored features",
        vocabulary=options.vocabulary,
        images=options.images,
    )
    dataset = manifest.dataset
    feature = options.feature or "region"
    name = options.name or "oscar"
    store = paths.features(dataset, feature)
    read_header(store)
    released = training.read_released_cross(options.checkpoint)
    without_boxes = FeatureStore(store).width == released.width
    recipe = training.recipe_of(released, settings.recipe("join"), boxes=not without_boxes)
    folder = options.out or paths.head(dataset, system_name(name, feature, "bert", 0))
    job = training.TrainingJob(
        manifest,
        training.stored(store, manifest, recipe),
        feature,
        "bert",
        name,
        recipe,
        settings.training_of(dataset),
        0,
        folder,
        options.if_changed,
    )
    training.convert_cross(job, released)
    use = f"a recipe with start: {name}"
    if "ce" in released.tasks:
        use = f"`pipeline rerank --with {folder.name}`"
    say(f"{folder}: {feature}, {released.layers} layers; next: {use}", err=False)

"""Train a dual encoder on."""

from __future__ import annotations

from dataclasses import replace

from pipeline.foundation.compute import machine
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import FineTuning, Settings
from pipeline.foundation.settings.paths import Paths, of_seed
from pipeline.make import dual_encoders, training
from stages.arguments import Source
from stages.commands.finetune import FinetuneOptions
from stages.heads import learn
from stages.progress import say


def finetune(paths: Paths, settings: Settings, options: FinetuneOptions) -> None:
    """Train a dual encoder on a data set, and select the best epoch on val. Running again does
    nothing, or resumes.

    Without a source: those of the run's encoders that are trained on.
    """
    source = options.source
    if source is None:
        _of_the_run(paths, settings, options)
        return
    if not source.is_encoder:
        raise InputError(
            f"--system {source.named}: expected KIND:PLACE of a dual encoder; `pipeline train` trains "
            "heads"
        )
    how = section(settings, options.recipe)
    dual_encoders.check(source.named)
    given = {"device": options.device, "processes": options.processes}
    changes = {name: value for name, value in given.items() if value is not None}
    how = how.model_copy(update=changes)
    dataset = options.dataset or settings.run.dataset
    manifest = Manifest.load(paths.manifest(dataset))
    manifest.require_photographs("fine-tuning")
    for split in ("train", "val"):
        manifest.split(split)
    name = of_seed(f"{options.recipe}-{source.called}", options.seed)
    from pipeline.make.dual_encoders.tuning.course import TuningCourse  # and with it torch
    from pipeline.make.dual_encoders.tuning.job import TuningJob

    machine.keep_freed()
    together = training.launch(how.processes, how.device)
    how = how.model_copy(update={"processes": together.count})
    images_folder = options.images or manifest.images_folder
    out = options.out or paths.tuned(dataset, name)
    job = TuningJob(
        source.named,
        manifest,
        images_folder,
        options.recipe,
        how,
        options.seed,
        out,
        options.if_changed,
        together,
        options.prompt,
    )
    learn(job, course=TuningCourse)


def _of_the_run(paths: Paths, settings: Settings, options: FinetuneOptions) -> None:
    """Train on the run's encoders that name a recipe for it."""
    if options.dataset:
        raise InputError("give --system: KIND:PLACE of a dual encoder, such as clip:FOLDER")
    run = settings.run
    # dvc.yaml names the folder, empty or not.
    paths.tuned(run.dataset, "").mkdir(parents=True, exist_ok=True)
    encoders = [encoder for encoder in run.encoders if encoder.finetune]
    for encoder in encoders:
        source = Source(encoder.model, paths.root)
        out = paths.tuned(run.dataset, encoder.name)
        of_encoder = replace(
            options,
            source=source,
            dataset=run.dataset,
            recipe=str(encoder.finetune),
            seed=run.seeds[0],
            out=out,
            prompt=encoder.prompt,
        )
        finetune(paths, settings, of_encoder)
    if not encoders:
        say("no encoder to train on in the run: nothing to do", err=False)


def section(settings: Settings, recipe: str) -> FineTuning:
    """A section of finetuning, after a look for the packages that it needs."""
    how = settings.tuning(recipe)
    if how.weights.name == "lora":
        extras.require("finetuning", "LoRA")
    return how

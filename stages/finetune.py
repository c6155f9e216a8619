"""Train a dual encoder on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pipeline import dual_encoders, training
from pipeline.compute import machine
from pipeline.manifest import Manifest
from pipeline.parts import extras
from pipeline.parts.errors import InputError
from pipeline.settings import FineTuning, Settings
from pipeline.settings.paths import Paths, of_seed
from stages.arguments import Source
from stages.heads import learn
from stages.progress import say


def finetune(
    paths: Paths,
    settings: Settings,
    source: Source | None = None,
    dataset: str | None = None,
    recipe: str = "projections",
    seed: int = 0,
    out: Path | None = None,
    images: Path | None = None,
    prompt: str = "own",
    device: str | None = None,
    processes: int | None = None,
    if_changed: Literal["refuse", "redo"] = "refuse",
) -> None:
    """Train a dual encoder on a data set, and select the best epoch on val. Running again does
    nothing, or resumes.

    Without a source: those of the run's encoders that are trained on.
    """
    if source is None:
        if dataset:
            raise InputError("give --system: KIND:PLACE of a dual encoder, such as clip:FOLDER")
        run = settings.run
        paths.tuned(run.dataset, "").mkdir(
            parents=True, exist_ok=True
        )  # dvc.yaml names it, empty or not
        asked = [encoder for encoder in run.encoders if encoder.finetune]
        for encoder in asked:
            finetune(
                paths,
                settings,
                Source(encoder.model, paths.root),
                run.dataset,
                str(encoder.finetune),
                run.seeds[0],
                paths.tuned(run.dataset, encoder.name),
                images,
                encoder.prompt,
                device,
                processes,
                if_changed,
            )
        if not asked:
            say("no encoder to train on in the run: nothing to do", err=False)
        return
    if not source.is_encoder:
        raise InputError(
            f"--system {source.named}: expected KIND:PLACE of a dual encoder; `pipeline train` trains "
            "heads"
        )
    how = section(settings, recipe)
    dual_encoders.check(source.named)
    where = {
        key: value
        for key, value in (("device", device), ("processes", processes))
        if value is not None
    }
    dataset = dataset or settings.run.dataset
    manifest = Manifest.load(paths.manifest(dataset))
    manifest.require_photographs("fine-tuning")
    for split in ("train", "val"):
        manifest.split(split)
    folder = out or paths.tuned(dataset, of_seed(f"{recipe}-{source.called}", seed))
    from pipeline.dual_encoders.tuning.course import TuningCourse  # and with it torch
    from pipeline.dual_encoders.tuning.job import TuningJob

    machine.keep_freed()
    how = how.model_copy(update=where)
    together = training.launch(how.processes, how.device)
    job = TuningJob(
        source.named,
        manifest,
        images or manifest.images_folder,
        recipe,
        how.model_copy(update={"processes": together.count}),
        seed,
        folder,
        if_changed,
        together,
        prompt,
    )
    learn(job, course=TuningCourse)


def section(settings: Settings, recipe: str) -> FineTuning:
    """A section of finetuning, after a look for the packages that it needs."""
    how = settings.tuning(recipe)
    if how.weights.name == "lora":
        extras.require("finetuning", "LoRA")
    return how

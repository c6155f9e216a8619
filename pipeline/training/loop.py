"""Train one head: epochs over a store, selection on val, a checkpoint after every epoch.

The same seed gives the same head, bit for bit, also after an interruption: an epoch depends on the checkpoint before
it, the seed and its number. This holds for one kind of CPU, one number of threads, one version of torch and one choice
of products (`pipeline.compute`); with others, sums are added in another order. head.json records which they were.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import torch

from pipeline import heads
from pipeline import text as texts
from pipeline.compute import half, machine
from pipeline.files.atomic import exclusive
from pipeline.heads.base import HeadNetwork
from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.text import Text, role_graphs
from pipeline.training import checkpoint, hard_negatives, optimizer, sampling
from pipeline.training.divergence import Watch
from pipeline.training.head import to_device
from pipeline.training.selection import measured
from pipeline.training.source import Photographs, usable
from pipeline.training.tasks import Rounds, Tasks
from pipeline.training.training_job import TrainingJob

OnStep = Callable[[int, int, Mapping[str, float]], None]
OnEpoch = Callable[[Mapping[str, float]], None]
OnStart = Callable[[int, int], None]
UNSHOWN = ("similarity", "spread", "gradient", "ce_similarity", "ce_spread", "ce_gradient",
           "ance_gradient")
"""Of a step's log, what mostly tells whether it diverges: in steps.csv alone."""


def train(job: TrainingJob, on_step: OnStep = lambda epoch, step, log: None,
          on_epoch: OnEpoch = lambda row: None, on_start: OnStart = lambda done, steps: None) -> checkpoint.State:
    """Train to the last epoch, from the last checkpoint if there is one. A finished head is left unchanged.

    Of several processes the first one writes files and selects on val; the others wait for it. Before the first step
    all bytes that will be read are compared with the store's ledger.

    Args:
        job: The head.
        on_step: Called with an epoch, a step of it and the step's log.
        on_epoch: Called with a row of the history.
        on_start: Called with the number of finished steps and of all steps.

    Returns:
        The state after the last epoch.

    Raises:
        InputError: If the folder holds another head that is not to be replaced, or another run trains it; if the recipe
            pools a class token that images lack; if this CPU is slower with the half precision asked for; if the
            features' bytes have changed; if the index of noise does not fit; if the head reads role graphs that the
            manifest lacks; or if training diverges.
    """
    machine.keep_freed()
    keep_first = job.pools_class_token
    split, val = (usable(job.source, job.manifest.split(name)).in_languages(job.recipe.languages)
                  for name in ("train", "val"))
    split = sampling.subset(split, job.training.images, job.training.subset_seed)
    split = sampling.mismatch(split, job.recipe.noise)
    sampling.require_languages(split, job.recipe.sampling)
    if heads.reads_graphs(job.recipe):
        for part in (split, val):
            role_graphs.require(part.captions, part.role_graphs)
    text = texts.kind(job.text).learn(split.captions, job.training)
    job.check(text)
    if not job.finished(text):
        half.refuse_slow(job.training.precision, job.training.device)
    first = job.processes.rank == 0
    with exclusive(job.folder) if first else nullcontext():
        try:
            return _train(job, split, val, text, keep_first, on_step, on_epoch, on_start)
        finally:
            if first:
                job.put_back()


def _train(job: TrainingJob, split: Split, val: Split, text: Text, keep_first: bool, on_step: OnStep, on_epoch: OnEpoch,
           on_start: OnStart) -> checkpoint.State:
    first = job.processes.rank == 0
    job.processes.wait()
    if first:
        job.put_back()  # of a run that was killed
        job.claim(text)
    job.processes.wait()
    state = checkpoint.state(job.folder)
    if state.epochs >= job.training.epochs:
        if first:
            checkpoint.write_history(job.folder, state)
        return state
    job.source.check(job.rows)
    step, state = _resume(job, text)
    rounds = Rounds(job, split, text, keep_first)
    on_start(state.epochs * len(rounds), job.training.epochs * len(rounds))
    watch = Watch(step.objective, rounds.right.batch_size, len(rounds), job.training.epochs, state.stuck)
    for epoch in range(state.epochs, job.training.epochs):
        torch.manual_seed(job.seed * 1_000_003 + epoch)
        rounds.nearest = hard_negatives.find(job, step.model, step.update.precision, split, text, rounds.nearest)
        logs = _epoch(job, step, rounds, watch, epoch, on_step)
        state.stuck, state.scaler = watch.stuck, step.update.precision.state()
        state.history.append({"epoch": epoch, **_means(logs)})
        if first:
            state.history[-1] |= measured(step.model, job.recipe, job.source, val, text,
                                          max(1, job.training.batch_size // job.training.pieces), step.update.precision)
            checkpoint.write_steps(job.folder, epoch, logs)
            checkpoint.save(job.folder, step.model, step.update.optimizer, state)
            job.put_back()  # a head that was replaced is needed no more
            on_epoch(state.history[-1])
        job.processes.wait()
    return state


def _resume(job: TrainingJob, text: Text) -> tuple[Tasks, checkpoint.State]:
    torch.manual_seed(job.seed)
    backbone = job.source.backbone() if isinstance(job.source, Photographs) else None
    model = heads.build(job.recipe, job.feature, job.source.width, text, job.training, backbone)
    device = job.processes.device(job.training.device)
    to_device(model, device)
    if job.start is not None and not (job.folder / "last.safetensors").exists():
        _start(model, job.start)
    step = Tasks.of(job, model, device)
    state = checkpoint.restore(job.folder, model, step.update.optimizer)
    step.update.precision.restore(state.scaler)
    return step, state


def _start(model: HeadNetwork, folder: Path) -> None:
    """Fill a network from a trained head's best epoch."""
    tensors, _ = checkpoint.load_tensors(folder / "best.safetensors")
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise InputError(f"{folder}: has another architecture than the head that shall start from it; give both "
                         "recipes the same architecture") from None


def _epoch(job: TrainingJob, step: Tasks, rounds: Rounds, watch: Watch, epoch: int,
           on_step: OnStep) -> list[dict[str, float]]:
    """The log of each step."""
    step.model.train()
    if step.model.backbone is not None:
        step.model.backbone.requires_grad_(epoch >= job.recipe.frozen_epochs)
    if step.objective is not None:
        step.objective.start_epoch(epoch)
    watch.start_epoch()
    logs = []
    for number, batches in enumerate(rounds.epoch(epoch)):
        optimizer.set_rate(step.update.optimizer, optimizer.learning_rate(job.recipe, job.training, epoch, number,
                                                                   len(rounds)))
        log = step(batches)
        watch.see(log, f"{job.folder}: epoch {epoch}, step {number}", job.training.precision)
        on_step(epoch, number, {name: value for name, value in log.items() if name not in UNSHOWN})
        logs.append(log)
    return logs


def _means(logs: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(log[name] for log in logs) / len(logs) for name in logs[0] if name not in UNSHOWN}

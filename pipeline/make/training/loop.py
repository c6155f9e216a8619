"""Train: epochs, selection of the best one on val, a checkpoint after every epoch.

The same seed gives the same weights, bit for bit, also after an interruption: an epoch depends on
the checkpoint before it, the seed and its number. This holds for one kind of CPU, one number of
threads and one version of torch; with others, sums are added in another order. record.json names
these.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from pipeline.foundation import artefacts
from pipeline.foundation.compute import half, machine
from pipeline.make.training import checkpoint, optimizer
from pipeline.make.training.course import Course
from pipeline.make.training.divergence import Watch
from pipeline.make.training.head_course import HeadCourse
from pipeline.make.training.job import Job, Opened

OnStep = Callable[[int, int, Mapping[str, float]], None]
OnEpoch = Callable[[Mapping[str, float]], None]
OnStart = Callable[[int, int], None]
OnWords = Callable[[str], None]
# Parts of a step's log by which divergence is detected. They are only in steps.csv.
UNSHOWN = (
    "similarity",
    "spread",
    "gradient",
    "ce_similarity",
    "ce_spread",
    "ce_gradient",
    "ance_gradient",
)


def train(
    job: Job[Opened],
    on_step: OnStep = lambda epoch, step, log: None,
    on_epoch: OnEpoch = lambda row: None,
    on_start: OnStart = lambda done, steps: None,
    on_words: OnWords = lambda line: None,
    course: Callable[[Any, Any], Course] = HeadCourse,
) -> checkpoint.State:
    """Train to the last epoch, from the last checkpoint if there is one. What is up to date is left
    unchanged.

    Rank 0 writes the files and evaluates on the validation split; the other ranks wait. Before the
    first step all bytes that will be read are compared with the store's ledger.

    Args:
        job: The head, or what else is trained.
        on_step: Called with an epoch and a step of it, both from 1, and the step's log.
        on_epoch: Called with a row of the history.
        on_start: Called with the number of finished steps and of all steps.
        on_words: Called with a line on the captions of val, such as their unknown words, before the
            first step.
        course: What is done in an epoch, built of the job and what it has opened.

    Returns:
        The state after the last epoch.

    Raises:
        InputError: If the folder holds another head that is not to be replaced, or another run
            trains it; if the recipe pools a class token that images lack; if this CPU is slower
            with the half precision asked for; if the features' bytes have changed; if the index of
            noise does not fit; if the head reads role graphs that the manifest lacks; or if
            training diverges.
    """
    machine.keep_freed()
    data = job.open()
    up_to_date = artefacts.is_kept(job.folder, job.request, data.made_from, job.policy)
    if job.processes.shared(up_to_date):
        return checkpoint.state(job.folder)
    half.refuse_slow(job.training.precision, job.training.device)
    if job.processes.rank == 0:
        for line in data.notes():
            on_words(line)
    with job.making(data) as folder:
        state = checkpoint.state(folder)
        if state.epochs < job.training.epochs:
            torch.manual_seed(job.seed)
            state = _epochs(job, course(job, data), folder, on_step, on_epoch, on_start)
        elif job.processes.rank == 0:  # of a run that was killed after its last checkpoint
            checkpoint.write_history(folder, state)
    job.processes.wait()  # until the head is in its place
    return state


def _epochs(
    job: Job[Any],
    course: Course,
    folder: Path,
    on_step: OnStep,
    on_epoch: OnEpoch,
    on_start: OnStart,
) -> checkpoint.State:
    epochs = job.training.epochs
    steps = len(course)
    state = checkpoint.restore(folder, course.model, course.update.optimizer)
    if state.scaler:
        course.update.precision.scaler.load_state_dict(state.scaler)
    on_start(state.epochs * steps, epochs * steps)
    watch = Watch(course.objective, course.batch_size, steps, epochs, state.stuck)
    for epoch in range(state.epochs, epochs):
        torch.manual_seed(job.seed * 1_000_003 + epoch)
        course.start_epoch(epoch)
        logs = _epoch(job, course, watch, epoch, on_step)
        state.stuck = watch.stuck
        state.scaler = course.update.precision.scaler.state_dict()
        row: dict[str, float] = {"epoch": epoch + 1}
        for name in _shown(logs[0]):
            row[name] = sum(log[name] for log in logs) / len(logs)
        state.history.append(row)
        if job.processes.rank == 0:
            row |= course.measured()
            checkpoint.write_steps(folder, epoch + 1, epochs, logs)
            checkpoint.save(folder, course.model, course.update.optimizer, state)
            on_epoch(row)
        job.processes.wait()
    return state


def _epoch(
    job: Job[Any], course: Course, watch: Watch, epoch: int, on_step: OnStep
) -> list[dict[str, float]]:
    """Train an epoch; return the log of each step."""
    course.model.train()
    if course.objective is not None:
        course.objective.start_epoch(epoch)
    watch.start_epoch()
    logs = []
    for step, batch in enumerate(course.batches.epoch(epoch)):
        rate = optimizer.learning_rate(job.recipe, job.training, epoch, step, len(course))
        optimizer.set_rate(course.update.optimizer, rate)
        log = course.step(batch)
        where = f"{job.folder}: epoch {epoch + 1}, step {step + 1}"
        watch.see(log, where, job.training.precision)
        on_step(epoch + 1, step + 1, _shown(log))
        logs.append(log)
    return logs


def _shown(log: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in log.items() if name not in UNSHOWN}

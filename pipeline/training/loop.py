"""Train one head: epochs over its images, selection of the best one on val, a checkpoint after every epoch.

The same seed gives the same head, bit for bit, also after an interruption: an epoch depends on the checkpoint before
it, the seed and its number. This holds for one kind of CPU, one number of threads, one version of torch and one choice
of products (`pipeline.compute`); with others, sums are added in another order. record.json names these.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

from pipeline import artefacts
from pipeline.compute import half, machine
from pipeline.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.evaluation.retrieval import Embeddings, Singles, as_similarity, select
from pipeline.evaluation.retrieval.owners import renumbered
from pipeline.evaluation.statistics.intervals import divide
from pipeline.heads.base import HeadNetwork, Interaction
from pipeline.heads.cross import CrossEncoder
from pipeline.manifest import Split
from pipeline.text import Text
from pipeline.training import checkpoint, optimizer, scoring, unknown
from pipeline.training.artefact import BEST
from pipeline.training.divergence import Watch
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.tasks import Rounds, Tasks
from pipeline.training.training_job import TrainingData, TrainingJob

OnStep = Callable[[int, int, Mapping[str, float]], None]
OnEpoch = Callable[[Mapping[str, float]], None]
OnStart = Callable[[int, int], None]
OnWords = Callable[[str], None]
Row = dict[str, float]
# Parts of a step's log by which divergence is detected. They are only in steps.csv.
UNSHOWN = ("similarity", "spread", "gradient", "ce_similarity", "ce_spread", "ce_gradient", "ance_gradient")


def train(job: TrainingJob, on_step: OnStep = lambda epoch, step, log: None,
          on_epoch: OnEpoch = lambda row: None, on_start: OnStart = lambda done, steps: None,
          on_words: OnWords = lambda line: None) -> checkpoint.State:
    """Train to the last epoch, from the last checkpoint if there is one. A head that is up to date is left unchanged.

    Rank 0 writes the files and evaluates on the validation split; the other ranks wait. Before the first step all
    bytes that will be read are compared with the store's ledger.

    Args:
        job: The head.
        on_step: Called with an epoch, a step of it and the step's log.
        on_epoch: Called with a row of the history.
        on_start: Called with the number of finished steps and of all steps.
        on_words: Called with a line on the unknown words of val, before the first step.

    Returns:
        The state after the last epoch.

    Raises:
        InputError: If the folder holds another head that is not to be replaced, or another run trains it; if the recipe
            pools a class token that images lack; if this CPU is slower with the half precision asked for; if the
            features' bytes have changed; if the index of noise does not fit; if the head reads role graphs that the
            manifest lacks; or if training diverges.
    """
    machine.keep_freed()
    data = job.open()
    if job.processes.shared(artefacts.is_kept(job.folder, job.request, data.made_from, job.policy)):
        return checkpoint.state(job.folder)
    half.refuse_slow(job.training.precision, job.training.device)
    if job.processes.rank == 0:
        val = data.val
        on_words(*unknown.told([val], {val.name: data.text.captions(val.captions, val.caption_ids).unknown()}))
    with job.making(data) as folder:
        state = checkpoint.state(folder)
        if state.epochs < job.training.epochs:
            state = _epochs(job, data, folder, on_step, on_epoch, on_start)
        elif job.processes.rank == 0:  # of a run that was killed after its last checkpoint
            checkpoint.write_history(folder, state)
    job.processes.wait()  # until the head is in its place
    return state


def _epochs(job: TrainingJob, data: TrainingData, folder: Path, on_step: OnStep, on_epoch: OnEpoch, on_start: OnStart
            ) -> checkpoint.State:
    step, state = _resume(job, folder, data.text)
    rounds = Rounds(job, data.train, data.text, data.keep_first)
    on_start(state.epochs * len(rounds), job.training.epochs * len(rounds))
    watch = Watch(step.objective, rounds.pairs.batch_size, len(rounds), job.training.epochs, state.stuck)
    for epoch in range(state.epochs, job.training.epochs):
        torch.manual_seed(job.seed * 1_000_003 + epoch)
        rounds.find_nearest(step.model, step.update.precision)
        logs = _epoch(job, step, rounds, watch, epoch, on_step)
        state.stuck, state.scaler = watch.stuck, step.update.precision.scaler.state_dict()
        shown = [name for name in logs[0] if name not in UNSHOWN]
        state.history.append({"epoch": epoch, **{name: sum(log[name] for log in logs) / len(logs) for name in shown}})
        if job.processes.rank == 0:
            state.history[-1] |= _measured(job, step.model, data, step.update.precision)
            checkpoint.write_steps(folder, epoch, job.training.epochs, logs)
            checkpoint.save(folder, step.model, step.update.optimizer, state)
            on_epoch(state.history[-1])
        job.processes.wait()
    return state


def _resume(job: TrainingJob, folder: Path, text: Text) -> tuple[Tasks, checkpoint.State]:
    torch.manual_seed(job.seed)
    device = job.processes.device(job.training.device)
    model = job.network(text, device)
    if job.start is not None and not (folder / "last.safetensors").exists():
        checkpoint.fill(model, checkpoint.load_tensors(job.start / BEST)[0],
                        f"{job.start}: has another architecture than the head that shall start from it; give both "
                        "recipes the same architecture")
    step = Tasks.of(job, model, device)
    state = checkpoint.restore(folder, model, step.update.optimizer)
    if state.scaler:
        step.update.precision.scaler.load_state_dict(state.scaler)
    return step, state


def _epoch(job: TrainingJob, step: Tasks, rounds: Rounds, watch: Watch, epoch: int,
           on_step: OnStep) -> list[dict[str, float]]:
    """Train an epoch; return the log of each step."""
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


def _measured(job: TrainingJob, model: HeadNetwork, data: TrainingData, precision: TrainingPrecision) -> Row:
    """Metrics on val that select the best epoch: of embeddings on all of val, of pairs on some of its images."""
    val, text = data.val, data.text
    source, batch_size = job.source, max(1, job.training.batch_size // job.training.pieces)
    rows: dict[str, Row] = {}
    if isinstance(model, Interaction):
        rows["late"] = _of_scores(scoring.all_pairs(model, source, val, text, batch_size), val)
    elif "emb" in job.recipe.tasks:
        rows["emb"] = _of_scores(Embeddings(*scoring.embed(model, source, val, text, batch_size)), val)
    if "ce" in job.recipe.tasks:
        assert isinstance(model, CrossEncoder)
        # The first images with their first caption each (Geigle et al.'s released code).
        _, first = np.unique(val.caption_image, return_index=True)
        part = Split(val.name, val.store_rows, val.image_ids, val.caption_ids[first], val.caption_image[first],
                     val.captions[first])
        part = part.only(np.arange(len(val.image_ids)) < job.recipe.pairs.val_images)
        captions = text.captions(part.captions, part.caption_ids)
        scores = scoring.score_all_by_cross(model, source, part.store_rows, captions, batch_size, precision.autocast)
        rows["ce"] = _row(evaluate(scores, part.caption_image))
    if len(rows) == 1:
        return next(iter(rows.values()))
    both = {name: fmean(row[name] for row in rows.values()) for name in rows["emb"]}
    return both | {f"{task} RSUM": row["RSUM"] for task, row in rows.items()}


def _of_scores(similarity: Embeddings | Singles, val: Split) -> Row:
    if val.languages is None:
        return _row(evaluate(similarity, val.caption_image))
    source = as_similarity(similarity)
    parts = divide(val.caption_image, source.shape, val.languages).values()
    rows = [_row(evaluate(select(source, images, captions),
                          renumbered(val.caption_image[captions], images, len(val.image_ids))))
            for images, captions in parts]
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def _row(metrics: Metrics) -> Row:
    return {str(statistic): metrics[statistic] for statistic in STATISTICS}

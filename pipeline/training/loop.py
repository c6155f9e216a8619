"""Train one head: epochs over a store, selection on val, a checkpoint after every epoch.

The same seed gives the same head, bit for bit on one kind of CPU, also when cut and resumed: what an epoch does
depends on the checkpoint before it, the seed and its number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pipeline import objectives, retrieval
from pipeline.errors import InputError
from pipeline.heads.two_tower import TwoTower
from pipeline.manifest import Manifest, Split
from pipeline.settings import Recipe, Training
from pipeline.store import FeatureStore, provenance
from pipeline.text.vocabulary import Vocabulary
from pipeline.training import checkpoint
from pipeline.training.batches import Batch, TrainingBatches
from pipeline.training.embedding import embed

OnStep = Callable[[int, int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Job:
    """One head to train: what from, how, and where it goes."""

    manifest: Manifest
    store: FeatureStore
    feature: str
    text: str
    recipe_name: str
    recipe: Recipe
    training: Training
    seed: int
    folder: Path
    if_changed: str = "refuse"

    def description(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """head.json: all that the head depends on."""
        return {"dataset": self.manifest.dataset, "feature": self.feature, "text": self.text,
                "recipe": self.recipe_name, "recipe_settings": self.recipe.model_dump(),
                "training": self.training.model_dump(), "seed": self.seed, "manifest": self.manifest.digest,
                "store": self.store.identity, "features": provenance(self.store),
                "vocabulary": vocabulary.digest, "width": self.store.layout.dimension}


class Diverged(InputError):
    """The loss is no longer a number."""


def train(job: Job, on_step: OnStep = lambda epoch, step, log: None,
          on_epoch: Callable[[Mapping[str, float]], None] = lambda row: None) -> checkpoint.State:
    """Train to the last epoch, from the last checkpoint if there is one; a finished head is left as it is.

    Raises InputError where the folder holds another head (if_changed="redo" replaces it), or training diverges.
    """
    split, val = usable(job.store, job.manifest.split("train")), usable(job.store, job.manifest.split("val"))
    vocabulary = Vocabulary.of(split.captions, job.training.minimum_count)
    _claim(job, vocabulary)
    model, optimizer, state = _resume(job, vocabulary)
    objective = objectives.build(job.recipe.objective.name, **job.recipe.objective.options)
    batches = TrainingBatches(job.store, split, vocabulary, job.training.batch_size, job.seed,
                              job.recipe.drop_items, job.recipe.drop_tokens)
    for epoch in range(state.epochs, job.training.epochs):
        torch.manual_seed(job.seed * 1_000_003 + epoch)
        objective.start_epoch(epoch)
        log = _epoch(job, model, optimizer, objective, batches, epoch, on_step)
        images, captions = embed(model, job.store, val, vocabulary, job.training.batch_size)
        metrics = retrieval.evaluate(retrieval.Embeddings(images, captions), val.caption_image)
        state.history.append({"epoch": epoch, **log, **_row(metrics)})
        _save(job, model, optimizer, state)
        on_epoch(state.history[-1])
    checkpoint.write_history(job.folder, state)
    return state


def usable(store: FeatureStore, split: Split) -> Split:
    """The split without the images that failed in extraction: they are never trained or ranked as zeros."""
    left = split.only(store.done[split.store_rows])
    if not len(left.image_ids):
        raise InputError(f"{store.path}: every image of the split {split.name} failed in extraction, see failures.csv")
    return left


def _claim(job: Job, vocabulary: Vocabulary) -> None:
    """Make the folder this head's, or refuse it."""
    description = job.description(vocabulary)
    if (job.folder / "head.json").exists():
        there = checkpoint.describe(job.folder)
        differs = [key for key in description if there.get(key) != description[key]]
        if not differs:
            return
        if job.if_changed == "refuse":
            raise InputError(f"{job.folder}: holds a head that was trained otherwise ({', '.join(differs)}); choose "
                             "another --out, or --if-changed redo to replace it")
        for old in ("last.safetensors", "best.safetensors", "history.csv", "head.json"):
            (job.folder / old).unlink(missing_ok=True)
    job.folder.mkdir(parents=True, exist_ok=True)
    checkpoint.write_text(job.folder / "vocabulary.json", vocabulary.to_json())
    checkpoint.write_text(job.folder / "head.json", json.dumps(description, indent=1, ensure_ascii=False))


def _resume(job: Job, vocabulary: Vocabulary) -> tuple[TwoTower, torch.optim.Optimizer, checkpoint.State]:
    torch.manual_seed(job.seed)
    model = TwoTower(job.feature, job.store.layout.dimension, len(vocabulary), job.recipe, job.training)
    try:
        model.to(job.training.device)
    except (RuntimeError, AssertionError):
        raise InputError(f"training.device {job.training.device!r} is not here; cpu always is") from None
    optimizer = _optimizer(model, job.recipe)
    state = checkpoint.State()
    last = job.folder / "last.safetensors"
    if last.exists():
        tensors, metadata = checkpoint.load_tensors(last)
        model.load_state_dict({name.removeprefix("model."): value for name, value in tensors.items()
                               if name.startswith("model.")})
        checkpoint.restore_optimizer(optimizer, tensors)
        state = checkpoint.State(metadata["history"])
    return model, optimizer, state


def _optimizer(model: TwoTower, recipe: Recipe) -> torch.optim.Optimizer:
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimizer]
    return kind(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)


def learning_rate(recipe: Recipe, training: Training, epoch: int) -> float:
    """The rate of an epoch: x 0.1 once, from decay_epoch on (VSE+2AD section 4.2)."""
    return recipe.learning_rate * (0.1 if epoch >= training.decay_epoch else 1.0)


def _epoch(job: Job, model: TwoTower, optimizer: torch.optim.Optimizer, objective: objectives.Objective,
           batches: TrainingBatches, epoch: int, on_step: OnStep) -> dict[str, float]:
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(job.recipe, job.training, epoch)
    totals: dict[str, float] = {}
    for step, batch in enumerate(batches.epoch(epoch)):
        log = {"loss": _step(job, model, optimizer, objective, batch), **objective.log}
        if not math.isfinite(log["loss"]):
            raise Diverged(f"{job.folder}: the loss is {log['loss']} in epoch {epoch}, step {step}; lower the "
                           "recipe's learning_rate or gradient_clip and train again")
        for name, value in log.items():
            totals[name] = totals.get(name, 0.0) + value
        on_step(epoch, step, log)
    return {name: total / len(batches) for name, total in totals.items()}


def _step(job: Job, model: TwoTower, optimizer: torch.optim.Optimizer, objective: objectives.Objective,
          batch: Batch) -> float:
    device = job.training.device
    images = model.embed_images(batch.items.to(device), batch.counts.to(device))
    captions = model.embed_captions(batch.tokens.to(device), batch.lengths.to(device))
    known = None if job.recipe.same_image_negatives else batch.same_image().to(device)
    loss = objective(images @ captions.T, known)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), job.recipe.gradient_clip)
    optimizer.step()
    return float(loss.detach())


def _row(metrics: retrieval.Metrics) -> dict[str, float]:
    numbers = metrics.as_dict()
    recalls = {f"{way}_{k}": numbers[way][k] for way in ("i2t", "t2i") for k in ("r1", "r5", "r10")}
    return {**recalls, "rsum": numbers["rsum"]}


def _save(job: Job, model: TwoTower, optimizer: torch.optim.Optimizer, state: checkpoint.State) -> None:
    """best before last: cut between the two, the epoch is done again and makes the same best."""
    weights = model.state_dict()
    if state.best == state.epochs - 1:
        checkpoint.save_tensors(job.folder / "best.safetensors", weights, {"epoch": state.best})
    tensors = {f"model.{name}": value for name, value in weights.items()}
    checkpoint.save_tensors(job.folder / "last.safetensors", tensors | checkpoint.optimizer_tensors(optimizer),
                            {"history": state.history})
    checkpoint.write_history(job.folder, state)

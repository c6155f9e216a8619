"""Make a head from published weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from pipeline import heads
from pipeline import text as texts
from pipeline.errors import InputError
from pipeline.files.digest import sha256
from pipeline.files.lock import exclusive
from pipeline.settings import Training, first_fault
from pipeline.training import checkpoint
from pipeline.training.released import Released
from pipeline.training.source import Photographs
from pipeline.training.training_job import TrainingJob

OPTIONS = {"batch_size": "batch_size", "num_epochs": "epochs", "lr_update": "decay_epoch"}
"""The released code's options -> our settings."""


def convert(job: TrainingJob, released: Released, vocabulary: Path | None) -> None:
    """Write a head's folder as training does, with the origin of its weights. Nothing is trained.

    Args:
        job: The head; its settings are used where the checkpoint has none.
        released: The published weights.
        vocabulary: SCAN's JSON, for a BiGRU; None for BERT.

    Raises:
        InputError: If the store's features have another width, the words another number, or weights do not fit, if an
            option of the checkpoint is invalid, or if the folder holds another head that is not to be replaced.
    """
    backbone = job.source.backbone() if isinstance(job.source, Photographs) else None
    if released.width != job.source.width:
        raise InputError(f"{released.path}: is for features of {released.width} dimensions, {job.source.path} has "
                         f"{job.source.width}; extract or import those that it was trained on")
    state = released.state(vocabulary)
    origin = {"file": released.path.name, "sha256": sha256(released.path), "epochs": released.epoch,
              "val_rsum": released.rsum}
    job = replace(job, training=_training(job.training, released, vocabulary), origin=origin)
    text = texts.kind(job.text).learn([], job.training)
    model = heads.build(job.recipe, job.feature, released.width, text, job.training, backbone)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{released.path}: does not fit such a head: {str(error).splitlines()[-1].strip()}") from None
    job.check(text)
    with exclusive(job.folder):
        try:
            job.claim(text)
            checkpoint.save_tensors(job.folder / "best.safetensors", model.state_dict(), {"epoch": released.epoch - 1})
            job.drop_replaced()
        finally:
            job.put_back()


def _training(settings: Training, released: Released, vocabulary: Path | None) -> Training:
    known = {ours: released.options[theirs] for theirs, ours in OPTIONS.items() if theirs in released.options}
    sizes = {"dimension": released.dimension, "word_dimension": released.word_dimension or settings.word_dimension}
    words = {"vocabulary": str(vocabulary) if vocabulary else None}
    try:
        return Training.model_validate({**settings.model_dump(), **known, **sizes, **words})
    except ValidationError as error:
        raise InputError(f"{released.path}: its options: {first_fault(error)}") from None

"""Make a head from published weights."""

from dataclasses import replace
from pathlib import Path

import torch
from pydantic import ValidationError

from pipeline import heads
from pipeline import text as texts
from pipeline.files.atomic import exclusive
from pipeline.files.digest import sha256
from pipeline.heads.base import HeadNetwork
from pipeline.parts.errors import InputError
from pipeline.settings import Named, Recipe, Training, first_fault
from pipeline.text import Text
from pipeline.training import checkpoint
from pipeline.training.released import Released
from pipeline.training.released_cross import ReleasedCross
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
    _write(job, text, model, released.epoch)


def convert_cross(job: TrainingJob, released: ReleasedCross) -> None:
    """Write a cross-encoder's folder as training does, with the origin of its weights. Nothing is trained.

    Args:
        job: The head; its words are those of the BERT that `training.NAME.bert` names.
        released: The published weights.

    Raises:
        InputError: If the BERT has another size, weights are missing, the features have another width, or the folder
            holds another head that is not to be replaced.
    """
    text = texts.kind("bert").learn([], job.training)
    config = text.config  # type: ignore[attr-defined]
    if (config.vocab_size, config.hidden_size) != released.words or config.num_hidden_layers < released.layers:
        pieces, hidden = released.words
        raise InputError(f"{released.path}: has {pieces} word pieces, a width of {hidden} and {released.layers} "
                         f"layers, training.NAME.bert {config.vocab_size}, {config.hidden_size} and "
                         f"{config.num_hidden_layers}; set it to the BERT that the checkpoint began with, such as "
                         "bert-base-uncased")
    if released.width != job.source.width:
        raise InputError(f"{released.path}: is for items of {released.width} values with their boxes, "
                         f"{job.source.path} gives {job.source.width}; extract or import those that it was trained on")
    job = replace(job, origin={"file": released.path.name, "sha256": released.sha256})
    torch.manual_seed(job.seed)  # of a classifier that a pre-trained network lacks
    model = heads.build(job.recipe, job.feature, job.source.width, text, job.training)
    try:
        missing, strange = model.load_state_dict(released.state, strict=False)
    except RuntimeError as error:
        raise InputError(f"{released.path}: does not fit such a head: {str(error).splitlines()[-1].strip()}") from None
    new = () if "ce" in released.tasks else ("classifier.", "bert.pooler.")
    if lacking := [name for name in missing if not name.startswith(new)]:
        raise InputError(f"{released.path}: lacks {lacking[0]}")
    if strange:
        raise InputError(f"{released.path}: {strange[0]} has no place in such a head")
    _write(job, text, model, 0)


def _write(job: TrainingJob, text: Text, model: HeadNetwork, epochs: int) -> None:
    job.check(text)
    with exclusive(job.folder):
        try:
            job.claim(text)
            checkpoint.save_tensors(job.folder / "best.safetensors", model.state_dict(), {"epoch": epochs - 1})
            job.drop_replaced()
        finally:
            job.put_back()


def recipe_of(released: ReleasedCross, base: Recipe, boxes: bool) -> Recipe:
    """Describe a published cross-encoder as a recipe.

    Args:
        released: The published weights.
        base: The recipe of our own heads, whose other settings it takes over.
        boxes: Whether its items come with boxes.

    Returns:
        The recipe with the checkpoint's layers and tasks.
    """
    norm = {"image_norm": True} if "bert.LayerNorm.weight" in released.state else {}
    architecture = Named(name="cross", layers=list(range(released.layers)),
                         **norm, **({} if boxes else {"boxes": False}))  # type: ignore[call-arg]
    return base.model_copy(update={"architecture": architecture, "tasks": released.tasks})


def _training(settings: Training, released: Released, vocabulary: Path | None) -> Training:
    known = {ours: released.options[theirs] for theirs, ours in OPTIONS.items() if theirs in released.options}
    sizes = {"dimension": released.dimension, "word_dimension": released.word_dimension or settings.word_dimension}
    words = {"vocabulary": str(vocabulary) if vocabulary else None}
    try:
        return Training.model_validate({**settings.model_dump(), **known, **sizes, **words})
    except ValidationError as error:
        raise InputError(f"{released.path}: its options: {first_fault(error)}") from None

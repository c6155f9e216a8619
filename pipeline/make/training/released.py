"""Make a head from weights that VSE∞'s released code wrote, github.com/woodfrog/vse_infty, by
renaming them.

A checkpoint `model_best.pth` holds under "model" two state dicts, of its image and its caption
encoder, and beside them the options it was trained with, an argparse.Namespace. Its branch `bigru`
is for the BiGRU, `master` for BERT.
"""

import argparse
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from pipeline.foundation import artefacts
from pipeline.foundation.files import torch_save
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.parts.errors import ANYTHING, InputError, refusing
from pipeline.foundation.settings import Training, first_fault
from pipeline.make.heads.base import HeadNetwork
from pipeline.make.text import Text
from pipeline.make.text.vocabulary import Vocabulary, scan_words
from pipeline.make.training import checkpoint, request
from pipeline.make.training.artefact import BEST, Origin
from pipeline.make.training.training_job import TrainingJob

# The released code's options -> our settings.
OPTIONS = {"batch_size": "batch_size", "num_epochs": "epochs", "lr_update": "decay_epoch"}
GPO = {"gpool.gru": "generator.gru", "gpool.linear": "generator.linear"}
# Feature -> prefix of weights' names in their image encoder -> in ours.
IMAGES = {
    "region": {
        "fc": "projection.linear.linear",
        "mlp.layers.0": "projection.mlp.0",
        "mlp.bns.0": "projection.mlp.1",
        "mlp.layers.1": "projection.mlp.3",
        **{old: f"image_pooling.{new}" for old, new in GPO.items()},
    },
    "grid": {
        "image_encoder.fc": "projection.linear",
        "backbone.resnet": "backbone.network",
        **{f"image_encoder.{old}": f"image_pooling.{new}" for old, new in GPO.items()},
    },
}
CAPTIONS = {
    "bigru": {
        "embed": "text.embedding",
        **{old: f"text_pooling.{new}" for old, new in GPO.items()},
    },
    "bert": {
        "bert": "text.pretrained",
        "linear": "text.linear.linear",
        **{old: f"text_pooling.{new}" for old, new in GPO.items()},
    },
}
# Weights that their forward pass never reads, or that the file has twice.
UNUSED = (
    "mlp.bns.1.",
    "bert.pooler.",
    "bert.embeddings.position_ids",
    "backbone.resnet.fc.",
    "backbone.base.",
    "backbone.top.",
)


@dataclass(frozen=True)
class Released:
    """A checkpoint of the released code."""

    path: Path  # its file
    images: Mapping[str, Tensor]  # the state dict of the image encoder
    captions: Mapping[str, Tensor]  # the state dict of the caption encoder
    epoch: int  # finished epochs
    # RSUM on val in percent, as that code computes it; None if the file has none.
    rsum: float | None
    options: Mapping[str, Any]  # those options of its training that the file has

    @property
    def text(self) -> str:
        """Its text encoder, a key of `TEXTS`."""
        if any(name.startswith("bert.") for name in self.captions):
            return "bert"
        return "bigru"

    @property
    def feature(self) -> str:
        """Its feature: a grid head contains its CNN."""
        if any(name.startswith("backbone.") for name in self.images):
            return "grid"
        return "region"

    @property
    def dimension(self) -> int:
        """d of the joint space."""
        return len(self._projection)

    @property
    def width(self) -> int:
        """D of the features."""
        return self._projection.shape[1]

    @property
    def word_dimension(self) -> int | None:
        """Width of the word embeddings; None for BERT."""
        if "embed.weight" not in self.captions:
            return None
        return self.captions["embed.weight"].shape[1]

    @property
    def _projection(self) -> Tensor:
        """[d, D]. A grid head's CNN has a classifier of the same name, which nothing reads."""
        if self.feature == "grid":
            return self.images["image_encoder.fc.weight"]
        return self.images["fc.weight"]

    def state(self, vocabulary: Path | None) -> dict[str, Tensor]:
        """Convert the state dicts to that of our head."""
        captions = {}
        for name, value in self.captions.items():
            captions[_of_two_grus(name)] = value
        if self.text == "bigru":
            captions["embed.weight"] = self._reordered(vocabulary)
        of_images = _renamed(self.path, self.images, IMAGES[self.feature])
        of_captions = _renamed(self.path, captions, CAPTIONS[self.text] | _DIRECTIONS)
        return of_images | of_captions

    def _reordered(self, vocabulary: Path | None) -> Tensor:
        """The word embeddings in our vocabulary's order, which begins with the special words."""
        if vocabulary is None:
            raise InputError(
                f"{self.path}: a BiGRU needs the words it was trained with; give --vocabulary with "
                "SCAN's JSON, coco_precomp_vocab.json or f30k_precomp_vocab.json"
            )
        theirs = scan_words(vocabulary)
        weight = self.captions["embed.weight"]
        if len(theirs) != len(weight):
            raise InputError(
                f"{self.path}: has {len(weight)} words, {vocabulary} {len(theirs)}; give the vocabulary "
                "that it was trained with"
            )
        numbers = {word: number for number, word in enumerate(theirs)}
        return weight[[numbers[word] for word in Vocabulary.of_scan(vocabulary).words]]


def _of_two_grus(name: str) -> str:
    """The name of a weight of one GRU of two directions, of which we have two."""
    if not name.startswith("rnn."):
        return name
    weight = name.removeprefix("rnn.")
    if weight.endswith("_reverse"):
        return f"rearward.{weight.removesuffix('_reverse')}"
    return f"onward.{weight}"


_DIRECTIONS = {"onward": "text.onward", "rearward": "text.rearward"}


def _renamed(
    path: Path, state: Mapping[str, Tensor], new_names: Mapping[str, str]
) -> dict[str, Tensor]:
    renamed = {}
    for name, value in state.items():
        if name.startswith(UNUSED):
            continue
        prefixes = [old for old in new_names if name.startswith(f"{old}.")]
        if not prefixes:
            raise InputError(
                f"{path}: {name} is not a weight of a head that VSE∞'s released code trains"
            )
        old = prefixes[0]
        renamed[new_names[old] + name.removeprefix(old)] = value
    return renamed


def read(path: Path) -> Released:
    """Read a checkpoint of the released code at a path. Nothing in it is executed.

    Raises:
        InputError: If it is not such a file.
    """
    with reading(
        path, 'a checkpoint of vse_infty\'s released code, with two state dicts under "model"'
    ):
        tree = torch_save.load(path, also=argparse.Namespace)
        images, captions = tree["model"]
        best_rsum = float(tree.get("best_rsum", "nan"))
        rsum = None
        if math.isfinite(best_rsum):
            rsum = best_rsum
        released = Released(
            path,
            state_dict(path, images),
            state_dict(path, captions),
            int(tree.get("epoch", 0)),
            rsum,
            vars(tree.get("opt", argparse.Namespace())),
        )
        # They are missing in what is no such checkpoint.
        _ = released.width
        _ = released.word_dimension
        return released


def reading(path: Path, what: str) -> AbstractContextManager[None]:
    """Raise an InputError if the block cannot read a user's file as what it should be."""

    def cannot_read(error: Exception) -> str:
        if isinstance(error, FileNotFoundError):
            return f"{path}: no such file"
        return f"{path}: not {what} ({type(error).__name__})"

    return refusing(ANYTHING, cannot_read)


def state_dict(path: Path, tree: Mapping[Any, Any]) -> dict[str, Tensor]:
    """Check tensors by name: finite real numbers, variances not negative; only counts and ids may
    be integers.
    """
    state = {str(name).removeprefix("module."): value for name, value in tree.items()}
    if not all(isinstance(value, Tensor) for value in state.values()):
        raise TypeError
    for name, value in state.items():
        counts = name.endswith(("num_batches_tracked", "position_ids"))
        is_real = counts or value.is_floating_point()
        if value.layout != torch.strided or not is_real or not bool(value.isfinite().all()):
            raise InputError(f"{path}: {name} is not a dense tensor of finite real numbers")
        if name.endswith("running_var") and bool((value < 0).any()):
            raise InputError(f"{path}: {name} has negative variances")
    return state


def convert(job: TrainingJob, released: Released, vocabulary: Path | None) -> None:
    """Write a head's folder as training does, with the origin of its released weights. Nothing is
    trained.

    The settings of the job are used where the checkpoint has none. vocabulary: SCAN's JSON, for a
    BiGRU.

    Raises:
        InputError: If features, words or weights do not fit, or the folder holds another head that
            is to stay.
    """
    if released.width != job.source.width:
        raise InputError(
            f"{released.path}: is for features of {released.width} dimensions, {job.source.path} has "
            f"{job.source.width}; extract or import those that it was trained on"
        )
    state = released.state(vocabulary)
    origin = Origin(
        file=released.path.name,
        sha256=sha256(released.path),
        epochs=released.epoch,
        val_rsum=released.rsum,
    )
    job = replace(job, training=_training(job.training, released, vocabulary), origin=origin)
    text = job.learn([])
    model, _, _ = fill(job, text, released.path, state)
    write(job, text, model, released.epoch)


def _training(settings: Training, released: Released, vocabulary: Path | None) -> Training:
    changed: dict[str, Any] = {}
    for theirs, ours in OPTIONS.items():
        if theirs in released.options:
            changed[ours] = released.options[theirs]
    changed["dimension"] = released.dimension
    changed["word_dimension"] = released.word_dimension or settings.word_dimension
    changed["vocabulary"] = None
    if vocabulary:
        changed["vocabulary"] = str(vocabulary)
    with refusing(
        ValidationError, lambda error: f"{released.path}: its options: {first_fault(error)}"
    ):
        return Training.model_validate({**settings.model_dump(), **changed})


def fill(
    job: TrainingJob, text: Text, path: Path, state: Mapping[str, Tensor], strict: bool = True
) -> tuple[HeadNetwork, list[str], list[str]]:
    """Build a head with published weights. If not strict, name weights that the file lacks, and
    that the head lacks.
    """

    def unfit(error: Exception) -> str:
        *_, last_line = str(error).splitlines()
        return f"{path}: does not fit the head: {last_line.strip()}"

    torch.manual_seed(job.seed)  # for weights that the file lacks
    model = job.network(text, "cpu")
    with refusing(RuntimeError, unfit):
        missing, strange = model.load_state_dict(state, strict=strict)
    return model, missing, strange


def write(job: TrainingJob, text: Text, model: HeadNetwork, epochs: int) -> None:
    """Write a converted head's folder."""
    request.check_parts(job.recipe, job.training.dimension)
    with artefacts.making(
        job.folder, job.request, job.made_from(text), if_changed=job.if_changed
    ) as draft:
        if draft is not None:
            job.describe(draft, text)
            checkpoint.save_tensors(draft.folder / BEST, model.state_dict(), {"epoch": epochs})

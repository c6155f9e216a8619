"""Runs of one encoder or trained head that differ in batch size, dtype and attention kernel
alone.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.compute import device
from pipeline.foundation.evaluation.retrieval import Embeddings, Similarity
from pipeline.foundation.files import atomic
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputWarning
from pipeline.judge.systems.scores.judged import Columns
from pipeline.make import training
from pipeline.make.dual_encoders.scored import open_encoder
from pipeline.make.text.tower import TowerText


@dataclass(frozen=True)
class Variation:
    """How a run computes."""

    batch_size: int = 32
    precision: str = "fp32"
    # Whether attention is computed as written down, in three steps, not by torch's fused kernel.
    in_steps: bool = False

    @property
    def name(self) -> str:
        """What the run's file is called."""
        name = f"batch{self.batch_size}-{self.precision}"
        if self.in_steps:
            name += "-attention-in-steps"
        return name


# The first is what the others change one thing of.
VARIATIONS = (
    Variation(),
    Variation(batch_size=8),
    Variation(batch_size=1),
    Variation(in_steps=True),
    Variation(precision="bf16"),
)


# Computes a run: the images and captions, and their vectors or scores.
Compute = Callable[[Variation], tuple[Split, Similarity]]


def of_encoder(model: str, columns: Columns) -> Compute:
    """Embed the images and captions that the columns name by an encoder, KIND:PLACE."""

    def compute(variation: Variation) -> tuple[Split, Similarity]:
        usage = {**columns.usage, "precision": variation.precision}
        return open_encoder(model, replace(columns, usage=usage), variation.batch_size)

    return compute


def of_head(opened: training.OpenHead, split: Split) -> Compute:
    """Embed a split's images and captions by a trained head."""

    def compute(variation: Variation) -> tuple[Split, Similarity]:
        with device.autocast(opened.use.device, variation.precision):
            images, captions = opened.head.embed(opened.source, split, variation.batch_size)
        return split, Embeddings(images, captions)

    return compute


def has_kernels(head: training.Head) -> bool:
    """Whether a head's text encoder has attention, as BERT has, whose kernel can be chosen."""
    return isinstance(head.text, TowerText)


def make(
    compute: Compute,
    variations: Sequence[Variation],
    folder: Path,
    progress: Callable[[int], object],
) -> list[Path]:
    """Compute the runs of a system, and write a file of vectors and ids for each."""
    files = []
    for number, variation in enumerate(variations, 1):
        with _attention(variation.in_steps), _warning_of(is_first=number == 1):
            split, scores = compute(variation)
        arrays: dict[str, Any] = {
            "image_ids": split.image_ids,
            "caption_ids": split.caption_ids,
            "caption_image": split.caption_image,
        }
        if isinstance(scores, Embeddings):
            arrays["image_embeddings"] = np.asarray(scores.images)
            arrays["caption_embeddings"] = np.asarray(scores.captions)
        else:  # of an encoder with a vector for every token
            arrays["scores"] = scores.block(slice(None), slice(None))
        file = folder / f"{variation.name}.npz"
        with atomic.replacing(file) as draft, draft.open("wb") as stream:
            np.savez(stream, **arrays)
        files.append(file)
        progress(number)
    return files


@contextmanager
def _warning_of(is_first: bool) -> Iterator[None]:
    """Say what an encoder warns of once, not for each of its runs."""
    with warnings.catch_warnings():
        if not is_first:
            warnings.simplefilter("ignore", InputWarning)
        yield


def _attention(in_steps: bool) -> AbstractContextManager[None]:
    """Within it, torch computes attention by the kernel that is wanted."""
    if not in_steps:
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel  # takes two seconds to import

    kernel: AbstractContextManager[None] = sdpa_kernel(SDPBackend.MATH)
    return kernel

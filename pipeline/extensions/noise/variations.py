"""Runs of one dual encoder that differ in batch size, dtype and attention kernel alone."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputWarning
from pipeline.judge.systems.scores.judged import Columns
from pipeline.make.dual_encoders.scored import open_encoder


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


def make(
    model: str, columns: Columns, folder: Path, progress: Callable[[int], object]
) -> list[Path]:
    """Embed the images and captions by an encoder, KIND:PLACE, in each of `VARIATIONS`; a file of
    vectors and ids for each.
    """
    files = []
    for number, variation in enumerate(VARIATIONS, 1):
        usage = {**columns.usage, "precision": variation.precision}
        used = replace(columns, usage=usage)
        with _attention(variation.in_steps), _warning_of(is_first=number == 1):
            split, scores = open_encoder(model, used, variation.batch_size)
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

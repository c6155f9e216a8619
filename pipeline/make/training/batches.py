"""Training batches, read from a feature store as they are needed.

The content of a batch depends on (seed, epoch, step) alone, so a run that is interrupted and
resumed sees the same batches.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch

from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore
from pipeline.make.features.store.dropping import drop, kept_slots
from pipeline.make.heads.base import CaptionReading, FurtherBatch, Parts
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text
from pipeline.make.training import sampling
from pipeline.make.training.photographs import Photographs
from pipeline.make.training.source import ImageSource

AHEAD = 2  # batches read while one is trained on
Read = TypeVar("Read")


@dataclass(frozen=True)
class Batch:
    """A batch of b pairs: the i-th caption belongs to the i-th image."""

    images: Side
    captions: Side

    def split(self, pieces: int) -> "list[Batch]":
        """Divide the pairs into pieces, in order."""
        images = self.images.split(pieces)
        captions = self.captions.split(pieces)
        return [Batch(*sides) for sides in zip(images, captions, strict=True)]

    def to(self, device: torch.device) -> "Batch":
        """Move both sides to a device."""
        return Batch(self.images.to(device), self.captions.to(device))


@dataclass(frozen=True)
class Drawing:
    """How captions are drawn into batches."""

    batch_size: int
    seed: int
    share: tuple[int, int] = (0, 1)  # this process's number, and how many share each batch
    order: str = "uniform"
    steps: int | None = None  # batches an epoch; None for all captions once


class Batches(ABC, Generic[Read]):
    """Captions with their images in random order, by default each once per epoch; an incomplete
    batch is dropped.
    """

    def __init__(self, split: Split, drawing: Drawing) -> None:
        self.split = split
        self.batch_size = min(drawing.batch_size, len(split.captions))
        self.seed = drawing.seed
        self.order = drawing.order
        self.steps = drawing.steps
        rank, count = drawing.share
        if self.batch_size % count:
            raise InputError(
                f"a batch of {self.batch_size} pairs cannot be shared by {count} processes equally; set "
                "its batch_size to a multiple"
            )
        self.own = slice(rank * self.batch_size // count, (rank + 1) * self.batch_size // count)

    def __len__(self) -> int:
        return self.steps or len(self.split.captions) // self.batch_size

    def epoch(self, number: int) -> Iterator[Read]:
        """Read the batches of an epoch, ahead of their use, in a thread."""
        drawn = enumerate(self.drawn(number))
        return ahead(self.batch(number, step, captions) for step, captions in drawn)

    def drawn(self, epoch: int) -> Iterator[Ids]:
        """Draw the captions of each batch of an epoch."""
        if self.steps is None:
            rng = np.random.default_rng((self.seed, epoch))
            order = sampling.order(self.split, self.order, rng)
        else:
            taken = self.steps * self.batch_size
            order = sampling.stretch(self.split, self.order, self.seed, epoch * taken, taken)
        starts = range(0, len(self) * self.batch_size, self.batch_size)
        return (order[start : start + self.batch_size] for start in starts)

    @abstractmethod
    def batch(self, epoch: int, step: int, captions: Ids) -> Read:
        """Read this process's part of a batch: these captions, int64 [B], at this step of this
        epoch.
        """


class TrainingBatches(Batches[Batch]):
    """The batches of a head: stored items or photographs, and captions as its text encoder reads
    them.
    """

    def __init__(
        self,
        source: ImageSource,
        split: Split,
        text: Text,
        drawing: Drawing,
        drop_items: float,
        drop_tokens: float,
        keep_first: bool = False,
        reading: CaptionReading | None = None,
    ) -> None:
        super().__init__(split, drawing)
        self.source = source
        self.text = text
        self.reader = text.captions(split.captions, split.caption_ids)
        self.drop_items = drop_items
        self.drop_tokens = drop_tokens
        self.keep_first = keep_first
        self.further: FurtherBatch | None = None
        if reading is not None:
            given = split.caption_inputs.get(reading.column)
            self.further = reading.read(text, split.captions, given)
        # The memory of an earlier batch, into which the next one is read.
        self._memory: np.ndarray | None = None

    def batch(self, epoch: int, step: int, captions: Ids) -> Batch:
        """Read this process's part of a batch.

        Random draws are made for the whole batch, so they do not depend on how processes share it.
        """
        rng = np.random.default_rng((self.seed, epoch, step, 1))
        own_captions = captions[self.own]
        own_images = self.split.caption_image[own_captions]
        left_out = self._left_out(len(captions), rng)[self.own]
        values, lengths = self.reader.altered(captions, self.drop_tokens, rng, self.own)
        crops = rng.random((len(captions), 4))[self.own]
        rows = self.split.store_rows[own_images]
        slots = None
        if isinstance(self.source, Photographs):
            items = self.source.augmented(rows, crops)
            all_slots = np.full(len(rows), left_out.shape[1])
            slots, counts = kept_slots(all_slots, left_out)
        else:
            items, counts = self._stored(self.source, rows, left_out)
        further: Parts = ()
        if self.further is not None:
            further = self.further(own_captions, values.shape[1])
        image_ids = self.split.image_ids[own_images]
        caption_ids = self.split.caption_ids[own_captions]
        return Batch(
            Side.of(items, counts, image_ids, slots),
            Side.of(values, lengths, caption_ids, further=further),
        )

    def _stored(
        self, source: FeatureStore, rows: Ids, left_out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read the items of rows without those that are left out, into the memory of an earlier
        batch.
        """
        memory = self._memory
        self._memory = None  # so that no other thread takes it
        stored, counts = source.read(rows, memory)
        items, counts = drop(stored, counts, left_out)
        self._memory = stored  # `drop` has copied it
        return items, counts

    def images(self, images: Ids, rng: np.random.Generator) -> Side:
        """Read further images of the split, some of their items left out."""
        left_out = self._left_out(len(images), rng)
        if not len(images):
            return Side(torch.empty(0, 0, self.source.width), torch.empty(0, dtype=torch.int64))
        stored, counts = self.source.read(self.split.store_rows[images])
        items, counts = drop(stored, counts, left_out)
        return Side.of(items, counts)

    def captions(self, captions: Ids, rng: np.random.Generator) -> Side:
        """Read further captions of the split, some of their words changed."""
        values, lengths = self.reader.altered(captions, self.drop_tokens, rng)
        return Side.of(values, lengths)

    def _left_out(self, images: int, rng: np.random.Generator) -> np.ndarray:
        """Which items are left out, bool [images, N]."""
        left_out = rng.random((images, self.source.slots)) < self.drop_items
        left_out[:, 0] &= not self.keep_first
        return left_out


def ahead(batches: Iterator[Read]) -> Iterator[Read]:
    """Iterate in a thread, a few batches ahead; what the thread raises is raised here."""
    thread = ThreadPoolExecutor(1)
    try:
        reading = deque(thread.submit(next, batches, None) for _ in range(1 + AHEAD))
        while True:
            batch = reading.popleft().result()
            if batch is None:
                return
            reading.append(thread.submit(next, batches, None))
            yield batch
    finally:
        thread.shutdown(cancel_futures=True)

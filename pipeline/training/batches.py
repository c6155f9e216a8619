"""Training batches from a feature store, never the whole of it in memory.

What a batch holds depends on (seed, epoch, step) alone, so that a run cut short and resumed goes on as it would have.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from pipeline.manifest import Split
from pipeline.store import FeatureStore
from pipeline.text.augment import augment
from pipeline.text.vocabulary import MASK, SPECIAL, Vocabulary

AHEAD = 2  # batches read while one is trained on


@dataclass(frozen=True)
class Batch:
    """items float16 [B, N, D] and counts [B]; tokens int64 [B, T] and lengths [B]; image_ids [B] int64."""

    items: torch.Tensor
    counts: torch.Tensor
    tokens: torch.Tensor
    lengths: torch.Tensor
    image_ids: torch.Tensor

    def same_image(self) -> torch.Tensor:
        """bool [B, B]: image of the row and caption of the column are of one image, the diagonal included."""
        return self.image_ids[:, None] == self.image_ids[None, :]


def pad(captions: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token numbers as int64 [B, T], padded with 0, and lengths [B]."""
    lengths = torch.tensor([len(caption) for caption in captions])
    tokens = torch.zeros(len(captions), int(lengths.max()), dtype=torch.int64)
    for row, caption in zip(tokens, captions, strict=True):
        row[:len(caption)] = torch.tensor(caption)
    return tokens, lengths


class TrainingBatches:
    """Every caption with its image once an epoch, shuffled, the last incomplete batch left out.

    drop_items, drop_tokens: shares of size and caption augmentation (VSE-infinity section 3.4).
    """

    def __init__(self, store: FeatureStore, split: Split, vocabulary: Vocabulary, batch_size: int, seed: int,
                 drop_items: float, drop_tokens: float) -> None:
        self.store, self.split, self.vocabulary = store, split, vocabulary
        self.batch_size, self.seed = min(batch_size, len(split.captions)), seed
        self.drop_items, self.drop_tokens = drop_items, drop_tokens
        self.captions = [vocabulary.encode(caption) for caption in split.captions]

    def __len__(self) -> int:
        return len(self.captions) // self.batch_size

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch, read ahead in a thread."""
        order = np.random.default_rng((self.seed, number)).permutation(len(self.captions))
        return _ahead(self._batch(number, step, order[step * self.batch_size:(step + 1) * self.batch_size])
                      for step in range(len(self)))

    def _batch(self, epoch: int, step: int, captions: np.ndarray) -> Batch:
        rng = np.random.default_rng((self.seed, epoch, step, 1))
        images = self.split.caption_image[captions]
        items, counts = self.store.read(self.split.store_rows[images])
        items, counts = drop(items, counts, self.drop_items, rng)
        numbers = [augment(self.captions[caption], self.drop_tokens, self.vocabulary.number(MASK), len(SPECIAL),
                           len(self.vocabulary), rng) for caption in captions]
        return Batch(torch.from_numpy(items), torch.from_numpy(counts), *pad(numbers),
                     torch.from_numpy(self.split.image_ids[images]))


def drop(items: np.ndarray, counts: np.ndarray, share: float,
         rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Leave out `share` of each image's items at random, at least one stays (size augmentation).

    items [B, N, D], counts [B]. Returns the kept ones in their order, [B, N', D], padding zero, and their counts.
    """
    slots = np.arange(items.shape[1])
    valid = slots < counts[:, None]
    keep = valid & (rng.random(valid.shape) >= share)
    keep[~keep.any(axis=1), 0] = True
    kept = keep.sum(axis=1)
    order = np.argsort(~keep, axis=1, kind="stable")[:, :kept.max()]
    out = items[np.arange(len(items))[:, None], order]
    out[np.arange(order.shape[1]) >= kept[:, None]] = 0
    return out, kept.astype(np.int64)


def _ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Iterate in a thread, a few batches ahead; what the thread raises is raised here."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(maxsize=AHEAD)
    stopped = threading.Event()

    def put(value: Batch | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                ready.put(value, timeout=0.1)
                break
            except queue.Full:
                continue

    def work() -> None:
        try:
            for batch in batches:
                put(batch)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (batch := ready.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        stopped.set()
        thread.join()

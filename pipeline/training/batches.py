"""Training batches, read from a feature store as they are needed.

The content of a batch depends on (seed, epoch, step) alone, so a run that is interrupted and resumed sees the same
batches.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.text import Text, role_graphs
from pipeline.text.base import assemble, augment
from pipeline.training import sampling
from pipeline.training.source import ImageSource, Photographs

AHEAD = 2  # batches read while one is trained on
Read = TypeVar("Read")


@dataclass(frozen=True)
class Batch:
    """A batch of B pairs, or the share b of it that a process or a piece has."""

    items: torch.Tensor  # float16 [b, N, D]; with a backbone prepared pixels [b, S, S, 3]
    counts: torch.Tensor  # int64 [b]
    tokens: torch.Tensor  # int64 [b, T]
    lengths: torch.Tensor  # int64 [b]
    image_ids: torch.Tensor  # int64 [B], of the whole batch
    kept: torch.Tensor | None = None  # with a backbone, int64 [b, N'], the indices of the items that are pooled
    spans: torch.Tensor | None = None
    roles: torch.Tensor | None = None
    edges: torch.Tensor | None = None

    @property
    def graphs(self) -> role_graphs.GraphBatch | None:
        """The captions' role graphs, for a head that reads them."""
        if self.spans is None or self.roles is None or self.edges is None:
            return None
        return role_graphs.GraphBatch(self.spans, self.roles, self.edges)

    def same_image(self) -> torch.Tensor:
        """Mark, bool [B, B], where a row's image and a column's caption belong to one image, the diagonal included."""
        return self.image_ids[:, None] == self.image_ids[None, :]

    def split(self, pieces: int) -> "list[Batch]":
        """Divide the pairs into pieces, in order."""
        own = self._own()
        parts = zip(*(tensor.chunk(pieces) for tensor in own.values()), strict=True)
        return [replace(self, **dict(zip(own, part, strict=True))) for part in parts]

    def to(self, device: torch.device) -> "Batch":
        """Move everything but `image_ids` to a device."""
        return replace(self, **{name: own.to(device, non_blocking=True) for name, own in self._own().items()})

    def _own(self) -> dict[str, torch.Tensor]:
        """The tensors that are divided among pieces."""
        return {name: value for name, value in vars(self).items() if name != "image_ids" and value is not None}


def pad(captions: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad captions with 0 to the same length: int64 [B, T], and their lengths [B]."""
    lengths = np.array([len(caption) for caption in captions])
    tokens = np.zeros((len(captions), lengths.max()), dtype=np.int64)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = np.concatenate(captions)
    return torch.from_numpy(tokens), torch.from_numpy(lengths)


class TrainingBatches:
    """Captions with their images in random order, by default each once per epoch; an incomplete batch is dropped."""

    def __init__(self, source: ImageSource, split: Split, text: Text, batch_size: int, seed: int,
                 drop_items: float, drop_tokens: float, share: tuple[int, int] = (0, 1),
                 keep_first: bool = False, order: str = "uniform", steps: int | None = None,
                 graphs: bool = False) -> None:
        self.source, self.split, self.text = source, split, text
        self.batch_size, self.seed = min(batch_size, len(split.captions)), seed
        self.drop_items, self.drop_tokens, self.keep_first = drop_items, drop_tokens, keep_first
        self.order, self.steps = order, steps
        self.graphs = role_graphs.place(text, split.captions, split.role_graphs) if graphs else None
        rank, count = share
        if self.batch_size % count:
            raise InputError(f"a batch of {self.batch_size} pairs cannot be shared by {count} processes equally; set "
                             "training.NAME.batch_size to a multiple")
        self.own = slice(rank * self.batch_size // count, (rank + 1) * self.batch_size // count)
        self._memory: np.ndarray | None = None  # the memory of an earlier batch, into which the next one is read

    def __len__(self) -> int:
        return self.steps or len(self.split.captions) // self.batch_size

    def epoch(self, number: int) -> Iterator[Batch]:
        """Read the batches of an epoch, ahead of their use, in a thread."""
        return ahead(self.batch(number, step, captions) for step, captions in enumerate(self.drawn(number)))

    def drawn(self, epoch: int) -> Iterator[Ids]:
        """Draw the captions of each batch of an epoch."""
        if self.steps is None:
            order = sampling.order(self.split, self.order, np.random.default_rng((self.seed, epoch)))
        else:
            taken = self.steps * self.batch_size
            order = sampling.stretch(self.split, self.order, self.seed, epoch * taken, taken)
        return (order[step * self.batch_size:(step + 1) * self.batch_size] for step in range(len(self)))

    def batch(self, epoch: int, step: int, captions: Ids) -> Batch:
        """Read this process's part of a batch.

        Random draws are made for the whole batch, so they do not depend on how processes share it.
        """
        rng = np.random.default_rng((self.seed, epoch, step, 1))
        images = self.split.caption_image[captions]
        left_out, numbers = self._left_out(len(captions), rng), self._numbers(captions, rng)
        crops = rng.random((len(captions), 4))
        rows = self.split.store_rows[images[self.own]]
        kept = None
        if isinstance(self.source, Photographs):
            items = self.source.augmented(rows, crops[self.own])
            order, counts = kept_slots(np.full(len(rows), left_out.shape[1]), left_out[self.own])
            kept = torch.from_numpy(order)
        else:
            memory, self._memory = self._memory, None  # so that no other thread takes it
            read, counts = self.source.read(rows, memory)
            items, counts = drop(read, counts, left_out[self.own])
            self._memory = read  # `drop` has copied it
        tokens, lengths = pad(numbers[self.own])
        graphs: tuple[torch.Tensor, ...] = ()
        if self.graphs is not None:
            graphs = role_graphs.batch([self.graphs[caption] for caption in captions[self.own]], tokens.shape[1])
        return Batch(torch.from_numpy(items), torch.from_numpy(counts), tokens, lengths,
                     torch.from_numpy(self.split.image_ids[images]), kept, *graphs)

    def images(self, images: Ids, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Read further images of the split, items [M, N, D] and counts [M], some of their items left out."""
        left_out = self._left_out(len(images), rng)
        if not len(images):
            return torch.empty(0, 0, self.source.width), torch.empty(0, dtype=torch.int64)
        items, counts = drop(*self.source.read(self.split.store_rows[images]), left_out)
        return torch.from_numpy(items), torch.from_numpy(counts)

    def captions(self, captions: Ids, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Read further captions of the split, tokens [L, T] and lengths [L], some of their words changed."""
        if not len(captions):
            return torch.empty(0, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
        return pad(self._numbers(captions, rng))

    def _left_out(self, images: int, rng: np.random.Generator) -> np.ndarray:
        """Which items are left out, bool [images, N]."""
        left_out = rng.random((images, self.source.layout.items)) < self.drop_items
        left_out[:, 0] &= not self.keep_first
        return left_out

    def _numbers(self, captions: Ids, rng: np.random.Generator) -> list[list[int]]:
        """The token ids of captions, some of their words changed."""
        words = self.text.split(self.split.captions[captions].tolist())
        return [assemble(self.text, augment(one, self.drop_tokens, self.text, rng)) for one in words]


def kept_slots(counts: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order the slots, int64 [B, N'], those first that hold an item and are not left out, and count these, [B].

    If all would be left out, the first is kept.
    """
    keep = (np.arange(left_out.shape[1]) < counts[:, None]) & ~left_out
    keep[~keep.any(axis=1), 0] = True
    kept = keep.sum(axis=1)
    return np.argsort(~keep, axis=1, kind="stable")[:, :kept.max()], kept.astype(np.int64)


def drop(items: np.ndarray, counts: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave out some of each image's items [B, N, D] (size augmentation): what is left, padding zero, and counts."""
    order, kept = kept_slots(counts, left_out)
    out = items[np.arange(len(items))[:, None], order]
    out[np.arange(order.shape[1]) >= kept[:, None]] = 0
    return out, kept


def joined(*parts: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Concatenate padded batches, values [B, N, ...] with their counts [B]."""
    longest = max(values.shape[1] for values, _ in parts)
    whole = [torch.cat([values, values.new_zeros(len(values), longest - values.shape[1], *values.shape[2:])], 1)
             for values, _ in parts if len(values)]
    return torch.cat(whole), torch.cat([counts for _, counts in parts])


def ahead(batches: Iterator[Read]) -> Iterator[Read]:
    """Iterate in a thread, a few batches ahead; what the thread raises is raised here."""
    thread = ThreadPoolExecutor(1)
    try:
        reading = deque(thread.submit(next, batches, None) for _ in range(1 + AHEAD))
        while (batch := reading.popleft().result()) is not None:
            reading.append(thread.submit(next, batches, None))
            yield batch
    finally:
        thread.shutdown(cancel_futures=True)

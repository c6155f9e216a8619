"""Captions as a head reads them: numbers and, for a head that reads them, role graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.heads.base import HeadNetwork
from pipeline.heads.interaction import Interaction
from pipeline.manifest import Split
from pipeline.retrieval.blocks import Ids
from pipeline.text import Text, role_graphs
from pipeline.text.base import encode
from pipeline.training.batches import pad


@dataclass(frozen=True)
class Captions:
    """C captions as a head reads them."""

    numbers: Sequence[Sequence[int]]  # of each caption, see `text.base.encode`
    graphs: Sequence[role_graphs.Graph] | None = None  # of each caption; None for a head that reads none

    def batch(self, places: Ids, device: torch.device) -> tuple[Tensor, Tensor, role_graphs.GraphBatch | None]:
        """Put some captions together, on the device: tokens int64 [B, T], lengths [B], and role graphs."""
        tokens, lengths = pad([list(self.numbers[place]) for place in places])
        graphs = None
        if self.graphs is not None:
            of_batch = role_graphs.batch([self.graphs[place] for place in places], tokens.shape[1])
            graphs = role_graphs.GraphBatch(*(part.to(device) for part in of_batch))
        return tokens.to(device), lengths.to(device), graphs


def read(model: HeadNetwork, text: Text, captions: Sequence[str], graphs: Sequence[str] | None) -> Captions:
    """Read captions for a head."""
    reads_graphs = isinstance(model, Interaction) and model.reads_graphs
    return Captions(encode(text, captions), role_graphs.place(text, captions, graphs) if reads_graphs else None)


def of_split(model: HeadNetwork, text: Text, split: Split) -> Captions:
    """Read the captions of a split for a head."""
    return read(model, text, split.captions, split.role_graphs)

"""Scores by late interaction: captions as such a head reads them, compared with images in blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.heads.base import HeadNetwork, Interaction, Parts
from pipeline.manifest import Split
from pipeline.text import Text, role_graphs
from pipeline.text.base import encode
from pipeline.training.batches import pad
from pipeline.training.image_source import ItemReader


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


PRODUCTS = 1 << 24
"""Products of parts in memory at once: 64 MB."""

Scores = npt.NDArray[np.float32]


@torch.inference_mode()
def all_pairs(model: Interaction, source: ItemReader, rows: Ids, captions: Captions, batch_size: int,
              progress: Callable[[int], object] = lambda images: None) -> Scores:
    """Compare all images, rows int64 [I] of the source, with all C captions: float32 [I, C]."""
    model.eval()
    order = np.argsort([len(one) for one in captions.numbers], kind="stable")
    parts = [(places, _caption_parts(model, captions, places))
             for places in np.array_split(order, max(1, -(-len(order) // batch_size)))]
    scores = np.empty((len(rows), len(order)), np.float32)
    for start in range(0, len(rows), batch_size):
        batch = rows[start:start + batch_size]
        images = _image_parts(model, source, batch)
        for places, own in parts:
            step = max(1, PRODUCTS // model.products(images, own))
            found = [model.similarity(tuple(part[at:at + step] for part in images), own)
                     for at in range(0, len(batch), step)]
            scores[start:start + len(batch), places] = torch.cat(found).cpu().numpy()
        progress(start + len(batch))
    return scores


@torch.inference_mode()
def some_pairs(model: Interaction, source: ItemReader, rows: Ids, captions: Captions, caption: Ids,
               batch_size: int, progress: Callable[[int], object] = lambda pairs: None) -> Scores:
    """Compare images with captions one by one, float32 [P].

    Pairs of an image go together, so that it is projected once or twice.
    """
    model.eval()
    scores, order = np.empty(len(rows), np.float32), np.lexsort((caption, rows))
    for start in range(0, len(order), batch_size):
        batch = order[start:start + batch_size]
        images, image = np.unique(rows[batch], return_inverse=True)
        texts, text = np.unique(caption[batch], return_inverse=True)
        of_images, of_captions = _image_parts(model, source, images), _caption_parts(model, captions, texts)
        scores[batch] = model.pairs(tuple(part[image] for part in of_images),
                                    tuple(part[text] for part in of_captions)).cpu().numpy()
        progress(start + len(batch))
    return scores


def _image_parts(model: Interaction, source: ItemReader, rows: Ids) -> Parts:
    items, counts = source.read(rows)
    device = next(model.parameters()).device
    return model.image_parts(torch.from_numpy(items[:, :counts.max()]).to(device), torch.from_numpy(counts).to(device))


def _caption_parts(model: Interaction, captions: Captions, places: Ids) -> Parts:
    return model.caption_parts(*captions.batch(places, next(model.parameters()).device))

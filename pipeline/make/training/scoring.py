"""Embed images and captions with a head, or score pairs by one without embeddings: late
interaction, cross-encoder.
"""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch

from pipeline.foundation.evaluation.retrieval import Ids, Progress, Singles
from pipeline.foundation.manifest import Split
from pipeline.make.heads.base import FurtherBatch, HeadNetwork, Interaction, Parts
from pipeline.make.heads.cross import CrossEncoder, margins
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text
from pipeline.make.text.base import CaptionReader
from pipeline.make.training import optimizer
from pipeline.make.training.source import ImageSource, ItemReader

# Products of parts that late interaction has in memory at once: 64 MB.
PRODUCTS = 1 << 24
# Images whose input to a cross-encoder's first layer is kept at once, 55 kB each with 36 items of a
# width of 384.
BLOCK = 1024
# The least number of pairs in a cross-encoder's batch: with fewer, each takes longer.
LEAST = 256
# Images scored with all captions at once by a cross-encoder.
AT_ONCE = 64


def embed(
    model: HeadNetwork, source: ImageSource, split: Split, text: Text, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Embed a split's images and captions, in its order: unit vectors float32 [I, d] and [C, d]."""
    images = embed_images(model, source, split.store_rows, batch_size)
    reader = text.captions(split.captions, split.caption_ids)
    return images, embed_captions(model, reader, batch_size)


@torch.inference_mode()
def embed_images(
    model: HeadNetwork, source: ItemReader, rows: np.ndarray, batch_size: int
) -> np.ndarray:
    """Embed images, rows int64 [I] of the source: unit vectors, float32 [I, d]."""
    model.eval()
    vectors = []
    for start in range(0, len(rows), batch_size):
        batch = _images(model, source, rows[start : start + batch_size])
        vectors.append(model.embed_images(batch))
    return torch.cat(vectors).float().cpu().numpy()


def _images(model: HeadNetwork, source: ItemReader, rows: Ids) -> Side:
    items, counts = source.read(rows)
    if model.backbone is None:
        items = items[:, : counts.max()]
    return Side.of(items, counts).to(_device(model))


def _device(model: HeadNetwork) -> torch.device:
    return next(model.parameters()).device


@torch.inference_mode()
def embed_captions(model: HeadNetwork, captions: CaptionReader, batch_size: int) -> np.ndarray:
    """Embed C captions: unit vectors, float32 [C, d]."""
    model.eval()
    device = _device(model)
    # Captions of similar length go together: less padding. Their order is restored below.
    order = np.argsort(captions.lengths, kind="stable")
    vectors = []
    for start in range(0, len(order), batch_size):
        values, counts = captions.read(order[start : start + batch_size])
        batch = Side.of(values, counts).to(device)
        vectors.append(model.embed_captions(batch))
    whole = torch.cat(vectors).float()
    whole[order] = whole.clone()
    return whole.cpu().numpy()


@dataclass(frozen=True)
class Captions:
    """C captions as a head that scores pairs reads them."""

    reader: CaptionReader
    # What the head reads besides; None for a head that reads no more.
    further: FurtherBatch | None = None

    def batch(self, rows: Ids, device: torch.device) -> Side:
        """Read some captions, to the device."""
        values, counts = self.reader.read(rows)
        further: Parts = ()
        if self.further is not None:
            further = self.further(rows, values.shape[1])
        return Side.of(values, counts, further=further).to(device)


def read(
    model: HeadNetwork,
    text: Text,
    captions: Collection[str],
    inputs: Mapping[str, Collection[str]],
    ids: Ids | None = None,
) -> Captions:
    """Read captions, and of their further inputs, by column, the one that the head reads; ids int64
    [C] if they are of a manifest.
    """
    reader = text.captions(captions, ids)
    if not isinstance(model, Interaction) or model.caption_reading is None:
        return Captions(reader)
    given = inputs.get(model.caption_reading.column)
    return Captions(reader, model.caption_reading.read(text, captions, given))


@torch.inference_mode()
def all_pairs(
    model: Interaction, source: ItemReader, split: Split, text: Text, batch_size: int
) -> Singles:
    """Compare all images of a split with all its captions by late interaction: float32 [I, C]."""
    model.eval()
    captions = read(model, text, split.captions, split.caption_inputs, split.caption_ids)
    order = np.argsort(captions.reader.lengths, kind="stable")
    batches = max(1, math.ceil(len(order) / batch_size))
    parts = []
    for some in np.array_split(order, batches):
        parts.append((some, _caption_parts(model, captions, some)))
    scores = np.empty((len(split.store_rows), len(order)), np.float32)
    for start in range(0, len(scores), batch_size):
        batch = split.store_rows[start : start + batch_size]
        images = model.image_parts(_images(model, source, batch))
        for some, caption_parts in parts:
            step = max(1, PRODUCTS // model.products(images, caption_parts))
            compared = []
            for at in range(0, len(batch), step):
                image_parts = _take(images, slice(at, at + step))
                compared.append(model.similarity(image_parts, caption_parts))
            scores[start : start + len(batch), some] = torch.cat(compared).cpu().numpy()
    return scores


def _take(parts: Parts, rows: Ids | slice) -> Parts:
    return tuple(part[rows] for part in parts)


@torch.inference_mode()
def some_pairs(
    model: Interaction,
    source: ItemReader,
    rows: Ids,
    captions: Captions,
    caption: Ids,
    batch_size: int,
    progress: Progress = lambda pairs: None,
) -> Singles:
    """Compare images with captions one by one by late interaction, float32 [P]."""
    model.eval()
    scores = np.empty(len(rows), np.float32)
    order = np.lexsort((caption, rows))
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        images, image = np.unique(rows[batch], return_inverse=True)
        texts, text = np.unique(caption[batch], return_inverse=True)
        of_images = model.image_parts(_images(model, source, images))
        of_captions = _caption_parts(model, captions, texts)
        of_pairs = model.pairs(_take(of_images, image), _take(of_captions, text))
        scores[batch] = of_pairs.cpu().numpy()
        progress(start + len(batch))
    return scores


def _caption_parts(model: Interaction, captions: Captions, rows: Ids) -> Parts:
    return model.caption_parts(captions.batch(rows, _device(model)))


@torch.inference_mode()
def score_pairs(
    model: CrossEncoder,
    source: ItemReader,
    rows: Ids,
    captions: CaptionReader,
    caption: Ids,
    batch_size: int,
    autocast: Callable[[], AbstractContextManager[object]],
    progress: Progress = lambda pairs: None,
) -> Singles:
    """Score pairs by a cross-encoder, float32 [P]: the difference of the logits of a positive and
    of a negative.
    """
    model.eval()
    device = _device(model)
    images, image = np.unique(rows, return_inverse=True)
    block_of_pair = image // BLOCK
    order = np.lexsort((caption, captions.lengths[caption], block_of_pair))
    borders = np.flatnonzero(np.diff(block_of_pair[order])) + 1
    scores = np.empty(len(rows), np.float32)
    done = 0
    size = max(batch_size, LEAST)
    for block in np.split(order, borders):
        if not len(block):
            continue
        first = int(block_of_pair[block[0]]) * BLOCK
        with autocast():
            side = _images(model, source, images[first : first + BLOCK])
            items = model.items(side.values)
        for start in range(0, len(block), size):
            batch = block[start : start + size]
            different, place = np.unique(caption[batch], return_inverse=True)
            words = Side.of(*captions.read(different)).to(device)
            word_rows = torch.from_numpy(place).to(device)
            item_rows = torch.from_numpy(image[batch] - first).to(device)
            with autocast():
                logits = model.logits(
                    model.words(words.values)[word_rows],
                    words.counts[word_rows],
                    items[item_rows],
                    side.counts[item_rows],
                )
            scores[batch] = margins(logits).float().cpu().numpy()
            done += len(batch)
            progress(done)
    return scores


def score_all_by_cross(
    model: CrossEncoder,
    source: ItemReader,
    rows: Ids,
    reader: CaptionReader,
    batch_size: int,
    autocast: Callable[[], AbstractContextManager[object]],
) -> Singles:
    """Score images, rows int64 [I] of the source, with all C captions by a cross-encoder: float32
    [I, C].
    """
    images = len(rows)
    captions = len(reader.lengths)
    image = np.repeat(rows, captions)
    caption = np.tile(np.arange(captions), images)
    scores = score_pairs(model, source, image, reader, caption, batch_size, autocast)
    return scores.reshape(images, captions)


def all_by_cross(
    model: CrossEncoder, source: ItemReader, split: Split, text: Text, batch_size: int
) -> Singles:
    """Score all images of a split with all its captions by a cross-encoder, in float32: float32 [I,
    C].
    """
    captions = text.captions(split.captions, split.caption_ids)
    precision = optimizer.TrainingPrecision("fp32", _device(model).type)
    scores = np.empty((len(split.image_ids), len(captions.lengths)), np.float32)
    for start in range(0, len(scores), AT_ONCE):
        rows = split.store_rows[start : start + AT_ONCE]
        scores[start : start + len(rows)] = score_all_by_cross(
            model, source, rows, captions, batch_size, precision.autocast
        )
    return scores

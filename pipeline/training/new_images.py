"""Images that are in no store, as a head reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from pipeline.extractors import to_host
from pipeline.extractors.rebuild import extractor_of
from pipeline.store import FeatureStore
from pipeline.store.boxes import BoxedStore
from pipeline.training.image_source import ImageSource
from pipeline.training.photographs import Photographs


class NewImages:
    """Prepares images for a head: features made and rounded as its store's were, or pixels where it reads these."""

    def __init__(self, source: ImageSource, device: str = "cpu") -> None:
        self.source = source
        self.engine = source.engine if isinstance(source, Photographs) else extractor_of(_store(source), device)

    def items(self, images: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        """Prepare images: items [B, N, D], padding zero, or pixels [B, S, S, 3], and counts int64 [B]."""
        prepared = [self.engine.prepare(image) for image in images]
        if isinstance(self.source, Photographs):
            return torch.stack(prepared).numpy(), np.full(len(images), self.source.layout.items)
        store, sizes = _store(self.source), [image.size for image in images]
        found = to_host.bring(self.engine.extract(prepared, sizes), store.layout.dtype)
        counts = np.array([len(each.features) for each in found])
        items = np.zeros((len(images), store.layout.items, store.layout.dimension), store.layout.dtype)
        for row, each in zip(items, found, strict=True):
            row[:len(each.features)] = each.features
        if isinstance(store, BoxedStore):
            boxes = np.zeros((*items.shape[:2], 4), np.float32)
            for row, each in zip(boxes, found, strict=True):
                row[:len(each.features)] = each.extras.get("boxes", 0)
            items = store.join(items, counts, boxes, np.array(sizes, np.int32))
        return items, counts


def _store(source: ImageSource) -> FeatureStore:
    assert isinstance(source, FeatureStore)
    return source

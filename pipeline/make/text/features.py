"""Captions as stored features: a text side that reads what a frozen network made of captions,
computed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from pipeline.foundation.files import parsing
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import refusing
from pipeline.foundation.settings import Training
from pipeline.make.features.extractors.new_items import NewItems, padded
from pipeline.make.features.store import FeatureStore, ItemFormat, StoreError
from pipeline.make.features.store.dropping import drop
from pipeline.make.text.base import CaptionReader, LinearProjection, Text

FILE = "features.json"
AT_ONCE = 64  # new captions that the engine computes together


class FeatureText(Text):
    """Features of captions, and one linear layer from them to the joint space.

    made: how its values were made. store: of the data set's captions; None computes all captions by
        the store's engine.
    """

    def __init__(self, feature: str, made: ItemFormat, store: FeatureStore | None = None) -> None:
        self.feature = feature
        self.made = made
        self.store = store

    @classmethod
    def of(cls, store: FeatureStore) -> FeatureText:
        """Read the captions of a store."""
        if store.layout.kind != "captions":
            raise StoreError(
                f"{store.path}: holds {store.layout.kind}; the text encoder features reads captions"
            )
        return cls(store.path.stem, ItemFormat.of(store), store)

    @classmethod
    def load(cls, folder: Path) -> FeatureText:
        """Load features.json."""
        file = folder / FILE
        with refusing(
            (OSError, ValueError, KeyError, TypeError),
            f"{file}: does not say which features of captions the head reads; train it again",
        ):
            described = parsing.from_json(file.read_text(encoding="utf-8"))
            made = ItemFormat.from_record(described["made"])
            return cls(parsing.text(described["feature"]), made)

    def save(self, folder: Path) -> None:
        """Write features.json."""
        described = {"feature": self.feature, "made": self.made.recorded()}
        (folder / FILE).write_text(json.dumps(described), encoding="utf-8")

    def reading(self, store: FeatureStore) -> FeatureText:
        """Read the captions of another store, which must have been made alike."""
        self.made.require(store)
        return FeatureText(self.feature, self.made, store)

    @property
    def digest(self) -> str:
        """SHA-256 over the feature's name and how it was made."""
        return digest([self.feature, self.made.compared])

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The engine, and its network and weights where it says them."""
        described = {"engine": self.made.made["engine"]}
        settings = self.made.made.get("settings", {})
        for key in ("network", "weights"):
            if key in settings:
                described[key] = str(settings[key])
        if "weights" in self.made.place:
            described["place"] = self.made.place["weights"]
        return described

    def captions(self, texts: Collection[str], ids: np.ndarray | None = None) -> CaptionReader:
        """Find captions in the store by their ids; captions without ids, or without a store, are
        computed.
        """
        store = self.store
        if store is not None and ids is not None:
            stored = store.rows_of(ids)
            counts = store.counts[stored].astype(np.int64)
            return FeatureCaptions(lambda rows: store.read(stored[rows]), counts, store.slots)
        values, counts = self._computed(list(texts))
        return FeatureCaptions(lambda rows: (values[rows], counts[rows]), counts, self.made.items)

    def _computed(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Compute captions by the engine: their values [C, N, D] and counts [C]."""
        parts = [padded([], self.made)]
        for start in range(0, len(texts), AT_ONCE):
            together = texts[start : start + AT_ONCE]
            parts.append(self.engine.items(together))
        values, counts = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(counts)

    @cached_property
    def engine(self) -> NewItems:
        """The engine that made the features, loaded when it is first used."""
        return NewItems(self.made)

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """No word is unknown: the engine reads all."""
        return [], len(caption.split())

    def encoder(self, dimension: int, training: Training) -> nn.Module:
        """Build the linear layer."""
        return LinearProjection(self.made.dimension, dimension)


class FeatureCaptions:
    """Features of captions in a store or in memory.

    values_of: rows, int64 [B] -> values [B, N, D] and counts int64 [B]. lengths: the counts of all.
        slots: N.
    """

    def __init__(
        self,
        values_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        lengths: np.ndarray,
        slots: int,
    ) -> None:
        self._values_of = values_of
        self.lengths = lengths
        self._slots = slots

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read some captions, see `CaptionReader.read`."""
        values, counts = self._values_of(rows)
        return values[:, : counts.max(initial=0)], counts

    def altered(
        self, rows: np.ndarray, share: float, rng: np.random.Generator, part: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read some captions without a share of their vectors, see `CaptionReader.altered`."""
        left_out = rng.random((len(rows), self._slots)) < share
        return drop(*self._values_of(rows[part]), left_out[part])

    def unknown(self) -> np.ndarray:
        """No word is unknown, see `CaptionReader.unknown`."""
        return np.zeros((len(self.lengths), 2), np.int64)

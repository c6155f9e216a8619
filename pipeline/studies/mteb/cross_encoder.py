"""A cross-encoder or a late-interaction head as a cross-encoder of mteb."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from pipeline import training
from pipeline.files.images import upright_rgb
from pipeline.heads.base import Interaction
from pipeline.heads.cross import CrossEncoder
from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths
from pipeline.studies.mteb.encoder import meta
from pipeline.text.base import encode
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.scoring import read, score_pairs, some_pairs
from pipeline.training.source import NewImages

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta

    from pipeline.evaluation.retrieval.blocks import Ids

PAIRS = 256
"""Pairs that the network scores at once."""


@dataclass
class Images:
    """The different images of some pairs, each prepared once, for `score_pairs`."""

    new: NewImages
    places: dict[str, int] = field(default_factory=dict)
    kept: list[tuple[np.ndarray, int]] = field(default_factory=list)

    def row(self, image: Image.Image) -> int:
        """Look up an image, or prepare it."""
        key = hashlib.sha256(repr(image.size).encode() + image.tobytes()).hexdigest()
        if key not in self.places:
            items, counts = self.new.items([image])
            self.places[key] = len(self.kept)
            self.kept.append((items[0], int(counts[0])))
        return self.places[key]

    def read(self, rows: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Give images, see `ItemReader.read`."""
        return np.stack([self.kept[row][0] for row in rows]), np.array([self.kept[row][1] for row in rows])


class MtebCrossEncoder:
    """Scores pairs that mteb hands over. It has the methods of mteb's `CrossEncoderProtocol`.

    Args:
        paths: Where files lie.
        dataset: What the head was trained on.
        name: The head's name.
        device: A torch device.

    Raises:
        InputError: If the head, its store or the engine's weights are missing, if it does not score pairs, or if mteb
            is not installed.
    """

    mteb_model_meta: ModelMeta

    def __init__(self, paths: Paths, dataset: str, name: str, device: str = "cpu") -> None:
        self._head, source = training.open_by_name(paths, dataset, name, device)
        model = self._head.model
        if not (isinstance(model, Interaction)
                or (isinstance(model, CrossEncoder) and "scorer" in self._head.description)):
            raise InputError(f"{name}: embeds images and captions apart; make an encoder of it: MtebEncoder.of_head")
        self._new, self._device = NewImages(source, device), device
        self.mteb_model_meta = meta(f"{dataset}-{name}", self._head.checkpoint, "cross-encoder")

    def predict(self, inputs1: Iterable[Mapping[str, Any]], inputs2: Iterable[Mapping[str, Any]], **asked: Any
                ) -> np.ndarray:
        """Score pairs of an image and a text, in either order.

        Args:
            inputs1: Batches, with lists of images of any mode under `image` or of texts under `text`.
            inputs2: Their partners, one by one.
            asked: What mteb says of the task; no head reads it.

        Returns:
            Float32 [P].

        Raises:
            InputError: If they are not images on one side and texts on the other, one by one.
        """
        images, sides = Images(self._new), [_column(inputs) for inputs in (inputs1, inputs2)]
        by_kind = dict(sides)
        if set(by_kind) != {"image", "text"} or len(by_kind["image"]) != len(by_kind["text"]):
            raise InputError("expected as many images as texts, got " + " and ".join(
                f"{len(values)} of {kind}" for kind, values in sides))
        rows = np.array([images.row(upright_rgb(image)) for image in by_kind["image"]])
        texts = list(dict.fromkeys(by_kind["text"]))
        place = {text: number for number, text in enumerate(texts)}
        caption, model = np.array([place[text] for text in by_kind["text"]]), self._head.model
        if isinstance(model, Interaction):
            return some_pairs(model, images, rows, read(model, self._head.text, texts, None), caption, PAIRS)
        assert isinstance(model, CrossEncoder)
        autocast = TrainingPrecision("fp32", self._device).autocast
        return score_pairs(model, images, rows, encode(self._head.text, texts), caption, PAIRS, autocast)


def _column(inputs: Iterable[Mapping[str, Any]]) -> tuple[str, list[Any]]:
    """What one side holds, image or text, and all of it."""
    values: dict[str, list[Any]] = {}
    for batch in inputs:
        for kind in ("image", "text"):
            if kind in batch:
                values.setdefault(kind, []).extend(batch[kind])
    if len(values) != 1:
        raise InputError(f"a pair's side: expected an image or a text, got {' and '.join(values) or 'neither'}")
    return next(iter(values.items()))

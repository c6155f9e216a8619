"""Models for the library `mteb`, which measures models on its own tasks, and a split of your own
data as a task.

Heads and dual encoders are encoders of mteb; cross-encoders and late-interaction heads are
cross-encoders of mteb.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.images import upright_rgb
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.make import dual_encoders, training
from pipeline.make.training.photographs import PreparedImages

if TYPE_CHECKING:
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.models.model_meta import ModelMeta

    from pipeline.foundation.evaluation.retrieval import Direction, Ids
    from pipeline.foundation.manifest import Manifest

EmbedImages = Callable[[Sequence[Image.Image]], np.ndarray]
EmbedCaptions = Callable[[Sequence[str]], np.ndarray]
# Pairs that the network scores at once.
PAIRS = 256


def meta(name: str, revision: str, kind: str, **known: Any) -> ModelMeta:
    """Describe a model to mteb."""
    extras.require("mteb", "a model of mteb")
    from mteb.models.model_meta import ModelMeta

    described = {
        "name": f"vse-pipeline/{name}",
        "revision": revision[:40],
        "model_type": [kind],
        "modalities": ["image", "text"],
        "framework": ["PyTorch"],
    }
    return ModelMeta.create_empty(described | known)


class MtebEncoder:
    """Embeds B images (RGB) and captions as unit vectors [B, d]; has the methods of mteb's
    `EncoderProtocol`.
    """

    def __init__(
        self, mteb_model_meta: ModelMeta, images: EmbedImages, captions: EmbedCaptions
    ) -> None:
        self.mteb_model_meta = mteb_model_meta
        self._images = images
        self._captions = captions

    @classmethod
    def of_head(cls, paths: Paths, dataset: str, name: str, device: str = "cpu") -> MtebEncoder:
        """Make an encoder of a trained head, for images whose features are made as those of its
        store were.
        """
        head = training.Head.open(paths.head(dataset, name), device)
        if not head.embeds:
            raise InputError(
                f"{name}: scores pairs and embeds nothing; make a cross-encoder of it: MtebCrossEncoder"
            )
        prepared = head.new_images()
        dimension = head.model.dimension
        described = meta(f"{dataset}-{name}", head.checkpoint, "dense", embed_dim=dimension)
        return cls(
            described,
            lambda batch: head.embed_photographs(batch, prepared),
            lambda batch: head.embed_captions(batch, 32),
        )

    @classmethod
    def of_model(cls, model: str, prompt: str = "own", device: str = "cpu") -> MtebEncoder:
        """Make an encoder of a dual encoder KIND:FOLDER or KIND:NAME; {} in the prompt is the
        caption.
        """
        opened = dual_encoders.load(model, dual_encoders.Usage(prompt, device=device))
        name = model.replace(":", "/").rpartition("/")[2]
        revision = digest(dict(opened.files))
        described = meta(name, revision, "dense", max_tokens=opened.token_limit)

        def embed_images(batch: Sequence[Image.Image]) -> np.ndarray:
            prepared = [opened.prepare(image) for image in batch]
            return opened.embed_images(prepared)

        return cls(described, embed_images, opened.embed_captions)

    def encode(self, inputs: Iterable[Mapping[str, Any]], **asked: Any) -> np.ndarray:
        """Embed images, or texts, or both as the sum of their vectors, as mteb's own models do:
        float32 [n, d].

        inputs: batches, with lists of images of any mode under `image` or of texts under `text`.
            Sums are no unit vectors. asked: what mteb says of the task; no head reads it.
        """
        vectors = []
        for batch in inputs:
            sides = []
            if "image" in batch:
                images = [upright_rgb(image) for image in batch["image"]]
                sides.append(self._images(images))
            if "text" in batch:
                sides.append(self._captions(batch["text"]))
            if not sides:
                kinds = ", ".join(map(str, batch))
                raise InputError(f"inputs with {kinds}: expected image or text")
            vectors.append(np.sum(sides, axis=0))
        return np.concatenate(vectors)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> torch.Tensor:
        """The cosines, float32 [n, m], of all vectors [n, d] with all [m, d]."""
        return _unit(embeddings1) @ _unit(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> torch.Tensor:
        """The cosines, float32 [n], of vectors [n, d] one by one."""
        return (_unit(embeddings1) * _unit(embeddings2)).sum(1)


def _unit(vectors: Any) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.as_tensor(vectors, dtype=torch.float32), dim=1)


@dataclass
class Images:
    """The different images of some pairs, each prepared once, for `score_pairs`."""

    new: PreparedImages
    rows: dict[str, int] = field(default_factory=dict)  # by the digest of pixels
    items: list[np.ndarray] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def row(self, image: Image.Image) -> int:
        """Look up an image, or prepare it."""
        size = repr(image.size).encode()
        key = hashlib.sha256(size + image.tobytes()).hexdigest()
        if key not in self.rows:
            items, counts = self.new.items([image])
            self.rows[key] = len(self.items)
            self.items.append(items[0])
            self.counts.append(int(counts[0]))
        return self.rows[key]

    def read(self, rows: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Give images, see `ItemReader.read`."""
        items = np.stack([self.items[row] for row in rows])
        counts = np.array([self.counts[row] for row in rows])
        return items, counts


class MtebCrossEncoder:
    """Scores mteb's pairs by a trained head. It has the methods of mteb's
    `CrossEncoderProtocol`.
    """

    mteb_model_meta: ModelMeta

    def __init__(self, paths: Paths, dataset: str, name: str, device: str = "cpu") -> None:
        self._head = training.Head.open(paths.head(dataset, name), device)
        if self._head.compares is None:
            raise InputError(
                f"{name}: embeds images and captions apart; make an encoder of it: MtebEncoder.of_head"
            )
        self._new = self._head.new_images()
        self.mteb_model_meta = meta(f"{dataset}-{name}", self._head.checkpoint, "cross-encoder")

    def predict(
        self,
        inputs1: Iterable[Mapping[str, Any]],
        inputs2: Iterable[Mapping[str, Any]],
        **asked: Any,
    ) -> np.ndarray:
        """Score pairs of an image and a text, in either order, float32 [P]; batches as for
        `MtebEncoder.encode`.
        """
        sides = [_column(inputs1), _column(inputs2)]
        by_kind = dict(sides)
        pairs_images = by_kind.get("image", [])
        pairs_texts = by_kind.get("text", [])
        if len(by_kind) != 2 or len(pairs_images) != len(pairs_texts):
            received = " and ".join(f"{len(values)} of {kind}" for kind, values in sides)
            raise InputError(f"expected as many images as texts, got {received}")
        images = Images(self._new)
        rows = np.array([images.row(upright_rgb(image)) for image in pairs_images])
        texts = list(dict.fromkeys(pairs_texts))
        place = {text: number for number, text in enumerate(texts)}
        caption = np.array([place[text] for text in pairs_texts])
        read_texts = self._head.read(texts)
        return self._head.score_pairs(images, rows, read_texts, caption, PAIRS)


def _column(inputs: Iterable[Mapping[str, Any]]) -> tuple[str, list[Any]]:
    """The column of one side, "image" or "text", and all its values."""
    values: dict[str, list[Any]] = {}
    for batch in inputs:
        for kind in ("image", "text"):
            if kind in batch:
                values.setdefault(kind, []).extend(batch[kind])
    if len(values) != 1:
        received = " and ".join(values) or "neither"
        raise InputError(f"a pair's side: expected an image or a text, got {received}")
    return next(iter(values.items()))


def of_split(manifest: Manifest, split: str, direction: Direction) -> AbsTaskRetrieval:
    """Make a task of a split, whose `hit_rate_at_k` is R@K / 100 if no two candidates are equally
    similar.

    Equal captions are not merged, as mteb does for COCO. direction: "i2t" ranks captions for
    images.
    """
    import datasets
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    part = manifest.split(split)
    files = manifest.images["file"].to_numpy()[part.store_rows]
    paths = [str(manifest.images_folder / file) for file in files]
    image_ids = [f"image-{number}" for number in range(len(files))]
    images = datasets.Dataset.from_dict({"id": image_ids, "image": paths})
    images = images.cast_column("image", datasets.Image())
    caption_ids = [f"caption-{number}" for number in range(len(part.captions))]
    captions = datasets.Dataset.from_dict({"id": caption_ids, "text": list(part.captions)})
    relevant: dict[str, dict[str, int]] = {}
    for caption, image in enumerate(part.caption_image):
        if image < 0:
            continue  # a candidate that is right for no image
        query = image_ids[image]
        match = caption_ids[caption]
        if direction == "t2i":
            query, match = match, query
        relevant.setdefault(query, {})[match] = 1
    queries = images
    corpus = captions
    if direction == "t2i":
        queries, corpus = corpus, queries
    name = manifest.dataset
    described = TaskMetadata(
        name=f"{name}-{split}-{direction}",
        description=f"Split {split} of {name}.",
        type="Any2AnyRetrieval",
        dataset={"path": name, "revision": "local"},
        category=direction,
        modalities=["text", "image"],
        eval_splits=[split],
        eval_langs=["eng-Latn"],
        main_score="hit_rate_at_1",
    )

    class OfSplit(AbsTaskRetrieval):
        metadata = described

        def load_data(self, num_proc: int | None = None, **asked: Any) -> None:
            task: Any = {
                "corpus": corpus,
                "queries": queries,
                "relevant_docs": relevant,
                "top_ranked": None,
            }
            self.dataset = {"default": {split: task}}
            self.data_loaded = True

    return OfSplit()

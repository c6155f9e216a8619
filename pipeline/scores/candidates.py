"""What is measured: scores, and whose images and captions they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline import retrieval
from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.scores import contents
from pipeline.scores.similarity_store import SimilarityStore

if TYPE_CHECKING:
    from pipeline.retrieval import PerDirection, Relevance, Similarity
    from pipeline.retrieval.blocks import Ids
    from pipeline.scores.embedding_store import EmbeddingStore


@dataclass(frozen=True)
class Columns:
    """What a user says of a matrix that does not say it itself: a manifest and its split, or captions an image.

    None is what was not said: the split test, five captions an image.
    """

    manifest: Path | None = None
    split: str | None = None
    captions_per_image: int | None = None

    def of(self, shape: tuple[int, int]) -> tuple[Ids, Ids | None, Ids | None]:
        """caption_image [C], image ids [I] and caption ids [C]. Raises InputError where the shape is another."""
        if self.manifest is None:
            if self.split is not None:
                raise InputError("--split goes with --manifest")
            return retrieval.consecutive_captions(shape, self.captions_per_image or 5), None, None
        if self.captions_per_image is not None:
            raise InputError("--captions-per-image goes without --manifest, which says how many each image has")
        split = Manifest.load(self.manifest).split(self.split or "test")
        expected = (len(split.image_ids), len(split.caption_ids))
        if shape != expected:
            raise InputError(f"the matrix is {shape[0]} x {shape[1]}, the manifest's {split.name} split {expected[0]} "
                             f"images x {expected[1]} captions; rows are images, columns captions")
        return split.caption_image, split.image_ids, split.caption_ids


def owners(image_ids: Ids, caption_ids: Ids, caption_image: Ids) -> dict[int, int]:
    """Caption id -> the id of its image."""
    return dict(zip(caption_ids.tolist(), image_ids[caption_image].tolist(), strict=True))


def require_one_owner(first: str, theirs: dict[int, int], name: str, ours: dict[int, int]) -> None:
    """Raises InputError where a caption that two systems share is of one image here and of another there."""
    for caption, image in ours.items():
        if theirs.get(caption, image) != image:
            raise InputError(f"{name}: its caption {caption} is of image {image}, in {first} of image "
                             f"{theirs[caption]}; score both for one manifest")


@dataclass(frozen=True)
class Pool:
    """Scores [I, C], caption_image [C], and ids [I] and [C] where they are known; made_from as in similarity stores.

    relevance: what is right, where that is more than one image a caption.
    """

    name: str
    scores: Similarity | PerDirection
    caption_image: Ids
    image_ids: Ids | None = None
    caption_ids: Ids | None = None
    made_from: dict[str, Any] = field(default_factory=dict)
    relevance: Relevance | None = None

    @property
    def truth(self) -> Relevance | Ids:
        """What is right, as `retrieval.evaluate` takes it."""
        return self.caption_image if self.relevance is None else self.relevance

    @staticmethod
    def says_its_columns(path: Path) -> bool:
        """Whether the file is a similarity store, which holds the ids of its images and captions."""
        return (path / "similarity").is_dir()

    def image_of_caption(self) -> dict[int, int]:
        """Caption id -> image id. Raises InputError where ids are not known."""
        image_ids, caption_ids = self.require_ids()
        return owners(image_ids, caption_ids, self.caption_image)

    @classmethod
    def of_store(cls, store: SimilarityStore) -> Pool:
        return cls(store.path.stem, store.scores, store.caption_image, store.image_ids, store.caption_ids,
                   store.made_from)

    @classmethod
    def of_matrix(cls, path: Path, columns: Columns) -> Pool:
        """A similarity store, or any matrix [I, C] as `.npy` or zarr.

        Raises InputError where a store is not as it was written, or `columns` are said of one.
        """
        if cls.says_its_columns(path):
            if columns != Columns():
                raise InputError(f"{path}: says itself which captions its columns are; leave out --manifest, --split "
                                 "and --captions-per-image")
            return cls.of_store(SimilarityStore.open(path).check())
        scores = retrieval.as_similarity(path)
        return cls(path.stem, scores, *columns.of(scores.shape))

    @classmethod
    def of_embeddings(cls, images: Path, captions: Path, columns: Columns) -> Pool:
        """Two `.npy` files [I, D] and [C, D], multiplied block by block."""
        scores = retrieval.Embeddings(images, captions)
        return cls(images.stem, scores, *columns.of(scores.shape))

    @classmethod
    def of_enlarged(cls, store: EmbeddingStore, distractors: Sequence[EmbeddingStore]) -> Pool:
        """A head's queries among their own images and captions and all those of the distractors, from embeddings.

        Raises InputError where a store is of another head, holds images that are in the pool already, or is not as it
        was written.
        """
        from pipeline.retrieval.enlarged import Enlarged

        for each in (store, *distractors):
            contents.require(each.path, each.made_from)
        held = {(store.made_from["dataset"], image) for image in store.image_ids.tolist()}
        for each in distractors:
            if each.checkpoints != store.checkpoints:
                raise InputError(f"{each.path}: holds the vectors of another head than {store.path.name}; embed these "
                                 "images with the same head, see `pipeline embed`")
            more = {(each.made_from["dataset"], image) for image in each.image_ids.tolist()}
            if held & more:
                raise InputError(f"{each.path}: {len(held & more)} of its images are in the pool already, "
                                 f"{min(held & more)[1]} for one")
            held |= more
        scores = Enlarged(store.embeddings(), [each.embeddings() for each in distractors])
        return cls(store.path.stem, scores, scores.caption_image(store.caption_image), made_from=store.made_from)

    def require_ids(self) -> tuple[Ids, Ids]:
        """Image ids [I] and caption ids [C]. Raises InputError where they are not known."""
        if self.image_ids is None or self.caption_ids is None:
            raise InputError(f"{self.name}: which images and captions it is of is not known; name its --manifest")
        return np.asarray(self.image_ids), np.asarray(self.caption_ids)


"""A pool of candidates: scores, and the images and captions of their rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline import retrieval
from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.retrieval.collection import Collection
from pipeline.scores import embedding_store
from pipeline.scores.embedding_store import EmbeddingStore
from pipeline.scores.similarity_store import SimilarityStore, holds_scores

if TYPE_CHECKING:
    from pipeline.retrieval import PerDirection, Protocol, Relevance, Similarity
    from pipeline.retrieval.blocks import Ids
    from pipeline.retrieval.embeddings import Embedding
    from pipeline.statistics.languages import Languages


@dataclass(frozen=True)
class Columns:
    """The user's description of a matrix without ids: a manifest and its split, or captions an image.

    Attributes:
        manifest: The manifest's file; None if not given.
        split: The split; None for test.
        captions_per_image: How many captions each image has, in the images' order; None for five.
    """

    manifest: Path | None = None
    split: str | None = None
    captions_per_image: int | None = None

    @property
    def known_split(self) -> str | None:
        """The split that the manifest is asked for; None without a manifest."""
        return None if self.manifest is None else self.split or "test"

    def of(self, shape: tuple[int, int]) -> tuple[Ids, Ids | None, Ids | None]:
        """Resolve the description for a matrix."""
        if self.manifest is None:
            each = self.captions_per_image or 5
            if shape[0] == each * shape[1] and each > 1:
                raise InputError(f"the matrix is {shape[0]} x {shape[1]}, captions x images: it is transposed; save "
                                 "its transpose, one row an image")
            if self.split is not None:
                raise InputError("--split goes with --manifest")
            return retrieval.consecutive_captions(shape, self.captions_per_image or 5), None, None
        if self.captions_per_image is not None:
            raise InputError("--captions-per-image goes without --manifest, which says how many each image has")
        split = Manifest.load(self.manifest).split(self.split or "test")
        expected = (len(split.image_ids), len(split.caption_ids))
        if shape == expected[::-1] != expected:
            raise InputError(f"the matrix is {shape[0]} x {shape[1]}, captions x images of the manifest's {split.name} "
                             "split: it is transposed; save its transpose, one row an image")
        if shape != expected:
            raise InputError(f"the matrix is {shape[0]} x {shape[1]}, the manifest's {split.name} split {expected[0]} "
                             f"images x {expected[1]} captions; rows are images, columns captions")
        return split.caption_image, split.image_ids, split.caption_ids


def owners(image_ids: Ids, caption_ids: Ids, caption_image: Ids) -> dict[int, int]:
    """Map captions to their images."""
    return dict(zip(caption_ids.tolist(), image_ids[caption_image].tolist(), strict=True))


def require_one_owner(first: str, theirs: dict[int, int], name: str, ours: dict[int, int]) -> None:
    """Check that two systems assign their common captions to the same images."""
    for caption, image in ours.items():
        if theirs.get(caption, image) != image:
            raise InputError(f"{name}: its caption {caption} is of image {image}, in {first} of image "
                             f"{theirs[caption]}; score both for one manifest")


@dataclass(frozen=True)
class Pool:
    """Scores with their images and captions.

    Attributes:
        name: The system's name.
        scores: The similarities [I, C].
        caption_image: Int64 [C], each caption's image as a row.
        image_ids: Int64 [I]; None if unknown.
        caption_ids: Int64 [C]; None if unknown.
        made_from: As in similarity stores; {} if unknown.
        relevance: The right answers, where a caption has more than one image; None otherwise.
        languages: Each caption's language as text [C]; None where captions have none.
        folder: The store that it was read from; None for other sources.
        protocol: The only one by which a reranked system can be measured; None for any.
        split: The split that is ranked; None if it is unknown.
    """

    name: str
    scores: Similarity | PerDirection
    caption_image: Ids
    image_ids: Ids | None = None
    caption_ids: Ids | None = None
    made_from: dict[str, Any] = field(default_factory=dict)
    relevance: Relevance | None = None
    languages: Languages | None = None
    folder: Path | None = None
    protocol: Protocol | None = None
    split: str | None = None

    def vectors(self) -> tuple[Embedding, Embedding] | None:
        """Find the embeddings behind the scores."""
        if isinstance(self.scores, retrieval.Embeddings):
            return self.scores.images, self.scores.captions
        if self.folder is None or not (self.folder / "image_embeddings").is_dir():
            return None
        store = EmbeddingStore.open(self.folder)
        if (len(store.image_ids), len(store.caption_ids)) != self.scores.shape:
            return None  # a part of the store's images and captions
        return store.vectors("image"), store.vectors("caption")

    @property
    def truth(self) -> Relevance | Ids:
        """The right answers, as `retrieval.evaluate` takes them."""
        return self.caption_image if self.relevance is None else self.relevance

    def collection(self, captions: Sequence[str] | None = None) -> Collection:
        """Collect the ids for judgements."""
        images, ids = self.require_ids()
        return Collection(images, ids, self.caption_image, captions)

    @staticmethod
    def says_its_columns(path: Path) -> bool:
        """Recognise a store of similarities or embeddings, which holds the ids of its images and captions."""
        return holds_scores(path) or embedding_store.holds_no_scores(path)

    def image_of_caption(self) -> dict[int, int]:
        """Map captions to their images."""
        image_ids, caption_ids = self.require_ids()
        return owners(image_ids, caption_ids, self.caption_image)

    @classmethod
    def of_store(cls, store: SimilarityStore) -> Pool:
        """Take the scores of an open store."""
        return cls(store.path.stem, store.scores, store.caption_image, store.image_ids, store.caption_ids,
                   store.made_from, folder=store.path, protocol=store.protocol, split=store.made_from["split"])

    @classmethod
    def of_matrix(cls, path: Path, columns: Columns) -> Pool:
        """Open a similarity store, or any matrix [I, C] as `.npy` or zarr."""
        if cls.says_its_columns(path):
            if columns != Columns():
                raise InputError(f"{path}: is a similarity store, which holds the ids of its captions; leave out "
                                 "--manifest, --split "
                                 "and --captions-per-image")
            return cls.of_embedded(path) if embedding_store.holds_no_scores(path) else cls.of_store(
                SimilarityStore.open(path).check())
        scores = retrieval.as_similarity(path)
        return cls(path.stem, scores, *columns.of(scores.shape), split=columns.known_split)

    @classmethod
    def of_embedded(cls, path: Path) -> Pool:
        """Take the inner products of an embedding store's vectors, computed block by block."""
        store = EmbeddingStore.open(path)
        vectors = store.embeddings()
        scores = retrieval.Embeddings(vectors.images, vectors.captions, double=True)
        return cls(path.stem, scores, store.caption_image, store.image_ids, store.caption_ids, store.made_from,
                   folder=path, split=store.made_from["split"])

    @classmethod
    def of_embeddings(cls, images: Path, captions: Path, columns: Columns) -> Pool:
        """Take the inner products of two embedding matrices, computed block by block."""
        scores = retrieval.Embeddings(images, captions)
        return cls(images.stem, scores, *columns.of(scores.shape), split=columns.known_split)

    @classmethod
    def of_enlarged(cls, store: EmbeddingStore, distractors: Sequence[EmbeddingStore]) -> Pool:
        """Rank a head's queries among their own images and captions and those of distractors, from embeddings."""
        from pipeline.retrieval.enlarged import Enlarged

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
        return cls(store.path.stem, scores, scores.caption_image(store.caption_image), made_from=store.made_from,
                   split=store.made_from["split"])

    def require_manifest(self, manifest: Manifest) -> None:
        """Check that a manifest is the one that the scores are of."""
        if self.made_from.get("manifest", manifest.digest) != manifest.digest:
            raise InputError(f"{self.name}: was scored for another manifest of {manifest.dataset} than there is now; "
                             "score again")

    def manifest(self, columns: Columns, place: Callable[[str], Path], needed: bool = False) -> Manifest | None:
        """Load the manifest of the images and captions."""
        if columns.manifest is not None:
            return Manifest.load(columns.manifest)
        dataset = self.made_from.get("dataset")
        return Manifest.load(place(dataset)) if dataset and (needed or self.made_from.get("languages")) else None

    def require_ids(self) -> tuple[Ids, Ids]:
        """Return the ids, which must be known."""
        if self.image_ids is None or self.caption_ids is None:
            raise InputError(f"{self.name}: its images and captions are unknown; name its --manifest")
        return np.asarray(self.image_ids), np.asarray(self.caption_ids)


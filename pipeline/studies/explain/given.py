"""What is known of a system's images and captions, and which measurements that allows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.evaluation.judgements.rows import same_text, texts_of
from pipeline.evaluation.retrieval import Collection, Embeddings, Ids, Relevance, Scores
from pipeline.evaluation.retrieval.owners import numbered, renumbered
from pipeline.evaluation.retrieval.similarity import Selection
from pipeline.parts.errors import InputError
from pipeline.studies.explain.differences import Measurement

# The images of a fold where the protocol has none: COCO's "1K".
FOLD = 1000

Vectors = tuple[np.ndarray, np.ndarray]
Pool = list[tuple[Ids, Ids]]


@dataclass(frozen=True, eq=False)
class Given:
    """One pool: scores of I images and C captions, and what is known of them."""

    name: str
    owner: Ids  # int64 [C], the image of each caption; -1 for none
    scores: Scores  # [I, C]
    captions: Sequence[str] | None = None  # the texts; None where they are not known
    judged: Mapping[str, Callable[[], Relevance]] = field(
        default_factory=dict
    )  # right pairs by other judgements
    embed: Callable[[int], np.ndarray] | None = (
        None  # embeds captions cut at so many tokens: [C, D]
    )
    longest: int = 0  # how many tokens of the longest caption it reads
    fold: int = FOLD  # how many images a fold has

    @cached_property
    def vectors(self) -> Vectors | None:
        """Those of which scores are products, [I, D] and [C, D], not divided by lengths; None for
        other scores.
        """
        scores: Any = self.scores
        rows, columns = slice(None), slice(None)
        if isinstance(scores, Selection):
            scores, rows, columns = scores.source, scores.images, scores.captions
        if not isinstance(scores, Embeddings):
            return None
        images, captions = (
            getattr(each, "vectors", each) for each in (scores.images, scores.captions)
        )
        return np.asarray(images[rows], scores.dtype), np.asarray(captions[columns], scores.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions."""
        return self.scores.shape

    @property
    def images(self) -> int:
        """How many images there are."""
        return self.scores.shape[0]

    @property
    def cells(self) -> int:
        """How many scores there are."""
        return self.images * len(self.owner)

    @property
    def folds(self) -> int:
        """Into how many folds the images are cut; 1 where they cannot be."""
        return self.images // self.fold if self.images % self.fold == 0 else 1

    def lacks(self, wanted: Measurement) -> str:
        """What a measurement needs that is not known, in words; "" where nothing is missing."""
        if wanted.tokens is not None and self.embed is None:
            return "an encoder and captions"
        if self.vectors is None and (wanted.vectors != "given" or wanted.unit):
            return "vectors"
        if self.captions is None and wanted.right in ("equal", "merged"):
            return "the captions' texts"
        if wanted.right not in ("own", "equal", "merged") and wanted.right not in self.judged:
            return "judgements"
        return ""

    def is_idle(self, wanted: Measurement) -> bool:
        """Whether a choice of a measurement cannot change anything here."""
        each = np.bincount(self.owner[self.owner >= 0], minlength=self.images)
        paired = bool(each.min() > 0 and (self.owner >= 0).all())
        return (
            (wanted.tokens is not None and wanted.tokens >= self.longest)
            or (wanted.captions is not None and each.max() <= wanted.captions)
            or (not wanted.unpaired and paired)
            or (wanted.folds is None and wanted.fold is not None)
            or (wanted.folds is not None and (self.folds < 2 or (wanted.fold or 0) >= self.folds))
            or (wanted.hits != "any" and (each.max() < 2 or wanted.right != "own"))
            or (wanted.hits == "pairs" and each.min() != each.max())
        )

    def relevance(self, right: str) -> Relevance:
        """The right pairs of all images and captions, by one of the choices of
        `Measurement.right`.
        """
        if right in self.judged:
            return self.judged[right]()
        if right == "own":
            return Relevance.of_owner(self.owner, self.images)
        merged = same_text(self._collection)[1].t2i
        t2i = merged.restricted(texts_of(self._collection), np.arange(self.images), self.images)
        return Relevance.of_captions(t2i, self.images, self.owner)

    def pool(self, wanted: Measurement) -> Pool:
        """The images and captions that are ranked, for each fold: int64 rows and columns."""
        rows, columns = np.arange(self.images), np.arange(len(self.owner))
        if wanted.right == "merged":
            columns = same_text(self._collection)[0]
        if wanted.captions is not None:
            columns = columns[numbered(self.owner[columns], self.images) < wanted.captions]
        if not wanted.unpaired:
            columns = columns[self.owner[columns] >= 0]
            rows = np.unique(self.owner[columns])
        if wanted.folds is None:
            return [(rows, columns)]
        if len(rows) % self.fold:
            raise InputError(f"{len(rows)} images cannot be cut into folds of {self.fold}")
        count = len(rows) // self.fold
        place = np.arange(len(rows))
        fold = place // self.fold if wanted.folds == "consecutive" else place % count
        of_caption = renumbered(self.owner[columns], rows, self.images)
        fold_of = np.where(of_caption < 0, -1, fold[of_caption])
        return [
            (rows[fold == each], columns[(fold_of < 0) | (fold_of == each)])
            for each in range(count)
        ]

    @property
    def _collection(self) -> Collection:
        return Collection(
            np.arange(self.images), np.arange(len(self.owner)), self.owner, self.captions
        )

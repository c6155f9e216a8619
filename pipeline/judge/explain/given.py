"""What is known of a system's images and captions, and which measurements that allows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.judgements.rows import same_text, texts_of
from pipeline.foundation.evaluation.retrieval import Collection, Embeddings, Ids, Relevance, Scores
from pipeline.foundation.evaluation.retrieval.lists import Lists
from pipeline.foundation.evaluation.retrieval.owners import numbered, renumbered
from pipeline.foundation.evaluation.retrieval.placements import Placing
from pipeline.foundation.evaluation.retrieval.ranks import KnownRanks
from pipeline.foundation.evaluation.retrieval.similarity import PerDirection, Selection
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain.differences import Measurement
from pipeline.judge.explain.of_tools import OfTools
from pipeline.judge.systems.scores.system import IMAGES_AND_CAPTIONS

# The images of a fold where the protocol has none: COCO's "1K".
FOLD = 1000

WAYS = ("i2t", "t2i")
# Lengths that differ by a smaller share are one: vectors may have been rounded to two bytes.
EVEN = 0.01
# What hits lack, see `Given.lacks`.
SCORES = "the scores"
# Reads all choices of a measurement.
CHOICES = attrgetter(*Measurement.__dataclass_fields__)

Vectors = tuple[np.ndarray, np.ndarray]
Pool = list[tuple[Ids, Ids]]
# What reads another pool; None where it would be the same.
Read: TypeAlias = Callable[[], "Given | None"]


@dataclass(frozen=True, eq=False)
class Given:
    """One pool: scores of I images and C captions, and what is known of them."""

    name: str
    owner: Ids  # int64 [C], the image of each caption; -1 for none
    scores: Scores  # [I, C]
    captions: Sequence[str] | None = None  # the texts; None where they are not known
    # Of each caption: equal texts in two languages are two captions; None for one language.
    languages: npt.NDArray[np.str_] | None = None
    # Right pairs by other judgements.
    judged: Mapping[str, Callable[[], Relevance]] = field(default_factory=dict)
    # Embeds captions cut at so many tokens: [C, D].
    embed: Callable[[int], np.ndarray] | None = None
    longest: int = 0  # how many tokens of the longest caption it reads
    # Whether captions have images of their own; else `owner` has the first one that is right.
    has_owners: bool = True
    fold: int = FOLD  # how many images a fold has
    # A run with judgements, as other tools measure it.
    of_tools: OfTools | None = None
    sides: tuple[str, str] = IMAGES_AND_CAPTIONS  # what rows and columns are called
    unlisted: int = 0  # Judged queries that a run does not list, which are not measured
    others: tuple["Given", ...] = ()  # the same pool by other seeds of the system
    # By a reading's name, see `READINGS`: the pool of the same files as others read them.
    otherwise: Mapping[str, "Read"] = field(default_factory=dict)

    @cached_property
    def vectors(self) -> Vectors | None:
        """Those of which scores are products, [I, D] and [C, D], not divided by lengths; None for
        other scores.
        """
        scores: Any = self.scores
        image_rows: Any = slice(None)
        caption_rows: Any = slice(None)
        if isinstance(scores, Selection):
            image_rows = scores.images
            caption_rows = scores.captions
            scores = scores.source
        if not isinstance(scores, Embeddings):
            return None
        images: Any = getattr(scores.images, "vectors", scores.images)
        captions: Any = getattr(scores.captions, "vectors", scores.captions)
        image_vectors = np.asarray(images[image_rows], scores.dtype)
        caption_vectors = np.asarray(captions[caption_rows], scores.dtype)
        return image_vectors, caption_vectors

    @cached_property
    def is_of_one_length(self) -> bool:
        """Whether the vectors of each side have one length, so that dividing by it changes
        nothing.
        """
        for vectors in self.vectors or ():
            lengths = np.linalg.norm(np.asarray(vectors, np.float64), axis=1)
            if np.ptp(lengths) > EVEN * lengths.max():
                return False
        return self.vectors is not None

    @cached_property
    def ways(self) -> tuple[str, ...]:
        """The directions that every seed ranks: lists of the best may be of one."""
        ways: tuple[str, ...] = WAYS
        for seed in self.seeds:
            if isinstance(seed.scores, Lists):
                listed = seed.scores.listed
                ways = tuple(way for way in ways if way in listed)
        return ways

    @cached_property
    def is_listed(self) -> bool:
        """Whether scores are lists of each query's candidates."""
        return any(isinstance(seed.scores, Lists) for seed in self.seeds)

    @cached_property
    def is_of_hits(self) -> bool:
        """Whether of some scores nothing but ranks is known."""
        return any(isinstance(seed.scores, KnownRanks) for seed in self.seeds)

    @cached_property
    def is_cut(self) -> bool:
        """Whether scores are lists of each query's best candidates alone."""
        lists = [seed.scores for seed in self.seeds if isinstance(seed.scores, Lists)]
        return not all(each.are_whole for each in lists)

    @property
    def seeds(self) -> tuple["Given", ...]:
        """The pool by each seed."""
        return (self, *self.others)

    def read(self, reading: str) -> "Given | None":
        """The pool of another reading, this one for ""; None where the files have no such."""
        if not reading:
            return self
        if reading not in self._readings:
            self._readings[reading] = self._read(reading)
        return self._readings[reading]

    @cached_property
    def _readings(self) -> dict[str, "Given | None"]:
        """What `read` gave."""
        return {}

    @cached_property
    def refused(self) -> dict[str, str]:
        """The readings that the files have and `read` could not give, and why."""
        return {}

    def _read(self, reading: str) -> "Given | None":
        """The pool of another reading by every seed."""
        if any(reading not in seed.otherwise for seed in self.seeds):
            return None
        pools: list[Given] = []
        for seed in self.seeds:
            try:
                pool = seed.otherwise[reading]()
            except InputError as error:
                self.refused[reading] = str(error)
                return None
            if pool is None:
                return None
            pools += pool.seeds
        first, *others = pools
        return replace(first, others=tuple(others))

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
        return self._folds(self.images, None)

    def _folds(self, images: int, parts: int | None) -> int:
        """Into how many folds so many images are cut: into `parts`, or into those of the known
        size.
        """
        if parts is not None and images % parts == 0:
            return parts
        if parts is not None or images % self.fold:
            return 1
        return images // self.fold

    @cached_property
    def _captions_of_each(self) -> Ids:
        """How many captions each image has: int64 [I]."""
        return np.bincount(self.owner[self.owner >= 0], minlength=self.images)

    @cached_property
    def _is_paired(self) -> bool:
        """Whether every image has captions, and every caption an image."""
        return bool(self._captions_of_each.min() > 0 and (self.owner >= 0).all())

    def lacks(self, wanted: Measurement) -> str:
        """What a measurement needs that is not known, in words; "" where nothing is missing."""
        if self.is_of_hits and self._needs_scores(wanted):
            return SCORES
        if wanted.tokens is not None and self.embed is None:
            return "an encoder and captions"
        has_vectors = all(seed.vectors is not None for seed in self.seeds)
        if not has_vectors and (wanted.vectors != "given" or wanted.unit != "none"):
            return "vectors"
        if wanted.rescored and isinstance(self.scores, PerDirection | Placing):
            return "one matrix of scores"
        if self.is_listed and self._needs_all(wanted):
            return "every pair's score"
        if wanted.tool and any(seed.of_tools is None for seed in self.seeds):
            return "lists with ids and judgements"
        if len(self.ways) < len(WAYS) and wanted.directions != "own":
            return "both directions"
        if wanted.right == "own" and not self.has_owners:
            return "captions' own images"
        if self.captions is None and wanted.right in ("equal", "merged"):
            return "the captions' texts"
        if wanted.right not in ("own", "equal", "merged") and wanted.right not in self.judged:
            return "judgements"
        return ""

    def _needs_scores(self, wanted: Measurement) -> bool:
        """Whether a measurement of hits asks for what scores alone tell, whatever is ranked."""
        as_given = replace(wanted, seed=None)
        if as_given.of("vectors", "scores") != Measurement().of("vectors", "scores"):
            return True
        if wanted.right != "own" or wanted.ties in ("first", "last"):
            return True
        return self._effective(wanted).hits != "any"

    def _needs_all(self, wanted: Measurement) -> bool:
        """Whether a measurement asks for scores that lists of the best may not have.

        Among fewer candidates, those behind the listed ones are among the best, too.
        """
        if wanted.scores != "given" and self.is_cut:
            return True
        if wanted.joined or wanted.ties in ("first", "last"):
            return True
        effective = self._effective(wanted)
        if effective.hits != "any" or effective.folds is not None or not effective.unpaired:
            return True
        has_fewer_captions = effective.captions is not None or wanted.right == "merged"
        return has_fewer_captions and "i2t" in self.ways

    def is_idle(self, wanted: Measurement, protocol: Measurement) -> bool:
        """Whether a choice in which a measurement differs from the protocol's cannot be made here,
        or changes nothing.
        """
        if wanted.reading and wanted.seed is not None:
            return True  # the mean of a benchmark's parts is of several, as that of seeds
        if self.sides != IMAGES_AND_CAPTIONS and wanted.captions != protocol.captions:
            return True  # the queries of a candidate are in no order
        images = self.images
        if not wanted.unpaired:
            images = int(np.count_nonzero(self._captions_of_each))
        if wanted.tool and self.of_tools is not None and self.of_tools.is_idle(wanted.tool):
            return True
        if wanted.folds is not None and self._folds(images, wanted.parts) < 2:
            return True
        effective = self._effective(wanted)
        if protocol not in self._effective_protocols:
            self._effective_protocols[protocol] = self._effective(protocol)
        of_protocol = self._effective_protocols[protocol]
        for choice, own, has_effect, own_effect in zip(
            CHOICES(wanted),
            CHOICES(protocol),
            CHOICES(effective),
            CHOICES(of_protocol),
            strict=True,
        ):
            if choice != own and (choice != has_effect or choice == own_effect):
                return True
        return False

    @cached_property
    def _effective_protocols(self) -> dict[Measurement, Measurement]:
        """What `_effective` gave for protocols, with which many measurements are compared."""
        return {}

    def _effective(self, wanted: Measurement) -> Measurement:
        """The measurement without choices that change nothing here."""
        captions = wanted.captions
        if captions is not None and captions >= self._captions_of_each.max():
            captions = None
        tokens = wanted.tokens
        if tokens is not None and tokens >= self.longest:
            tokens = None
        fold = wanted.fold
        if fold is not None and (wanted.folds is None or fold >= self.folds):
            fold = None
        seed = wanted.seed
        if not self.others or (seed is not None and seed >= len(self.seeds)):
            seed = None
        parts = wanted.parts
        if parts is not None:
            fold = None
            if self.images == parts * self.fold:
                parts = None
        hits = wanted.hits
        captions_of_each = self._captions_of_each
        if captions is not None:
            captions_of_each = np.minimum(captions_of_each, captions)
        if wanted.right != "own" or captions_of_each.max() < 2:
            hits = "any"
        if hits == "pairs" and captions_of_each.min() != captions_of_each.max():
            hits = "any"
        unpaired = wanted.unpaired or self._is_paired
        averaged = wanted.averaged
        is_without_effect = {"judged": not self.unlisted, "found": not self.is_listed}
        if is_without_effect.get(averaged):
            averaged = "queries"
        return replace(
            wanted,
            seed=seed,
            captions=captions,
            tokens=tokens,
            fold=fold,
            parts=parts,
            hits=hits,
            averaged=averaged,
            unpaired=unpaired,
        )

    def relevance(self, right: str) -> Relevance:
        """The right pairs of all images and captions, by one of the choices of
        `Measurement.right`.
        """
        if right in self.judged:
            return self.judged[right]()
        if right == "own":
            return Relevance.of_owner(self.owner, self.images)
        _, relevance = same_text(self._collection, self.languages)
        texts = texts_of(self._collection, self.languages)
        t2i = relevance.t2i.restricted(texts, np.arange(self.images), self.images)
        return Relevance.of_captions(t2i, self.images, self.owner)

    def pool(self, wanted: Measurement) -> Pool:
        """The images and captions that are ranked, for each fold: int64 rows and columns."""
        rows = np.arange(self.images)
        columns = np.arange(len(self.owner))
        if wanted.right == "merged":
            columns, _ = same_text(self._collection, self.languages)
        if wanted.captions is not None:
            caption_of_image = numbered(self.owner[columns], self.images)
            columns = columns[caption_of_image < wanted.captions]
        if not wanted.unpaired:
            columns = columns[self.owner[columns] >= 0]
            rows = np.unique(self.owner[columns])
        if wanted.folds is None:
            return [(rows, columns)]
        folds = self._folds(len(rows), wanted.parts)
        size = len(rows) // folds
        if wanted.parts is None and size != self.fold:
            raise InputError(f"{len(rows)} images cannot be cut into folds of {self.fold}")
        image_number = np.arange(len(rows))
        fold_of_image = image_number % folds
        if wanted.folds == "consecutive":
            fold_of_image = image_number // size
        image_of_caption = renumbered(self.owner[columns], rows, self.images)
        fold_of_caption = np.where(image_of_caption < 0, -1, fold_of_image[image_of_caption])
        pool_of_folds = []
        for fold in range(folds):
            in_fold = (fold_of_caption < 0) | (fold_of_caption == fold)
            pool_of_folds.append((rows[fold_of_image == fold], columns[in_fold]))
        return pool_of_folds

    @property
    def _collection(self) -> Collection:
        return Collection(
            np.arange(self.images), np.arange(len(self.owner)), self.owner, self.captions
        )

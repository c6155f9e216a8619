"""Systems as a user describes them: the columns of a matrix without ids, and which answers are
right.

Relevance other than one image per caption comes from a qrels file, or from captions with the same
text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artefacts.record import digest_of
from pipeline.evaluation import retrieval
from pipeline.evaluation.judgements import qrels
from pipeline.evaluation.judgements.names import Names
from pipeline.evaluation.judgements.rows import same_text
from pipeline.evaluation.metrics import Metrics, parse_all
from pipeline.evaluation.retrieval import Collection, Ids, Protocol, Side, mistakes, rows_of
from pipeline.evaluation.retrieval.embeddings import vectors_of
from pipeline.evaluation.retrieval.relevance import as_relevance
from pipeline.files.left_out import SHARE
from pipeline.manifest import Manifest
from pipeline.manifest.columns import LANGUAGE
from pipeline.parts.errors import InputError, counted, refusing
from pipeline.settings import Evaluate
from pipeline.settings.paths import Paths
from pipeline.systems.scores.system import System

# How many captions an image has where nothing says it.
CAPTIONS = 5


@dataclass(frozen=True)
class Columns:
    """The user's description of a matrix without ids: a manifest and its split, or the number of
    captions per image.
    """

    manifest: Path | None = None  # the manifest's file; None if not given
    split: str | None = None  # the split; None for test
    captions_per_image: int | None = (
        None  # how many captions each image has, in the images' order; None for five
    )
    distance: bool = False  # whether the matrix holds distances, of which the smallest is best
    images: Path | None = (
        None  # the folder of images that a model is to embed; None for the manifest's
    )
    captions: Path | None = (
        None  # the annotations with their captions, in any format of `pipeline manifest`
    )
    usage: Mapping[str, Any] = field(
        default_factory=dict
    )  # how a model is used, where it is not as by default
    judgements: Path | None = (
        None  # the file that says what is right, whose pairs a run's pool has too
    )
    judged: bool = (
        False  # whether others say what is right; images may then have any number of captions
    )

    @property
    def known_split(self) -> str | None:
        """The split that is read from the manifest; None without a manifest."""
        return None if self.manifest is None else self.split or "test"

    def of(
        self, shape: tuple[int, int], of_vectors: bool = False
    ) -> tuple[Ids, Ids | None, Ids | None]:
        """Resolve the description for a matrix, or for the numbers of two files' vectors."""
        if self.manifest is None:
            if self.split is not None:
                raise InputError("--split needs --manifest")
            if (self.judged or self.judgements is not None) and self.captions_per_image is None:
                return np.full(shape[1], -1, np.int64), None, None
            each = self.captions_per_image or CAPTIONS
            described = f"{counted(each, 'caption')} an image"
            if shape != (expected := (shape[0], shape[0] * each)):
                raise InputError(
                    _misfit(shape, (shape[1], shape[1] * each), described, of_vectors)
                    if shape[0] == each * shape[1]
                    else _misfit(shape, expected, described, of_vectors) + _advice(shape)
                )
            return retrieval.consecutive_captions(shape, each), None, None
        if self.captions_per_image is not None:
            raise InputError(
                "leave out --captions-per-image: --manifest says how many each image has"
            )
        split = Manifest.load(self.manifest).split(self.split or "test")
        expected = (len(split.image_ids), len(split.caption_ids))
        if shape != expected:
            raise InputError(
                _misfit(shape, expected, f"the manifest's {split.name} split", of_vectors)
            )
        return split.caption_image, split.image_ids, split.caption_ids


def _advice(shape: tuple[int, int]) -> str:
    """What to do where images do not have as many captions as was assumed, as the end of a
    message.
    """
    images, captions = shape
    if captions > images > 0 and captions % images:
        return (
            f"; {captions:,} is no multiple of {images:,}, so not every image has as many: save "
            "caption_image, the row of each caption's image, with the scores, or name the --manifest; COCO's "
            "protocols take the first five captions of each image"
        )
    if images > 0 and captions % images == 0 and captions:
        return (
            f"; --captions-per-image {captions // images}, or --manifest, says how many there are"
        )
    return "; --captions-per-image or --manifest says how many there are"


def _misfit(shape: tuple[int, int], expected: tuple[int, int], of: str, of_vectors: bool) -> str:
    """Say that a shape is not that of the images and captions, and what it may be."""
    size = f"{shape[0]} x {shape[1]}"
    if shape == expected[::-1]:
        if of_vectors:
            return f"{shape[0]} vectors, then {shape[1]}, captions before images: give the images' file first"
        return (
            f"the matrix is {size}, captions x images ({of}): it is transposed; save its transpose, one row an "
            "image: numpy.save('new.npy', scores.T)"
        )
    if of_vectors:
        return (
            f"{size} vectors, expected {expected[0]} of images and {expected[1]} of captions ({of})"
        )
    vectors = (
        "; vectors are given with those of the other side, images.npy:captions.npy"
        if shape[0] in expected and shape[1] < expected[1]
        else ""
    )
    return (
        f"the matrix is {size}, expected {expected[0]} images x {expected[1]} captions ({of}); rows are images, "
        f"columns captions{vectors}"
    )


@dataclass(frozen=True)
class Truth:
    """The user's choice of right answers."""

    qrels: Path | None = None  # a file of judgements; None for the captions' own images
    # whether captions with the same text are one query, for which all their images are right
    same_text: bool = False
    left_out: float = field(
        default=SHARE, compare=False
    )  # the largest share of rows of qrels that may be left out

    @classmethod
    def of(cls, settings: Evaluate) -> "Truth":
        """Read the settings of a run."""
        return cls(Path(settings.qrels) if settings.qrels else None, settings.same_text is not None)

    @classmethod
    def of_protocols(cls, protocols: Sequence[str | Protocol]) -> "Truth":
        """Look up which answers some protocols count as right."""
        return cls(
            same_text=any(
                retrieval.protocol(each).same_text
                for each in protocols
                if not isinstance(each, str) or each in retrieval.PROTOCOLS
            )
        )

    def or_of(self, protocols: Sequence[str | Protocol]) -> "Truth":
        """This choice; if the user made none, that of the protocols."""
        return Truth.of_protocols(protocols) if self == Truth() else self

    def chosen(self, settings: Evaluate) -> Evaluate:
        """The settings with this choice instead of theirs, if the user made one."""
        if self == Truth():
            return settings
        return settings.model_copy(
            update={
                "qrels": str(self.qrels) if self.qrels else None,
                "same_text": "positive" if self.same_text else None,
            }
        )

    @property
    def needs_manifest(self) -> bool:
        """Whether a manifest has to say which caption or image is meant."""
        return self.same_text or (self.qrels is not None and qrels.names_files(self.qrels))

    @property
    def words(self) -> str:
        """Describe the right answers in words; "" if it is each caption's own image."""
        if self.qrels is not None:
            return f"the judgements in {self.qrels.name}"
        return (
            "identical captions count as one query with several positives" if self.same_text else ""
        )

    def protocols(self, of_card: Sequence[str | Protocol]) -> list[str | Protocol]:
        """Choose the protocols of a run: those of the card, unless the user chose other right
        answers.
        """
        if self in (Truth(), Truth.of_protocols(of_card)):
            return list(of_card)
        return [Protocol("qrels" if self.qrels else "same_text")]

    def digest(self) -> str | None:
        """Digest the file of judgements."""
        if self.qrels is None:
            return None
        with refusing(
            OSError, lambda error: f"cannot read {self.qrels}: {error.strerror or error}"
        ):
            return digest_of(self.qrels)


def judge(system: System, truth: Truth, manifest: Manifest | None) -> System:
    """Replace a system's right answers."""
    if truth.qrels is not None:
        names = Names(system, None if manifest is None else lambda: files_of(system, manifest))
        judgements = qrels.read(truth.qrels, system, names, truth.left_out)
        return replace(system, relevance=judgements.relevance, judgements=judgements)
    if truth.same_text:
        system.require_ids()
        if manifest is None:
            raise InputError("--same-text compares captions by their text: name the --manifest")
        texts = of_captions(system, manifest, "caption").tolist()
        kept, relevance = same_text(replace(system, captions=texts), system.languages)
        return replace(system.only(np.arange(system.shape[0]), kept), relevance=relevance)
    return system


def manifest_rows(manifest: Manifest, side: Side, ids: Ids, whose: str = "") -> Ids:
    """Find images or captions in a manifest's table, in which all must be. whose: what has them,
    for messages.
    """
    known = (
        manifest.images["image_id"]
        if side == "image"
        else manifest.rows(["caption_id"])["caption_id"]
    )
    has = f", which {whose} has" if whose else ""
    return rows_of(
        known.to_numpy(),
        ids,
        lambda each: f"the manifest of {manifest.dataset} has no {side} {each}{has}",
    )


def files_of(pool: Collection, manifest: Manifest) -> list[str]:
    """The files of a pool's images, in its order."""
    return (
        manifest.images["file"]
        .iloc[manifest_rows(manifest, "image", pool.image_ids, "the pool")]
        .tolist()
    )


def of_captions(system: System, manifest: Manifest, column: str) -> npt.NDArray[Any]:
    """Read a column of the manifest for each caption of the system."""
    system.require_manifest(manifest)
    rows = manifest_rows(manifest, "caption", system.caption_ids, system.name)
    return manifest.rows([column])[column].to_numpy()[rows]


def with_languages(system: System, manifest: Manifest | None) -> System:
    """Name the language of each caption."""
    if manifest is None or LANGUAGE not in manifest.columns or not system.has_ids:
        return system
    return replace(system, languages=of_captions(system, manifest, LANGUAGE).astype(str))


def in_languages(system: System, paths: Paths) -> System:
    """Name the language of each caption of a store, if its record has several."""
    if len(system.made_from.languages) < 2:
        return system
    found = with_languages(system, Manifest.load(paths.manifest(system.made_from.dataset)))
    return found if found.languages is not None and len(np.unique(found.languages)) > 1 else system


def notes_of_vectors(system: System) -> list[str]:
    """Say which mistake vectors from elsewhere point to; nothing of other scores."""
    vectors = None if system.made_from.is_known else vectors_of(system.scores)
    return mistakes.of_vectors(*vectors) if vectors else []


def notes(system: System, found: Metrics) -> list[str]:
    """Say which mistake the ranks point to, see `mistakes`; the order of a store's rows and columns
    is known.
    """
    ids = (system.image_ids, system.caption_ids) if system.has_ids else None
    ordered = bool(system.made_from.is_known or system.pools)
    return [
        f"{system.name}: {each}"
        for each in mistakes.of_scores(
            system.scores,
            as_relevance(system.truth, system.shape),
            found.ranks,
            ids,
            ordered,
            given=not system.made_from.is_known or system.made_from.is_given,
        )
    ]


def notes_of_cutoffs(system: System, names: Sequence[str], folds: int) -> list[str]:
    """Say which recalls by name are 100 for any scores, because the cutoff reaches every candidate.

    names: As `parse` takes them. folds: Into how many parts the images are cut.
    """
    if isinstance(system.scores, retrieval.Lists):  # which leave candidates out
        return []
    images, captions = (size // folds for size in system.shape)
    notes = []
    for metric in parse_all(names):
        if metric.name not in ("R", "Recall") or not metric.k:
            continue
        reached = []
        if metric.k >= captions:
            reached.append(f"all {captions:,} captions of image → caption")
        if metric.k >= images:
            reached.append(f"all {images:,} images of caption → image")
        if reached:
            notes.append(
                f"{system.name}: {metric} takes {' and '.join(reached)}, and is 100 there for any "
                "scores; choose a smaller cutoff"
            )
    return notes


def notes_of_two(first: System, other: System) -> list[str]:
    """Say that two systems without ids seem to be in different orders."""
    if first.has_ids or other.has_ids or first.relevance is not None:
        return []
    return [
        f"{other.name}: {each}"
        for each in mistakes.of_two(first.scores, other.scores, first.caption_image)
    ]


def facts(system: System, truth: Truth, manifest: Manifest | None = None) -> dict[str, Any]:
    """Describe for results the relevance, and what was left out of the pool before it was
    measured.
    """
    made = system.made_from
    left_out = made.reasons_left_out if made.is_known or manifest is None else manifest.left_out
    lacks: dict[str, Any] = {"left_out": left_out} if left_out else {}
    owned = system.caption_image[system.caption_image >= 0]
    if (
        0 < len(owned) < len(system.caption_ids)
    ):  # with judgements alone, no caption's image is known
        lacks["captions_without_image"] = len(system.caption_ids) - len(
            owned
        )  # candidates, no queries
    if system.relevance is None:
        if no_caption := len(system.image_ids) - len(np.unique(owned)):
            lacks["images_without_caption"] = no_caption  # likewise
        return lacks
    source = truth.qrels.name if truth.qrels else "equal captions"
    i2t, t2i = system.relevance.i2t, system.relevance.t2i
    right = {
        "source": source,
        "pairs": {"i2t": len(i2t.candidate), "t2i": len(t2i.candidate)},
        "graded": i2t.grade is not None or t2i.grade is not None,
    }
    if system.judgements is not None and system.judgements.left_out:
        right["left_out"] = system.judgements.left_out
    return lacks | {"relevance": right | ({"digest": truth.digest()} if truth.qrels else {})}

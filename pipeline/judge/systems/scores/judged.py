"""Systems as a user describes them: the columns of a matrix without ids, and which answers are
right.

Relevance other than one image per caption comes from a qrels file, or from captions with the same
text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation import artefacts, evaluation, manifest as manifests
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import Metrics, parse_all
from pipeline.foundation.evaluation.retrieval import (
    Collection,
    Ids,
    Protocol,
    Relevance,
    Side,
    mistakes,
    rows_of,
)
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.retrieval.similarity import vectors_of
from pipeline.foundation.files.left_out import SHARE
from pipeline.foundation.parts.errors import InputError, counted, refusing, sized
from pipeline.foundation.settings import Evaluate
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.made import OfGiven, Unknown
from pipeline.judge.systems.scores.system import IMAGES_AND_CAPTIONS, System

if TYPE_CHECKING:
    from pipeline.foundation.manifest import Manifest

# How many captions an image has where nothing says it.
CAPTIONS = 5
# Why queries are left out that are judged for another pool, such as another language's.
NOT_LISTED = "queries that the file does not list"


class NothingJudged(InputError):
    """Judgements say of none of the queries what is right."""


@dataclass(frozen=True)
class Columns:
    """The user's description of a matrix without ids: a manifest and its split, or the number of
    captions per image.
    """

    manifest: Path | None = None  # the manifest's file; None if not given
    split: str | None = None  # the split; None for test
    # how many captions each image has, in the images' order; None for five
    captions_per_image: int | None = None
    distance: bool = False  # whether the matrix holds distances, of which the smallest is best
    # the folder of images that a model is to embed; None for the manifest's
    images: Path | None = None
    # the annotations with their captions, in any format of `pipeline manifest`
    captions: Path | None = None
    # how a model is used, where it is not as by default
    usage: Mapping[str, Any] = field(default_factory=dict)
    # the file that says what is right, whose pairs a run's pool has too
    judgements: Path | None = None
    # whether others say what is right; images may then have any number of captions
    judged: bool = False

    @property
    def known_split(self) -> str | None:
        """The split that is read from the manifest; None without a manifest."""
        if self.manifest is None:
            return None
        return self.split or "test"

    def of(
        self, shape: tuple[int, int], of_vectors: bool = False
    ) -> tuple[Ids, Ids | None, Ids | None]:
        """Resolve the description for a matrix, or for the numbers of two files' vectors."""
        if self.manifest is None:
            return self._consecutive(shape, of_vectors), None, None
        if self.captions_per_image is not None:
            raise InputError(
                "leave out --captions-per-image: --manifest says how many each image has"
            )
        split = manifests.Manifest.load(self.manifest).split(self.split or "test")
        expected = (len(split.image_ids), len(split.caption_ids))
        if shape != expected:
            described = f"the manifest's {split.name} split"
            raise InputError(_misfit(shape, expected, described, of_vectors))
        return split.caption_image, split.image_ids, split.caption_ids

    def _consecutive(self, shape: tuple[int, int], of_vectors: bool) -> Ids:
        """Each caption's image where no manifest says it: equally many captions an image, or with
        judgements alone none.
        """
        if self.split is not None:
            raise InputError("--split needs --manifest")
        images, captions = shape
        is_judged = self.judged or self.judgements is not None
        if is_judged and self.captions_per_image is None:
            return np.full(captions, -1, np.int64)
        each = self.captions_per_image or CAPTIONS
        if captions == images * each:
            return retrieval.consecutive_captions(shape, each)
        described = f"{counted(each, 'caption')} an image"
        if images == each * captions:
            transposed = (captions, captions * each)
            raise InputError(_misfit(shape, transposed, described, of_vectors))
        misfit = _misfit(shape, (images, images * each), described, of_vectors)
        raise InputError(misfit + _advice(shape))


def _advice(shape: tuple[int, int]) -> str:
    """What to do where images do not have as many captions as was assumed, as the end of a
    message.
    """
    images, captions = shape
    is_multiple = images > 0 and captions % images == 0
    if captions > images > 0 and not is_multiple:
        return (
            f"; {captions:,} is no multiple of {images:,}, so not every image has as many: save "
            "caption_image, the row of each caption's image, with the scores, or name the --manifest; COCO's "
            "protocols take the first five captions of each image"
        )
    if is_multiple and captions:
        each = captions // images
        return f"; --captions-per-image {each}, or --manifest, says how many there are"
    return "; --captions-per-image or --manifest says how many there are"


def _misfit(shape: tuple[int, int], expected: tuple[int, int], of: str, of_vectors: bool) -> str:
    """Say that a shape is not that of the images and captions, and what it may be."""
    rows, columns = shape
    images, captions = expected
    size = f"{rows} x {columns}"
    is_transposed = (columns, rows) == expected
    if is_transposed and of_vectors:
        return (
            f"{rows} vectors, then {columns}, captions before images: give the images' file first"
        )
    if is_transposed:
        return (
            f"the matrix is {size}, captions x images ({of}): it is transposed; save its transpose, one row an "
            "image: numpy.save('new.npy', scores.T)"
        )
    if of_vectors:
        return f"{size} vectors, expected {images} of images and {captions} of captions ({of})"
    message = (
        f"the matrix is {size}, expected {sized(images, captions)} ({of}); rows are images, "
        "columns captions"
    )
    if rows in expected and columns < captions:
        message += "; vectors are given with those of the other side, images.npy:captions.npy"
    return message


@dataclass(frozen=True)
class Truth:
    """The user's choice of right answers."""

    qrels: Path | None = None  # a file of judgements; None for the captions' own images
    # whether captions with the same text are one query, for which all their images are right
    same_text: bool = False
    # the largest share of rows of qrels that may be left out
    left_out: float = field(default=SHARE, compare=False)

    @classmethod
    def of(cls, settings: Evaluate) -> Truth:
        """Read the settings of a run."""
        path = Path(settings.qrels) if settings.qrels else None
        return cls(path, settings.same_text is not None)

    @classmethod
    def of_protocols(cls, protocols: Sequence[str | Protocol]) -> Truth:
        """Look up which answers some protocols count as right."""
        for name in protocols:
            is_known = not isinstance(name, str) or name in retrieval.PROTOCOLS
            if is_known and retrieval.protocol(name).same_text:
                return cls(same_text=True)
        return cls()

    @property
    def is_chosen(self) -> bool:
        """Whether other answers than each caption's own image are right."""
        return self != Truth()

    def or_of(self, protocols: Sequence[str | Protocol]) -> Truth:
        """This choice; if the user made none, that of the protocols."""
        if self.is_chosen:
            return self
        return Truth.of_protocols(protocols)

    def chosen(self, settings: Evaluate) -> Evaluate:
        """The settings with this choice instead of theirs, if the user made one."""
        if not self.is_chosen:
            return settings
        changes: dict[str, Any] = {"qrels": None, "same_text": None}
        if self.qrels:
            changes["qrels"] = str(self.qrels)
        if self.same_text:
            changes["same_text"] = "positive"
        return settings.model_copy(update=changes)

    @property
    def needs_manifest(self) -> bool:
        """Whether a manifest has to say which caption or image is meant."""
        if self.same_text:
            return True
        return self.qrels is not None and evaluation.judgements.qrels.names_files(self.qrels)

    @property
    def words(self) -> str:
        """Describe the right answers in words; "" if it is each caption's own image."""
        if self.qrels is not None:
            return f"the judgements in {self.qrels.name}"
        if self.same_text:
            return "identical captions count as one query with several positives"
        return ""

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
            return artefacts.record.digest_of(self.qrels)


def judge(system: System, truth: Truth, manifest: Manifest | None) -> System:
    """Replace a system's right answers."""
    if truth.qrels is not None:
        names = evaluation.judgements.names.Names(system, sided=not _is_of_tool(system))
        if manifest is not None:
            names = evaluation.judgements.names.Names(system, lambda: files_of(system, manifest))
        read = evaluation.judgements.qrels.read(truth.qrels, system, names, truth.left_out)
        return _of_listed(replace(system, relevance=read.relevance, judgements=read))
    if truth.same_text and system.hits and system.hits.same_text:
        return system
    if truth.same_text:
        system.require_ids()
        if manifest is None:
            raise InputError("--same-text compares captions by their text: name the --manifest")
        texts = of_captions(system, manifest, "caption").tolist()
        with_texts = replace(system, captions=texts)
        queries, relevance = evaluation.judgements.rows.same_text(with_texts, system.languages)
        images = np.arange(system.shape[0])
        return replace(system.only(images, queries), relevance=relevance)
    return system


def _is_of_tool(system: System) -> bool:
    """Whether it is a tool's run of queries and candidates, which lists every query."""
    if system.sides == IMAGES_AND_CAPTIONS:
        return False
    return isinstance(system.scores, retrieval.Lists) and system.scores.has_all_queries


def _of_listed(system: System) -> System:
    """A run that lists every query of its pool, without queries that are judged for another one."""
    lists = system.scores
    if not _is_of_tool(system) or not isinstance(lists, retrieval.Lists):
        return system
    queries = np.union1d(lists.listed["t2i"].query, lists.unanswered)
    _require_judged(system, queries)
    others = system.shape[1] - len(queries)
    if not others or system.judgements is None:
        return system
    left_out = {**system.judgements.left_out, NOT_LISTED: others}
    judgements = replace(system.judgements, left_out=left_out)
    listed = system.only(np.arange(system.shape[0]), queries)
    return replace(listed, judgements=judgements)


def _require_judged(system: System, queries: Ids) -> None:
    """Refuse judgements that say of none of some queries what is right."""
    if system.judgements is None or system.relevance is None:
        return
    judged = as_relevance(system.relevance, system.shape).t2i.query
    if not np.isin(queries, judged).any():
        raise NothingJudged(
            f"{system.judgements.path}: says of none of the queries of {system.name} what is right; name the "
            "judgements of its queries, with ids that are written as they are there"
        )


def queries_not_listed(system: System) -> int:
    """The number of judged queries that a run does not list, which were left out."""
    if system.judgements is None:
        return 0
    return system.judgements.left_out.get(NOT_LISTED, 0)


def manifest_rows(manifest: Manifest, side: Side, ids: Ids, whose: str = "") -> Ids:
    """Find images or captions in a manifest's table, in which all must be. whose: what has them,
    for messages.
    """
    if side == "image":
        known = manifest.images["image_id"]
    else:
        known = manifest.rows(["caption_id"])["caption_id"]
    has = ""
    if whose:
        has = f", which {whose} has"
    return rows_of(
        known.to_numpy(),
        ids,
        lambda each: f"the manifest of {manifest.dataset} has no {side} {each}{has}",
    )


def files_of(pool: Collection, manifest: Manifest) -> list[str]:
    """The files of a pool's images, in its order."""
    rows = manifest_rows(manifest, "image", pool.image_ids, "the pool")
    return manifest.images["file"].iloc[rows].tolist()


def of_captions(system: System, manifest: Manifest, column: str) -> npt.NDArray[Any]:
    """Read a column of the manifest for each caption of the system."""
    system.require_manifest(manifest)
    rows = manifest_rows(manifest, "caption", system.caption_ids, system.name)
    return manifest.rows([column])[column].to_numpy()[rows]


def with_languages(system: System, manifest: Manifest | None) -> System:
    """Name the language of each caption."""
    if manifest is None or manifests.LANGUAGE not in manifest.columns or not system.has_ids:
        return system
    languages = of_captions(system, manifest, manifests.LANGUAGE)
    return replace(system, languages=languages.astype(str))


def in_languages(system: System, paths: Paths) -> System:
    """Name the language of each caption of a store, if its record has several."""
    if len(system.made_from.languages) < 2:
        return system
    manifest = manifests.Manifest.load(paths.manifest(system.made_from.dataset))
    with_all = with_languages(system, manifest)
    if with_all.languages is None:
        return system
    if len(np.unique(with_all.languages)) < 2:
        return system
    return with_all


def notes_of_vectors(system: System) -> list[str]:
    """Say which mistake vectors from elsewhere point to; nothing of other scores."""
    if not isinstance(system.made_from, Unknown):
        return []
    vectors = vectors_of(system.scores)
    if not vectors:
        return []
    return [f"{system.name}: {mistake}" for mistake in mistakes.of_vectors(*vectors)]


def notes(system: System, metrics: Metrics) -> list[str]:
    """Say which mistake the ranks point to, see `mistakes`; the order of a store's rows and columns
    is known.
    """
    ids = None
    if system.has_ids:
        ids = (system.image_ids, system.caption_ids)
    is_known = not isinstance(system.made_from, Unknown)
    seen = mistakes.of_scores(
        system.scores,
        as_relevance(system.truth, system.shape),
        metrics.ranks,
        ids,
        bool(is_known or system.pools),
        given=isinstance(system.made_from, Unknown | OfGiven),
    )
    return [f"{system.name}: {mistake}" for mistake in seen]


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
    """Say that two systems without ids seem to be in different orders, or that hits do not tell."""
    are_hits = bool(first.hits or other.hits)
    notes = []
    if are_hits and first.dataset and other.dataset and first.dataset != other.dataset:
        notes.append(
            f"{other.name}: is of {other.dataset}, {first.name} of {first.dataset}, as their files say: are these "
            "the same images and captions?"
        )
    if first.has_ids or other.has_ids:
        return notes
    if are_hits:
        notes.append(
            f"{other.name}: without ids, like {first.name}, and hits do not show the order of images and captions, so "
            "it is taken to be the same; hits that are written with --manifest have ids"
        )
        return notes
    if first.relevance is not None:
        return notes
    seen = mistakes.of_two(first.scores, other.scores, first.caption_image)
    return [f"{other.name}: {mistake}" for mistake in seen]


def together(notes: Iterable[tuple[str, str]]) -> list[str]:
    """Name all systems of a note at once. notes: the name of each system with a note on it."""
    systems: dict[str, list[str]] = defaultdict(list)
    for name, note in notes:
        names = systems[note.removeprefix(f"{name}: ")]
        if name not in names:
            names.append(name)
    return [f"{', '.join(names)}: {note}" for note, names in systems.items()]


def facts(system: System, truth: Truth, manifest: Manifest | None = None) -> dict[str, Any]:
    """Describe for results the relevance, and what was left out of the pool before it was
    measured.
    """
    made = system.made_from
    left_out = made.reasons_left_out
    if manifest is not None and isinstance(made, Unknown):
        left_out = manifest.left_out
    described: dict[str, Any] = {}
    if left_out:
        described["left_out"] = left_out
    owned = system.caption_image[system.caption_image >= 0]
    without_image = len(system.caption_ids) - len(owned)
    # With judgements alone, no caption's image is known.
    if len(owned) and without_image:
        described["captions_without_image"] = without_image  # candidates, no queries
    if system.relevance is not None:
        return described | {"relevance": _right(system, system.relevance, truth)}
    without_caption = len(system.image_ids) - len(np.unique(owned))
    if without_caption:
        described["images_without_caption"] = without_caption  # likewise
    return described


def _right(system: System, relevance: Relevance, truth: Truth) -> dict[str, Any]:
    """Describe for results where the right answers are from, and how many there are."""
    i2t = relevance.i2t
    t2i = relevance.t2i
    source = "equal captions"
    if system.hits is not None and system.hits.judgements:
        source = system.hits.judgements
    if system.judgements is not None:
        source = system.judgements.path.name
    right = {
        "source": source,
        "pairs": {"i2t": len(i2t.candidate), "t2i": len(t2i.candidate)},
        "graded": i2t.grade is not None or t2i.grade is not None,
    }
    if system.judgements is not None and system.judgements.left_out:
        right["left_out"] = system.judgements.left_out
    if truth.qrels:
        right["digest"] = truth.digest()
    return right

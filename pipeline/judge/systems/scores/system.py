"""A system: images and captions by their ids, a score for each pair, and what made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.foundation import artefacts, manifest as manifests
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import (
    Ids,
    KnownRanks,
    Protocol,
    Relevance,
    protocol,
)
from pipeline.foundation.evaluation.retrieval.collection import Collection, Side, rows_of
from pipeline.foundation.evaluation.retrieval.owners import renumbered
from pipeline.foundation.evaluation.retrieval.similarity import as_similarity, select
from pipeline.foundation.evaluation.statistics.intervals import Languages, divide
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import plain
from pipeline.judge.systems import scores as of_scores
from pipeline.judge.systems.scores import layout, sources
from pipeline.judge.systems.scores.made import Made, Reranked, Unknown
from pipeline.judge.systems.scores.sources import Given, Matrices, Scores, Vectors

if TYPE_CHECKING:
    import zarr

    from pipeline.foundation.artefacts import Artefact, Draft, Record, Reference
    from pipeline.foundation.evaluation.judgements.qrels import Judgements
    from pipeline.foundation.files.remembered import Remembered
    from pipeline.foundation.manifest import Manifest
    from pipeline.judge.systems.scores.reranked import Scored

IMAGES_AND_CAPTIONS = ("image", "caption")
CANDIDATES_AND_QUERIES = ("candidate", "query")
# The kinds of artefact that hold scores.
KINDS = ("scores", "given", "ensemble", "rescored", "reranked")


class Part(NamedTuple):
    """A pool that is measured by itself: all of a system, or one language of it."""

    language: str  # "" for all captions
    system: System  # the view of it
    rules: Protocol  # the protocol by which it is measured
    images: Ids  # int64 [I'], its rows in the whole
    captions: Ids  # int64 [C'], its columns in the whole


@dataclass(frozen=True, eq=False, kw_only=True)
class System(Collection):
    """What is ranked."""

    name: str
    kind: Kind  # Where its scores come from
    made_from: Made = field(default_factory=Unknown)  # What is known of it
    # The store that it was opened from; None for a view, and for other sources
    folder: Path | None = None
    # The record of the store that it or the system it is a view of was opened from; None for other
    # sources.
    record: Record | None = None
    # Whether its ids are an image's and a caption's; otherwise they number rows and columns.
    has_ids: bool = True
    # The right answers; None if they are each caption's own image
    relevance: Relevance | None = None
    judgements: Judgements | None = None  # The file of right answers, where `relevance` is from one
    # Each caption's language as text [C]; None where captions have none
    languages: Languages | None = None
    split: str | None = None  # The split that is ranked; None if it is unknown
    # What its rows and columns are called, where a run does not say which are images.
    sides: tuple[str, str] = IMAGES_AND_CAPTIONS
    read_as: str = ""  # What a file from elsewhere was read as; "" for a store
    # By a reading's name, what opens the same files as others read them; without judgements.
    otherwise: Mapping[str, Callable[[], System]] = field(default_factory=dict)
    # Which of these are other parts of one benchmark, over which a mean is taken
    siblings: tuple[str, ...] = ()
    # With distractors: the system itself and its distractors, in the order of rows and columns;
    # else ().
    pools: tuple[System, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        scores: object,
        caption_image: Ids | None = None,
        image_ids: Ids | None = None,
        caption_ids: Ids | None = None,
        file: str = "",
        **more: Any,
    ) -> System:
        """Take scores in memory, or whatever `as_similarity` takes; without ids, rows and columns
        are numbered. file: what messages call the scores.
        """
        source = as_similarity(scores, file)
        more.setdefault("has_ids", image_ids is not None)
        images, captions = source.shape
        if image_ids is None:
            image_ids = np.arange(images)
        if caption_ids is None:
            caption_ids = np.arange(captions)
        if caption_image is None:
            caption_image = np.full(len(caption_ids), -1, np.int64)
        return cls(
            np.asarray(image_ids),
            np.asarray(caption_ids),
            caption_image,
            name=name,
            kind=Given(lambda: source),
            **more,
        )

    @classmethod
    def open(cls, path: Path) -> System:
        """Open a store of scores."""
        if layout.holds_vectors_alone(path):
            raise InputError(
                f"{path}: holds vectors and no scores; `pipeline score --system {path}` makes a system of "
                "them"
            )
        with layout.reading(path, layout.UNSCORED) as (group, store):
            ids = layout.read_ids(path, group)
            made_from = layout.facts(store)
            kind: Kind
            if isinstance(made_from, Reranked):
                kind = _reranked(store, group, ids, made_from)
            else:
                kind = sources.matrices(store, group, ids, made_from)
        return cls(
            *ids,
            name=path.stem,
            kind=kind,
            made_from=made_from,
            folder=path,
            record=store.record,
            split=made_from.split,
        )

    @classmethod
    def open_named(cls, path: Path) -> System:
        """Open a store that is looked up by its system's name, and check that it was written under
        this name.
        """
        system = cls.open(path)
        written = system.written_name
        if written != path.stem:
            raise InputError(
                f"{path}: holds the scores of {written}; move them back to {written}.zarr, and make "
                f"{path.stem} again"
            )
        return system

    @classmethod
    def open_vectors(cls, path: Path, remembered: Remembered | None = None) -> System:
        """Open a store that holds vectors, of which its scores are the inner products, computed
        block by block.
        """
        otherwise = "no embeddings there; make them with `pipeline score` or `pipeline embed`"
        with layout.reading(path, otherwise) as (group, store):
            ids = layout.read_ids(path, group)
            made_from = layout.facts(store)
        image_ids, caption_ids, _ = ids
        return cls(
            *ids,
            name=path.stem,
            kind=Vectors(store, (len(image_ids), len(caption_ids)), remembered),
            made_from=made_from,
            folder=path,
            record=store.record,
            split=made_from.split,
        )

    @classmethod
    def open_either(cls, path: Path) -> System:
        """Open a store by its scores, or by its vectors if it holds no scores."""
        if layout.holds_vectors_alone(path):
            return cls.open_vectors(path)
        return cls.open(path)

    @classmethod
    def open_among(cls, path: Path, distractors: Sequence[System]) -> System:
        """Open a head's scores, or a reranked system's, with the vectors of distractors."""
        system = cls.open_vectors(path)
        if isinstance(system.made_from, Reranked):
            system = cls.open(path)
        return system.among(distractors)

    @property
    def path(self) -> Path:
        """The store's path, for messages; the name if it was not opened from a store."""
        return self.folder or Path(self.name)

    @cached_property
    def scores(self) -> Scores:
        """The scores [I, C], as `evaluate` takes them."""
        return self.kind.scores()

    @property
    def similarity(self) -> zarr.Array:
        """The stored matrix [I, C], of a system that has one for both directions."""
        if isinstance(self.kind, Candidates):
            raise InputError(
                f"{self.path}: is reranked, and scores each query's candidates by themselves; use its "
                f"retriever {self.kind.retriever.name}"
            )
        if not isinstance(self.kind, Matrices):
            raise InputError(f"{self.path}: has no stored matrix; score it with `pipeline score`")
        how = self.kind.how
        if how is None:
            return self.kind.matrices[0]
        what = f"an ensemble by {how.method} scores each query by itself and has no one matrix"
        if how.method == layout.DIRECTIONS:
            what = "two matrices, one a direction"
        raise InputError(f"{self.path}: {what}; use a head, or an ensemble by mean")

    @property
    def truth(self) -> Relevance | Ids:
        """The right answers, as `evaluate` takes them."""
        if self.relevance is None:
            return self.caption_image
        return self.relevance

    @property
    def reference(self) -> Reference:
        """What records of artefacts that are made from it say of it."""
        if self.record:
            return self.record.refers(self.name)
        return artefacts.Reference(
            kind="matrix", name=self.name, identity=digest(self.made_from.recorded())
        )

    @property
    def store(self) -> Artefact:
        """The store that it was opened from."""
        if self.folder is None or self.record is None:
            raise InputError(f"{self.name}: is no store of scores or vectors")
        return artefacts.Artefact(self.folder, self.record)

    @property
    def written_name(self) -> str:
        """The name that its store was written under; a copy may have another one."""
        if self.record is None:
            return self.name
        return str(self.record.request.get("name", self.name))

    @property
    def checkpoints(self) -> list[str]:
        """SHA-256 of the checkpoints behind it. Vectors of one checkpoint are in one space."""
        return self.made_from.checkpoints

    @property
    def protocol(self) -> Protocol | None:
        """The only protocol by which a reranked system, an ensemble of such, or a file of hits can
        be measured; None for any.
        """
        recorded = self.made_from.protocol
        if recorded is not None:
            return of_scores.reranked.protocol_of(recorded)
        if self.hits is not None:
            return self.hits.rules
        return None

    @property
    def hits(self) -> KnownRanks | None:
        """The ranks of a file of hits; None where there are scores."""
        if isinstance(self.kind, Given) and isinstance(self.scores, KnownRanks):
            return self.scores
        return None

    @property
    def dataset(self) -> str:
        """The name of its data set; "" where it is unknown."""
        if self.hits is not None:
            return self.hits.dataset
        return self.made_from.dataset

    def check(self) -> System:
        """Compare scores and ids, not embeddings, with their recorded digests; it reads all of them
        once.
        """
        arrays = self.store.record.contents
        compared = [name for name in arrays if not name.endswith("_embeddings")]
        artefacts.Artefact.open(self.path, *compared)
        if isinstance(self.kind, Candidates):
            self.kind.retriever.check()
        return self

    def vectors(self, side: Side) -> np.ndarray:
        """Map the unit vectors of one side, float32 [I or C, d]."""
        if isinstance(self.kind, Vectors):
            return self.kind.of(side)
        return Vectors(self.store, self.shape).of(side)

    def vectors_of(self, side: Side, ids: Ids, otherwise: str) -> np.ndarray:
        """Read the unit vectors of some ids, float32 [n, d]; `otherwise` ends the message that
        names a missing one.
        """
        rows = rows_of(
            self.ids(side), ids, lambda each: f"{self.path}: lacks {side} {each}{otherwise}"
        )
        return self.vectors(side)[rows]

    def embeddings(self) -> retrieval.Embeddings:
        """Map the unit vectors of images and captions."""
        return retrieval.Embeddings(self.vectors("image"), self.vectors("caption"))

    def has_vectors(self) -> bool:
        """Look up whether its store holds vectors."""
        return self.folder is not None and (self.folder / "image_embeddings").is_dir()

    def require_ids(self) -> tuple[Ids, Ids]:
        """Return the ids, which must be known."""
        if not self.has_ids:
            raise InputError(
                f"{self.name}: its images and captions are unknown; name its --manifest"
            )
        return self.image_ids, self.caption_ids

    def image_of_caption(self) -> dict[int, int]:
        """Map the ids of captions, which must be known, to those of their images."""
        self.require_ids()
        return super().image_of_caption()

    def require_owners_of(self, first: System) -> None:
        """Check that another system assigns the captions that both have to the same images."""
        theirs = first.image_of_caption()
        for caption, image in self.image_of_caption().items():
            if theirs.get(caption, image) != image:
                raise InputError(
                    f"{self.name}: its caption {caption} is of image {image}, in {first.name} of image "
                    f"{theirs[caption]}; score both for one manifest"
                )

    def require_manifest(self, manifest: Manifest) -> None:
        """Check that a manifest is the one that the scores are of."""
        if self.made_from.manifest not in (None, manifest.digest):
            raise InputError(
                f"{self.name}: is of another manifest of {manifest.dataset}; "
                f"{self.made_from.renewal}"
            )

    def manifest(
        self, given: Path | None, place: Callable[[str], Path], needed: bool = False
    ) -> Manifest | None:
        """Load the manifest of its images and captions: the given one, or its data set's if that is
        needed.
        """
        if given is not None:
            return manifests.Manifest.load(given)
        dataset = self.made_from.dataset
        if dataset and (needed or self.made_from.languages):
            return manifests.Manifest.load(place(dataset))
        return None

    def only(self, images: Ids, captions: Ids) -> System:
        """View some rows and columns, in any order, as a pool of their own."""
        owner = renumbered(self.caption_image[captions], images, self.shape[0])
        relevance = self.relevance
        if relevance is not None:
            relevance = relevance.select(images, captions)
        languages = self.languages
        if languages is not None:
            languages = languages[captions]
        return replace(
            self,
            image_ids=self.image_ids[images],
            caption_ids=self.caption_ids[captions],
            caption_image=owner,
            captions=None,
            folder=None,
            kind=Given(lambda: select(self.scores, images, captions)),
            relevance=relevance,
            languages=languages,
        )

    def parts(self, rules: str | Protocol) -> list[Part]:
        """View the whole, then each language with a right answer: its captions, and the images that
        have one.
        """
        rules = protocol(rules)
        images, captions = self.shape
        parts = [Part("", self, rules, np.arange(images), np.arange(captions))]
        if self.languages is None:
            return parts
        by_language = divide(self.truth, self.shape, self.languages)
        for language, (rows, columns) in by_language.items():
            system = replace(self.only(rows, columns), languages=None)
            parts.append(Part(language, system, rules.of_language(language), rows, columns))
        return parts

    def among(self, distractors: Sequence[System]) -> System:
        """Enlarge the pool by distractors: vector stores whose items are candidates only, never
        queries.
        """
        if isinstance(self.kind, Candidates):
            return self._reranked_among(distractors)
        from pipeline.foundation.evaluation.retrieval.embeddings import Enlarged

        for system in (self, *distractors):
            system.made_from.refuse_vectors(system.name, "use --distractors with")
        in_pool = self._named_images()
        for system in distractors:
            if system.checkpoints != self.checkpoints:
                raise InputError(
                    f"{system.path}: holds the vectors of another head than {self.path.name}; embed these "
                    "images with the same head, see `pipeline embed`"
                )
            images = system._named_images()
            repeated = in_pool & images
            if repeated:
                _, image = min(repeated)
                raise InputError(
                    f"{system.path}: {len(repeated)} of its images are in the pool already, "
                    f"{image} for one"
                )
            in_pool |= images
        scores = Enlarged(self.embeddings(), [system.embeddings() for system in distractors])
        return System.of(
            self.name,
            scores,
            scores.caption_image(self.caption_image),
            made_from=self.made_from,
            record=self.record,
            split=self.split,
            pools=(self, *distractors),
        )

    def _named_images(self) -> set[tuple[str, int]]:
        """Its images, each by its data set and id."""
        return {(self.made_from.dataset, image) for image in self.image_ids.tolist()}

    def _reranked_among(self, distractors: Sequence[System]) -> System:
        assert isinstance(self.kind, Candidates)
        artefacts.Artefact.open(self.path, *self.store.record.contents)
        record = self.kind.record
        sought = []
        for role, made_of in self.store.record.made_from.items():
            if role.startswith("distractor."):
                sought.append(made_of.identity)
        if sought != [system.reference.identity for system in distractors]:
            named = ", ".join(record.distractors) or "no distractors"
            raise InputError(
                f"{self.path}: was reranked among {named}; give the same --distractors, or rerank again"
            )
        pool = System.open_vectors(self.kind.retriever.path).among(distractors)
        candidates = self.kind.found_in(pool.shape)
        scores = of_scores.reranked.source(pool.scores, candidates, pool.caption_image, record)
        return replace(
            pool,
            name=self.name,
            made_from=self.made_from,
            record=self.record,
            kind=Given(lambda: scores),
        )

    @property
    def queries(self) -> tuple[int, int]:
        """How many images and captions are queries; they come first, distractors after them."""
        if self.pools:
            return self.pools[0].shape
        return self.shape

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The data sets of images and captions, the queries' first."""
        datasets = [pool.made_from.dataset for pool in self.pools or (self,)]
        return tuple(dict.fromkeys(datasets))

    def items(self, side: Side) -> tuple[Ids, Ids]:
        """Give each image's or caption's place among `datasets`, and its id there: int64 [I] or [C]
        each.
        """
        datasets = []
        ids = []
        for pool in self.pools or (self,):
            of_pool = pool.ids(side)
            dataset = self.datasets.index(pool.made_from.dataset)
            datasets.append(np.full(len(of_pool), dataset, np.int64))
            ids.append(of_pool)
        return np.concatenate(datasets), np.concatenate(ids)

    def write(
        self,
        draft: Draft,
        made: Made,
        method: str = "mean",
        progress: layout.Progress = lambda images: None,
    ) -> None:
        """Write its scores as a store; `method` is the name of a fusion query by query."""
        matrices, fusion = layout.divided(self.scores, method)
        layout.write(
            draft, matrices, self, made, fusion, lambda rows: progress(rows // len(matrices))
        )


@dataclass(frozen=True)
class Candidates:
    """A retriever's best candidates of each query, reordered by another scorer."""

    path: Path  # the store
    retriever: System  # the system that orders all others
    record: Reranked  # how they were sought and are ordered
    # those of both directions, and of each language; {} if sought among distractors
    found: Mapping[str, Scored]

    def scores(self) -> Scores:
        """Order the candidates."""
        if not self.found:
            raise InputError(
                f"{self.path}: was reranked among distractors; name them with --distractors"
            )
        return of_scores.reranked.source(
            self.retriever.scores, self.found, self.retriever.caption_image, self.record
        )

    def found_in(self, pool: tuple[int, int]) -> Mapping[str, Scored]:
        """Read the candidates that were sought in a pool [I', C'] of the system and distractors."""
        return self.found or of_scores.reranked.read(self.path, layout.group(self.path), pool)


# Where a system's scores come from.
Kind: TypeAlias = Given | Matrices | Vectors | Candidates


def _reranked(
    store: Artefact, group: zarr.Group, ids: Sequence[Ids], record: Reranked
) -> Candidates:
    """The candidates of a reranked system, with its retriever, which must be in the same folder and
    unchanged.
    """
    path = store.folder
    before = store.record.made_from["retriever"]
    beside = path.parent / f"{plain(before.name)}.zarr"
    if not (beside / "similarity").is_dir():  # nor another reranked system
        raise InputError(
            f"{path}: its retriever {before.name} is gone; score it and run `pipeline rerank` again"
        )
    retriever = System.open(beside)
    of_retriever = (retriever.image_ids, retriever.caption_ids, retriever.caption_image)
    has_same_ids = all(map(np.array_equal, ids, of_retriever))
    if retriever.reference.identity != before.identity or not has_same_ids:
        raise InputError(
            f"{path}: was reranked from an older {before.name} than the current one; run "
            "`pipeline rerank` again"
        )
    of_scores.reranked.combination_of(record)  # refuses an unknown one
    candidates: Mapping[str, Scored] = {}
    if not record.distractors:
        candidates = of_scores.reranked.read(path, group)
    return Candidates(path, retriever, record, candidates)

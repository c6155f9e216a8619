"""Rerank a retriever: find candidates, score the pairs that are missing, write the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pipeline.foundation.artefacts import Artefact, Outdated, Reference, Versions, making
from pipeline.foundation.artefacts.making import IfChanged
from pipeline.foundation.artefacts.pieces import KeptPieces
from pipeline.foundation.compute.tasks import Executor
from pipeline.foundation.evaluation.retrieval import Progress, Protocol
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.requests import RerankRequest
from pipeline.judge.systems.reranking import candidates, shards, tuning
from pipeline.judge.systems.reranking.base import PairScorer, PairSource, identity
from pipeline.judge.systems.reranking.record import made_from
from pipeline.judge.systems.scores import layout, reranked
from pipeline.judge.systems.scores.made import Reranked
from pipeline.judge.systems.scores.system import System

OTHER_PAIRS = (
    "holds pairs that were scored by another scorer, or for other candidates; resume with those, give "
    "another --name, or discard them with --if-changed redo"
)


@dataclass(frozen=True)
class Report:
    """Callbacks that report progress while a system is reranked."""

    # called with the number of queries whose candidates are found
    queries: Progress = lambda count: None
    # called with the number of pairs to score
    start: Progress = lambda count: None
    # called with the number of pairs scored since the last call
    pairs: Progress = lambda count: None


@dataclass(frozen=True)
class Job:
    """What is reranked, how and by what."""

    path: Path  # where the new system goes
    retriever: System  # the retriever's scores
    pool: System  # where candidates are sought
    scorer: tuple[str, str]  # the scorer's kind and name, see `resolve`
    source: PairSource  # the images and captions that the scorer pairs
    k: int | Literal["all"]  # how many candidates of each query are scored
    how: reranked.Combination  # how the two scores become one
    protocol: Protocol  # within whose folds candidates are sought
    distractors: Sequence[System] = ()  # the stores of distractors
    named: bool = False  # whether the user chose the new system's name
    # the store on val from which k and `how` are taken; None if they are given
    tuned_on: Path | None = None
    # whether they are chosen on these scores, which must be of val; `k` is the largest tried
    tune: bool = False
    # what finds the candidates by their vectors, a key of `INDEXES`; None for the scores
    index: str | None = None
    redo: bool = False  # whether scores of another scorer, or for other candidates, are replaced
    block_megabytes: float = 32  # size of blocks in memory (10^6 bytes)

    @property
    def queries(self) -> int:
        """How many queries get candidates, those within languages too."""
        return sum(sum(part.system.queries) for part in self.pool.parts(self.protocol))

    def request(self, tuned: dict[str, Any] | None, scorer: PairScorer) -> RerankRequest:
        """Compose the request; `tuned` says how k and `how` were chosen, if they were."""
        return RerankRequest(
            name=self.path.stem,
            named=self.named,
            scorer=(self.scorer[0], _name(self, scorer)),
            options=dict(self.source.options),
            protocol=(self.protocol.name, self.protocol.folds),
            k=self.k,
            combine=self.how.name,
            weight=self.how.weight,
            tune=self.tune,
            tuned=tuned,
            index=self.index,
            made_by=getattr(scorer, "versions", {}),
        )

    def made_from(self, scorer: PairScorer, tuned: dict[str, Any] | None = None) -> Reranked:
        """Compose the facts of the system; `tuned` says how k and `how` were chosen, if they
        were.
        """
        request = self.request(tuned, scorer)
        return made_from(self.retriever, scorer, self.scorer[1], request, self.distractors)

    def source_of(self, images: int, captions: int) -> PairSource:
        """The source that pairs the images of one of the pool's data sets with the captions of
        another.
        """
        datasets = self.pool.datasets
        return replace(self.source, images=datasets[images], captions=datasets[captions])


class Outcome(NamedTuple):
    """What was done."""

    made_from: Reranked
    pairs: int  # how many pairs were scored now
    written: bool  # whether the store was written; not if it was up to date


def rerank(job: Job, executor: Executor | None = None, report: Report | None = None) -> Outcome:
    """Write a reranked system. Pairs that an earlier run scored are not scored again."""
    report = report or Report()
    if job.tune:
        tuning.require_val(job.retriever)
    by_pair = _opened(job)
    scorers = list(by_pair.values())
    _require_one_split(job.retriever, scorers[0], job.scorer[1])
    tuned: dict[str, Any] | None = None
    if job.tuned_on is not None:
        k, how, tuned = tuning.chosen(job.tuned_on, job.made_from(scorers[0]))
        job = replace(job, k=k, how=how)
    request = job.request(tuned, scorers[0])
    inputs = _inputs(job, scorers)
    differs = _differs_before_ordering(job, request, inputs)
    if_changed: IfChanged = "redo"
    is_other = differs is not None and differs.because in ("request", "made_from")
    if is_other and not job.redo:
        if_changed = "refuse"
    with making(job.path, request, inputs, if_changed=if_changed) as draft:
        if draft is None:
            made = System.open(job.path).made_from
            assert isinstance(made, Reranked)
            return Outcome(made, 0, written=False)
        job.retriever.check()
        scored_candidates: dict[str, reranked.Scored] | None = None
        pieces: KeptPieces | None = None
        scored = 0
        if not differs:
            scored_candidates = _earlier_candidates(job)
        if scored_candidates is None:
            scored_candidates, pieces, scored = _score(
                job, by_pair, request.versions(), executor, report
            )
        if job.tune:
            record = job.made_from(scorers[0])
            k, how, tuned = tuning.tune(
                job.retriever, scored_candidates, record, job.block_megabytes
            )
            job = replace(job, k=k, how=how)
        made = job.made_from(scorers[0], tuned)
        arrays: dict[str, np.ndarray] = {}
        for name, of_direction in scored_candidates.items():
            arrays[f"{name}_candidates"] = of_direction.places
            arrays[f"{name}_retrieved"] = of_direction.retrieved
            arrays[f"{name}_scores"] = of_direction.scores
        layout.begin(draft, layout.ids_of(job.retriever) | arrays, made)
    if pieces is not None:
        pieces.remove()
    return Outcome(made, scored, written=True)


def _name(job: Job, scorer: PairScorer) -> str:
    return str(scorer.made_from.get("name", job.scorer[1]))


def _opened(job: Job) -> dict[tuple[int, int], PairScorer]:
    """Open a scorer for each two data sets that are paired, by their positions in the pool, the
    queries' own first.
    """
    of_distractors = range(1, len(job.pool.datasets))
    paired = [(0, 0)]
    paired += [(0, captions) for captions in of_distractors]
    paired += [(images, 0) for images in of_distractors]
    opened = {}
    for images, captions in paired:
        source = job.source_of(images, captions)
        opened[images, captions] = shards.open_scorer(*job.scorer, source)
    return opened


def _inputs(job: Job, scorers: list[PairScorer]) -> dict[str, Reference]:
    """The references to the retriever, to its scorer for each two data sets that are paired, and to
    distractors.
    """
    kind, _ = job.scorer
    described = []
    for scorer in scorers:
        name = _name(job, scorer)
        described.append(Reference(kind=kind, name=name, identity=identity(scorer)))
    references = {"retriever": job.retriever.reference}
    references |= getattr(scorers[0], "references", {"scorer": described[0]})
    for number, scorer_reference in enumerate(described[1:], 1):
        references[f"scorer.{number}"] = scorer_reference
    for number, distractors in enumerate(job.distractors):
        references[f"distractor.{number}"] = distractors.reference
    return references


def _differs_before_ordering(
    job: Job, request: RerankRequest, made_from: Mapping[str, Reference]
) -> Outdated | None:
    """Compare what an earlier run left at a job's path with its request in all but the order of
    candidates.
    """
    earlier = Artefact.existing(job.path)
    if earlier is None or earlier.record.kind != request.kind:
        return Outdated("unfinished", "does not exist")
    return earlier.outdated(request.in_the_order_of(earlier.record.request), made_from)


def _earlier_candidates(job: Job) -> dict[str, reranked.Scored] | None:
    """Read the candidates that an earlier run scored; None if they are not enough."""
    store = Artefact.open(job.path)
    Artefact.open(job.path, *store.record.contents)
    stored = reranked.read(job.path, layout.group(job.path), job.pool.shape)
    wanted = candidates.sizes(job.pool, job.protocol, job.k)
    for name, k in wanted.items():
        if stored[name].places.shape[1] < k:
            return None
    return stored


def _require_one_split(retriever: System, scorer: PairScorer, name: str) -> None:
    """Check that a retriever and a scorer are of one manifest and split, if the scorer's record
    names them.
    """
    made = retriever.made_from
    for key, mine in (("manifest", made.manifest), ("split", made.split)):
        its = scorer.made_from.get(key, mine)
        if its != mine:
            raise InputError(
                f"{name}: its {key} is {its!r}, that of the retriever {retriever.name} {mine!r}; score "
                "both again"
            )
    # A scorer of pixels has neither: its training is unknown.
    if scorer.made_from.keys() & {"checkpoint", "identity"}:
        trained_on = scorer.made_from.get("trained_on", made.dataset)
        if made.training_data != trained_on:
            raise InputError(
                f"{name}: was trained on {trained_on}, the retriever {retriever.name} on "
                f"{made.training_data}; give two that were trained on the same, see --trained-on"
            )


def _score(
    job: Job,
    scorers: dict[tuple[int, int], PairScorer],
    versions: Versions,
    executor: Executor | None,
    report: Report,
) -> tuple[dict[str, reranked.Scored], KeptPieces, int]:
    """The candidates with their scores, the shards that hold these, and how many pairs were scored
    now.
    """
    pool = job.pool
    captions = len(pool.caption_ids)
    to_score = candidates.find(
        pool, job.protocol, job.k, job.block_megabytes, report.queries, job.index
    )
    pairs = candidates.pairs_of(to_score, captions)
    opened_from = {}
    made_from = []
    for datasets, scorer in scorers.items():
        same = identity(scorer)
        opened_from[datasets] = (*job.scorer, job.source_of(*datasets), same)
        made_from.append([*datasets, same])
    parts = shards.divide(pool, pairs, opened_from)
    distractors = [store.reference.identity for store in job.distractors]
    request = {
        "retriever": job.retriever.reference.identity,
        "distractors": distractors,
        "shard": shards.SHARD,
        "scorers": made_from,
        "versions": dict(versions),
        "pairs": shards.digest_of(pool, pairs),
    }
    pieces = KeptPieces(job.path, request, None if job.redo else OTHER_PAIRS)
    missing = sum(len(parts[number].rows) for number in pieces.missing(len(parts)))
    report.start(missing)
    scores = np.empty(len(pairs.image), np.float32)
    done = pieces.run(
        shards.score,
        parts,
        executor,
        lambda number, before: None if before else report.pairs(len(parts[number].rows)),
    )
    for part, arrays in zip(parts, done, strict=True):
        scores[part.rows] = arrays["scores"]
    return candidates.with_scores(to_score, pairs, scores, captions), pieces, missing

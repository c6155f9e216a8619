"""Rerank a retriever: find candidates, score the pairs that are missing, write the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pipeline import artefacts
from pipeline.artefacts.pieces import KeptPieces
from pipeline.compute.tasks import Executor
from pipeline.evaluation.retrieval import Progress, Protocol
from pipeline.files import atomic, record
from pipeline.files.digest import digest
from pipeline.parts.errors import InputError
from pipeline.systems.reranking import SCORERS, candidates, shards, tuning
from pipeline.systems.reranking.base import PairScorer, PairSource
from pipeline.systems.scores import layout, reranked
from pipeline.systems.scores.made import RERANKED, Made
from pipeline.systems.scores.system import System

OTHER_PAIRS = ("holds pairs that were scored by another scorer, or for other candidates; resume with those, give "
               "another --name, or discard them with --if-changed redo")
# Parts of a scorer's record that are joined with the retriever's.
ABOVE = ("members", "features", "untrained")
# Parts of `Made.reranked` that leave the scores of pairs as they are, or that follow from the other parts.
FREE = ("combine", "weight", "k", "tuned", "roles")


@dataclass(frozen=True)
class Report:
    """Callbacks that report progress while a system is reranked."""

    queries: Progress = lambda count: None  # called with the number of queries whose candidates are found
    start: Progress = lambda count: None  # called with the number of pairs to score
    pairs: Progress = lambda count: None  # called with the number of pairs scored since the last call


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
    distractors: Sequence[dict[str, Any]] = ()  # data set and seal of each store of distractors
    named: bool = False  # whether the user chose the new system's name
    tuned_on: Path | None = None  # the store on val from which k and `how` are taken; None if they are given
    tune: bool = False  # whether they are chosen on these scores, which must be of val; `k` is the largest tried
    redo: bool = False  # whether scores of another scorer, or for other candidates, are replaced
    block_megabytes: float = 32  # size of blocks in memory (10^6 bytes)

    @property
    def queries(self) -> int:
        """How many queries get candidates, those within languages too."""
        return sum(sum(part.system.queries) for part in self.pool.parts(self.protocol))

    def source_of(self, images: int, captions: int) -> PairSource:
        """The source that pairs the images of one of the pool's data sets with the captions of another."""
        return replace(self.source, images=self.pool.datasets[images], captions=self.pool.datasets[captions])


class Outcome(NamedTuple):
    """What was done."""

    made_from: Made  # the record of the system
    pairs: int  # how many pairs were scored now
    written: bool  # whether the store was written; not if it was there


def rerank(job: Job, executor: Executor | None = None, report: Report | None = None) -> Outcome:
    """Write a reranked system. Pairs that an earlier run scored are not scored again."""
    report, retriever, datasets = report or Report(), job.retriever, range(1, len(job.pool.datasets))
    with atomic.exclusive(job.path):
        if job.tune:
            tuning.require_val(retriever)
        # For each two data sets that are paired, the queries' own first.
        paired = [(0, 0), *((0, each) for each in datasets), *((each, 0) for each in datasets)]
        by_pair = {each: shards.open_scorer(*job.scorer, job.source_of(*each)) for each in paired}
        scorers = list(by_pair.values())
        _require_one_split(retriever, scorers[0], job.scorer[1])
        made = _made(job, scorers)
        if job.tuned_on is not None:
            k, how, said = tuning.chosen(job.tuned_on, made)
            job = replace(job, k=k, how=how)
            made = _made(job, scorers, said)
        made_by = artefacts.versions("reranking", (SCORERS, job.scorer[0]))
        before, found = _before(job, made, made_by)
        if found is not None and digest(before) == digest(made) and not job.tune:
            return Outcome(made, 0, written=False)
        kept, scored = None, 0
        if found is None:
            found, kept, scored = _score(job, by_pair, executor, report)
        if job.tune:
            k, how, said = tuning.tune(retriever, found, made.reranked, job.block_megabytes)
            made = _made(replace(job, k=k, how=how), scorers, said)
        ids = zip(layout.IDS, (retriever.image_ids, retriever.caption_ids, retriever.caption_image), strict=True)
        arrays = {f"{name}_{kind}": values for name, each in found.items() for kind, values in (
            ("candidates", each.places), ("retrieved", each.retrieved), ("scores", each.scores))}
        with layout.writing(job.path, dict(ids) | arrays, made, made_by=made_by, name=job.path.stem):
            pass
        if kept is not None:
            kept.remove()
        return Outcome(made, scored, written=True)


def _made(job: Job, scorers: list[PairScorer], tuned: Mapping[str, Any] | None = None) -> Made:
    """The record of the system: its retriever's, joined with its scorer's, with one more step."""
    kind, name = job.scorer
    theirs, said = job.retriever.made_from, Made(scorers[0].made_from)
    step: dict[str, Any] = {"name": "rerank", "with": said.get("series", name), "k": job.k}
    if job.how.name != "scorer":
        step[job.how.name] = job.how.weight
    if said.has_seen_queries:
        step["bank"] = "test"
    record = {
        "retriever": {"system": job.retriever.name, "seal": job.retriever.seal},
        "roles": [_role(theirs), _role(said)],
        "scorer": {key: value for key, value in said.items() if key not in ABOVE} | {
            "kind": kind, "name": name, "made_from": digest(said)},
        "with_distractors": [digest(each.made_from) for each in scorers[1:]],
        "k": job.k, "combine": job.how.name, "weight": job.how.weight, "logits": scorers[0].gives_logits,
        "protocol": {"name": job.protocol.name, "folds": job.protocol.folds},
        "distractors": [dict(each) for each in job.distractors]}
    of_retriever = {"visual": list(theirs["features"])} | ({"named": True} if job.named else {})
    return Made(theirs | of_retriever).with_step(
        step, features={**theirs["features"], **said.get("features", {})},
        untrained=list(dict.fromkeys([*theirs["untrained"], *said.get("untrained", [])])),
        members=[*theirs.members, *(member for member in said.members if member["head"] not in theirs.heads)],
        **{RERANKED: record | ({"tuned": dict(tuned)} if tuned else {})})


def _role(made: Made) -> str:
    """A digest of what a system is on any split: its heads, how they are fused, and what was done to their scores."""
    return digest([made.checkpoints, made.fusion.get("method"), made.fusion.get("weights"), made.steps])


def what_differs(mine: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Name the parts of two records on which scores of pairs depend, and that differ."""
    return [key for key in dict.fromkeys((*mine, *other)) if key not in FREE and mine.get(key) != other.get(key)]


def _require_one_split(retriever: System, scorer: PairScorer, name: str) -> None:
    """Check that a retriever and a scorer are of one manifest and split, if the scorer's record names them."""
    for key in ("manifest", "split"):
        if (said := scorer.made_from.get(key, retriever.made_from[key])) != retriever.made_from[key]:
            raise InputError(f"{name}: its {key} is {said!r}, that of the retriever {retriever.name} "
                             f"{retriever.made_from[key]!r}; score both again")
    if scorer.made_from.keys() & {"checkpoint", "seal"}:  # a scorer of pixels has neither: its training is unknown
        here = retriever.made_from.trained_on
        if here != (there := scorer.made_from.get("trained_on", retriever.made_from.dataset)):
            raise InputError(f"{name}: was trained on {there}, the retriever {retriever.name} on {here}; give two "
                             "that were trained on the same, see --trained-on")


def _before(job: Job, made: Made, made_by: artefacts.Versions) -> tuple[Made, dict[str, reranked.Scored] | None]:
    """The record of an existing store, {} if there is none to go on with, and its candidates if they are enough."""
    wanted = candidates.sizes(job.pool, job.protocol, job.k)
    if not job.path.exists():
        return Made(), None
    with layout.reading(job.path, "exists and is no reranked system; give another --name") as (group, there):
        before = there[RERANKED]
    if differ := what_differs(before, made.reranked):
        if not job.redo:
            raise InputError(f"{job.path}: was reranked with another {differ[0]}; give another --name, or replace it "
                             "with --if-changed redo")
        return Made(), None
    if layout.changed(job.path, there) or record.changed(job.path, made_by):
        return Made(), None
    found = reranked.read(job.path, group, job.pool.shape)
    serves = all(found[name].places.shape[1] >= k for name, k in wanted.items())
    return there.without_digests, found if serves else None


def _score(job: Job, scorers: dict[tuple[int, int], PairScorer], executor: Executor | None, report: Report
           ) -> tuple[dict[str, reranked.Scored], KeptPieces, int]:
    """The candidates with their scores, the shards that hold these, and how many pairs were scored now."""
    pool, captions = job.pool, len(job.pool.caption_ids)
    found = candidates.find(pool, job.protocol, job.k, job.block_megabytes, report.queries)
    pairs = candidates.wanted(found, captions)
    made_from = {key: digest(each.made_from) for key, each in scorers.items()}
    parts = shards.divide(pool, pairs, {key: (*job.scorer, job.source_of(*key), each)
                                        for key, each in made_from.items()})
    request = {"retriever": job.retriever.seal, "distractors": list(job.distractors), "shard": shards.SHARD,
               "scorers": [[*key, each] for key, each in made_from.items()], "pairs": shards.digest_of(pool, pairs)}
    kept = KeptPieces(job.path, request, None if job.redo else OTHER_PAIRS)
    missing = sum(len(parts[number].rows) for number in kept.missing(len(parts)))
    report.start(missing)
    scores = np.empty(len(pairs.image), np.float32)
    done = kept.run(shards.score, parts, executor,
                    lambda number, before: None if before else report.pairs(len(parts[number].rows)))
    for part, arrays in zip(parts, done, strict=True):
        scores[part.rows] = arrays["scores"]
    return candidates.with_scores(found, pairs, scores, captions), kept, missing

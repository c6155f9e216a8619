"""k and the weight of a combination, chosen on the validation split."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval.owners import renumbered
from pipeline.foundation.evaluation.retrieval.protocols import Protocol
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import layout, reranked
from pipeline.judge.systems.scores.made import Reranked
from pipeline.judge.systems.scores.reranked import Combination, Scored
from pipeline.judge.systems.scores.system import System

# The values of k that are tried, if so many candidates were scored; the k that was asked for is
# tried, too.
KS = (5, 10, 20, 50, 100)
# The number of steps of the weight from 0 to 1.
STEPS = 20


def require_val(retriever: System) -> None:
    """Check that scores are of the split on which choices are made."""
    if retriever.split != "val":
        raise InputError(
            f"{retriever.path}: is of the split {retriever.split}; k and the weight are chosen on val "
            "alone: score and rerank val with --tune, then give that store with --tuned-on"
        )


def choices(
    k: int | Literal["all"], scored: int, combination: str
) -> Iterator[tuple[int | Literal["all"], Combination]]:
    """List the choices of k and weight that are tried."""
    weights = [0.0]
    if combination != "scorer":
        weights = [step / STEPS for step in range(STEPS + 1)]
    smaller = [size for size in KS if size < scored]
    for size in (*smaller, k):
        for weight in weights:
            yield size, Combination(combination, weight)


def tune(
    retriever: System, found: Mapping[str, Scored], record: Reranked, block_megabytes: float
) -> tuple[int | Literal["all"], Combination, dict[str, Any]]:
    """Choose k and the weight with the largest RSUM on the split val; with several languages, the
    largest mean.
    """
    least = min(candidates.places.shape[1] for candidates in found.values())
    best: tuple[int | Literal["all"], Combination] | None = None
    best_rsum = -math.inf
    tried = 0
    for k, how in choices(record.k, least, record.combine):
        as_chosen = record.changed(k=k, weight=how.weight)
        rsum = _rsum(retriever, found, as_chosen, block_megabytes)
        tried += 1
        if best is None or rsum > best_rsum + 1e-9:
            best_rsum = rsum
            best = k, how
    assert best is not None
    k, how = best
    return k, how, {"split": "val", "tried": tried, "largest": record.k, "RSUM": best_rsum}


def _rsum(
    retriever: System, found: Mapping[str, Scored], record: Reranked, block_megabytes: float
) -> float:
    """RSUM; with captions in several languages, the mean over these."""
    rules = reranked.protocol_of(record.protocol)
    owner = retriever.caption_image
    scores = reranked.source(retriever.scores, found, owner, record)
    if not scores.languages:
        return evaluate(scores, owner, rules, block_megabytes=block_megabytes).rsum
    sums = []
    rules_of_part = Protocol(rules.name, folds=rules.folds)
    for part in scores.languages:
        images, captions = (np.flatnonzero(fold >= 0) for fold in part.folds)
        of_part = scores.select(images, captions)
        owner_of_part = renumbered(owner[captions], images, len(retriever.image_ids))
        measured = evaluate(of_part, owner_of_part, rules_of_part, block_megabytes=block_megabytes)
        sums.append(measured.rsum)
    return float(np.mean(sums))


def chosen(path: Path, mine: Reranked) -> tuple[int | Literal["all"], Combination, dict[str, Any]]:
    """Read what was chosen on the split val."""
    missing = (
        "no choice of k and weight there; make it on the split val with `pipeline rerank --tune`"
    )
    with layout.reading(path, missing) as (_, store):
        record = layout.facts(store)
    if not isinstance(record, Reranked) or not record.tuned:
        raise InputError(f"{path}: {missing}")
    if record.split != "val":
        raise InputError(
            f"{path}: is of the split {record.split}; k and the weight are chosen on val; give --tuned-on a "
            "store that `pipeline rerank --tune` made"
        )
    has_same_scorer = mine.scorer.made_from == record.scorer.made_from
    if mine.scorer.is_system:  # another store on val
        has_same_scorer = record.scorer.is_system
    if mine.roles != record.roles or not has_same_scorer:
        raise InputError(
            f"{path}: k and the weight were chosen there for other heads, or for these with retriever and "
            "scorer exchanged; choose them for these with --tune"
        )
    wanted = mine.protocol.folds
    tuned_in = record.protocol.folds
    if wanted != tuned_in:
        raise InputError(
            f"{path}: k and the weight were chosen in {tuned_in} folds of val, but candidates are sought "
            f"in {wanted}; tune on val with --folds {wanted}"
        )
    return record.k, reranked.combination_of(record), record.tuned | {"on": path.stem}

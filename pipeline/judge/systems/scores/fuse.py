"""Fuse systems: their scores as one, aligned by id and computed block by block; weights chosen on
the split val.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Ids, Lists, rows_of
from pipeline.foundation.parts.errors import InputError, look_up
from pipeline.judge.systems.fusion.combining import PerQuery
from pipeline.judge.systems.fusion.methods import BY_ORDER, FUSIONS, shares
from pipeline.judge.systems.scores.made import Unknown
from pipeline.judge.systems.scores.reranked import Folded, Reranked
from pipeline.judge.systems.scores.sources import Given, Scores
from pipeline.judge.systems.scores.system import System

# Members -> into how many parts the sum of their weights is cut; more members: 4.
STEPS = {2: 20, 3: 10, 4: 6}


def fuse(
    members: Sequence[System], method: str = "mean", weights: Sequence[float] | None = None
) -> System:
    """Fuse systems whose images and captions may be in any order; rows and columns are those of the
    first member.

    "mean" averages similarities, as VSE∞ (Chen et al., CVPR 2021) and VSE+2AD do. "zscore" averages
    them after giving every query's candidates mean 0 and standard deviation 1. "rank" averages 1 /
    (60 + rank), reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), where tied
    candidates have their mean rank. "combsum" adds scores scaled to 0 to 1; "combmnz" does so for
    the best 100 of each system and multiplies by the number of systems that have the candidate
    among them (Fox and Shaw, TREC-2, 1994). weights: from 0 up, scaled to add up to 1; None for
    equal ones.
    """
    combine = look_up("fusion", method, FUSIONS)
    for member in members:
        if isinstance(member.scores, Reranked) and method not in BY_ORDER:
            raise InputError(
                f"{member.name}: is reranked, and has an order of each query's candidates instead of "
                f"similarities; fuse it by {' or '.join(BY_ORDER)}"
            )
    fused = combine(align(members), shares(weights, len(members)))
    return replace(
        members[0],
        name=method,
        kind=Given(lambda: fused),
        folder=None,
        record=None,
        made_from=Unknown(),
    )


def align(members: Sequence[System]) -> list[Scores]:
    """Bring all members' scores into the order of the first one's ids."""
    if not members:
        raise InputError("an ensemble needs at least one member")
    aligned: list[Scores] = []
    for member in members:
        source = in_order_of(members[0], member).scores
        if isinstance(source, PerQuery) or type(source) is Folded:
            raise InputError(
                f"{member.name}: a fusion by query cannot be fused again: list its members"
            )
        if isinstance(source, Lists):
            raise InputError(
                f"{member.name}: lists each query's best candidates alone, and a fusion needs every "
                "pair's score; give a matrix or vectors"
            )
        if isinstance(source, Reranked):
            source = source.of_every_fold()
        aligned.append(source)
    return aligned


def in_order_of(first: System, system: System) -> System:
    """View a system in the order of another's ids, all of which both must have."""
    if system.scores.shape != system.shape:
        images, captions = system.shape
        raise InputError(
            f"{system.name}: a matrix {list(system.scores.shape)} has {images} image ids and "
            f"{captions} caption ids"
        )
    rows = _rows("image", system.name, system.image_ids, first.name, first.image_ids)
    columns = _rows("caption", system.name, system.caption_ids, first.name, first.caption_ids)
    return system.only(rows, columns)


def _rows(what: str, name: str, ids: Ids, first: str, wanted: Ids) -> Ids:
    distinct, place = np.unique(ids, return_index=True)
    if len(distinct) < len(ids):
        repeated = np.setdiff1d(np.arange(len(ids)), place)
        first_repeated = int(ids[repeated[0]])
        raise InputError(f"{name}: {what} id {first_repeated} occurs twice")
    _require_none_extra(what, name, np.setdiff1d(ids, wanted), first)
    _require_none_extra(what, first, np.setdiff1d(wanted, ids), name)
    return rows_of(ids, wanted)


def _require_none_extra(what: str, name: str, extra: Ids, other: str) -> None:
    """Check that a system has no ids that another lacks."""
    if not len(extra):
        return
    few = ", ".join(str(number) for number in extra[:3])
    if len(extra) > 3:
        few += ", ..."
    raise InputError(
        f"{name} has {len(extra)} {what} ids that {other} lacks ({few}): score both on the same "
        "split of the same manifest"
    )


def tune(
    members: Sequence[System],
    on: Sequence[System],
    fusion: str,
    block_megabytes: float,
    progress: Callable[[int], object] = lambda tried: None,
) -> tuple[list[float], dict[str, Any]]:
    """Choose the weights with the largest RSUM on other scores of the same systems."""
    if len(on) != len(members):
        raise InputError(
            f"--tune-on: expected scores of val for each of {len(members)} members, received {len(on)}"
        )
    files: set[str] = set()
    for member in members:
        files.update(member.made_from.files)
    for member, store in zip(members, on, strict=True):
        if store.made_from.split != "val":
            raise InputError(
                f"{store.path}: is of the split {store.made_from.split}; weights are chosen on val; "
                "give scores of val"
            )
        if files.intersection(store.made_from.files):
            raise InputError(
                f"{store.path}: is a member itself; weights are chosen on other scores than "
                "those that they fuse: give scores of val"
            )
        if store.checkpoints != member.checkpoints:
            raise InputError(
                f"{store.path}: was not scored by the heads of {member.name}; give the scores of val "
                "in the order of the members"
            )
    best = -math.inf
    chosen = [1.0] * len(on)
    tried = 0
    for weights in weightings(len(on)):
        fused = fuse(on, fusion, weights)
        metrics = evaluate(fused.scores, on[0].caption_image, block_megabytes=block_megabytes)
        rsum = metrics.rsum
        tried += 1
        progress(tried)
        is_better = rsum > best + 1e-9
        is_as_good = rsum > best - 1e-9
        if is_better or (is_as_good and _uneven(weights) < _uneven(chosen)):
            best = rsum
            chosen = weights
    return chosen, {"tried": tried, "RSUM": best, "on": [store.name for store in on]}


def weightings(members: int) -> Iterator[list[float]]:
    """List the weights that are tried: all multiples of a step that add up to 1."""
    steps = STEPS.get(members, 4)
    end = steps + members - 1
    # So many steps in a row, and a bar after each member's.
    for bars in combinations(range(end), members - 1):
        between_bars = pairwise((-1, *bars, end))
        yield [(right - left - 1) / steps for left, right in between_bars]


def _uneven(weights: Sequence[float]) -> float:
    return max(weights) - min(weights)

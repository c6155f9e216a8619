"""Fuse systems: their scores as one, aligned by id and computed block by block."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.collection import rows_of
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.combining import PerQuery
from pipeline.systems.fusion.methods import BY_ORDER, FUSIONS, shares
from pipeline.systems.fusion.reranked import Folded, Reranked
from pipeline.systems.scores.made import Made
from pipeline.systems.scores.system import Given, Scores, System


def fuse(members: Sequence[System], method: str = "mean", weights: Sequence[float] | None = None) -> System:
    """Fuse systems, whose images and captions may be in any order.

    Args:
        members: The systems.
        method: "mean" averages similarities, as VSE∞ (Chen et al., CVPR 2021) and VSE+2AD do. "zscore" averages them
            after giving every query's candidates mean 0 and standard deviation 1. "rank" averages 1 / (60 + rank),
            reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), where tied candidates have their mean
            rank. "combsum" adds scores scaled to 0 to 1; "combmnz" does so for the best 100 of each system and
            multiplies by the number of systems that have the candidate among them (Fox and Shaw, TREC-2, 1994).
        weights: One number from 0 up for each member, scaled to add up to 1; equal ones by default.

    Returns:
        The ensemble, with the rows and columns of the first member.

    Raises:
        InputError: If the members' ids differ, for ids that occur twice, and for unknown methods or unusable weights.
    """
    if method not in FUSIONS:
        raise InputError(f"unknown fusion {method!r}: choose one of {', '.join(FUSIONS)}")
    reranked = [member.name for member in members if isinstance(member.scores, Reranked)]
    if reranked and method not in BY_ORDER:
        raise InputError(f"{reranked[0]}: is reranked, and has an order of each query's candidates in the place of "
                         f"similarities; fuse it by {' or '.join(BY_ORDER)}")
    fused = FUSIONS[method](align(members), shares(weights, len(members)))
    return replace(members[0], name=method, kind=Given(fused), folder=None, made_from=Made())


def align(members: Sequence[System]) -> list[Scores]:
    """Bring all members' scores into the order of the first one's ids."""
    if not members:
        raise InputError("an ensemble needs at least one member")
    aligned: list[Scores] = []
    for member in members:
        source = in_order_of(members[0], member).scores
        if isinstance(source, PerQuery) or type(source) is Folded:
            raise InputError(f"{member.name}: a fusion by query cannot be fused again: list its members")
        aligned.append(source.of_every_fold() if isinstance(source, Reranked) else source)
    return aligned


def in_order_of(first: System, system: System) -> System:
    """View a system in the order of another's ids, all of which both must have."""
    if system.scores.shape != system.shape:
        raise InputError(f"{system.name}: a matrix {list(system.scores.shape)} has {system.shape[0]} image ids and "
                         f"{system.shape[1]} caption ids")
    return system.only(_rows("image", system.name, system.image_ids, first.name, first.image_ids),
                       _rows("caption", system.name, system.caption_ids, first.name, first.caption_ids))


def _rows(what: str, name: str, ids: Ids, first: str, wanted: Ids) -> Ids:
    """Find the position in `ids` of each of `wanted`, which must be the same ones."""
    distinct, place = np.unique(ids, return_index=True)
    if len(distinct) < len(ids):
        twice = int(ids[np.setdiff1d(np.arange(len(ids)), place)[0]])
        raise InputError(f"{name}: {what} id {twice} occurs twice")
    for here, there, ours, theirs in ((name, first, ids, wanted), (first, name, wanted, ids)):
        extra = np.setdiff1d(ours, theirs)
        if len(extra):
            few = ", ".join(str(each) for each in extra[:3]) + (", ..." if len(extra) > 3 else "")
            raise InputError(f"{here} has {len(extra)} {what} ids that {there} lacks ({few}): score both on the same "
                             "split of the same manifest")
    return rows_of(ids, wanted)

"""Ensembles: several systems' scores fused into one, aligned by id and computed block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.errors import InputError
from pipeline.fusion.combined import CombMNZ, CombSum
from pipeline.fusion.combining import PerQuery, mean
from pipeline.fusion.folded import Folded
from pipeline.fusion.reciprocal import RankFusion
from pipeline.fusion.reranked import Reranked
from pipeline.fusion.standardised import ZScores
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.collection import rows_of
from pipeline.retrieval.similarity import PerDirection, Similarity, as_similarity, select


class Member(NamedTuple):
    """One system of an ensemble.

    Attributes:
        name: For messages.
        similarity: Scores [I, C], anything that `as_similarity` takes.
        image_ids: Int64 [I], the ids of the rows.
        caption_ids: Int64 [C], the ids of the columns.
    """

    name: str
    similarity: object
    image_ids: Ids
    caption_ids: Ids


def fuse(
    members: Sequence[Member], method: str = "mean", weights: Sequence[float] | None = None
) -> Similarity | PerDirection:
    """Fuse systems.

    Args:
        members: The systems, with their images and captions in any order.
        method: "mean" averages similarities, as VSE∞ (Chen et al., CVPR 2021) and VSE+2AD do. "zscore" averages them
            after giving every query's candidates mean 0 and standard deviation 1. "rank" averages 1 / (60 + rank),
            reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), where tied candidates have their mean
            rank. "combsum" adds scores scaled to 0 to 1; "combmnz" does so for the best 100 of each system and
            multiplies by the number of systems that have the candidate among them (Fox and Shaw, TREC-2, 1994).
        weights: One number from 0 up for each member, scaled to add up to 1; equal ones by default.

    Returns:
        The ensemble's scores, with the rows and columns of the first member.

    Raises:
        InputError: If the members' ids differ, for ids that occur twice, and for unknown methods or unusable weights.
    """
    if method not in FUSIONS:
        raise InputError(f"unknown fusion {method!r}: choose one of {', '.join(FUSIONS)}")
    reranked = [member.name for member in members if isinstance(member.similarity, Reranked)]
    if reranked and method not in BY_ORDER:
        raise InputError(f"{reranked[0]}: is reranked, and has an order of each query's candidates in the place of "
                         f"similarities; fuse it by {' or '.join(BY_ORDER)}")
    return FUSIONS[method](align(members), shares(weights, len(members)))


Sources: TypeAlias = Sequence[Similarity | PerDirection]

FUSIONS: dict[str, Callable[[Sources, list[float]], Similarity | PerDirection]] = {
    "mean": mean,
    "zscore": ZScores,
    "rank": RankFusion,
    "combsum": CombSum,
    "combmnz": CombMNZ,
}
BY_ORDER = ("rank",)
"""Fusions that depend on nothing but the order of each query's candidates."""


def align(members: Sequence[Member]) -> list[Similarity | PerDirection]:
    """Bring all members into the order of the first one's ids.

    Args:
        members: The systems.

    Returns:
        Each member's scores [I, C]; of a reranked one two matrices, one for each direction.

    Raises:
        InputError: If their ids differ, or if a member is itself a fusion that depends on each query's candidates.
    """
    if not members:
        raise InputError("an ensemble needs at least one member")
    aligned: list[Similarity | PerDirection] = []
    for member in members:
        source = in_order_of(members[0], member)
        if isinstance(source, PerQuery) or type(source) is Folded:
            raise InputError(f"{member.name}: a fusion by query cannot be fused again: list its members")
        aligned.append(source.of_every_fold() if isinstance(source, Reranked) else source)
    return aligned


def in_order_of(first: Member, member: Member) -> Similarity | PerDirection:
    """Bring a member into the order of another's ids.

    Args:
        first: The member whose order is kept.
        member: The member to reorder.

    Returns:
        Its scores [I, C] with the rows and columns of `first`.

    Raises:
        InputError: If its ids differ from those of `first`.
    """
    source = as_similarity(member.similarity)
    if source.shape != (len(member.image_ids), len(member.caption_ids)):
        raise InputError(
            f"{member.name}: a matrix {list(source.shape)} has {len(member.image_ids)} image ids and "
            f"{len(member.caption_ids)} caption ids"
        )
    images = _places("image", member.name, member.image_ids, first.name, first.image_ids)
    captions = _places("caption", member.name, member.caption_ids, first.name, first.caption_ids)
    return select(source, images, captions)


def _places(what: str, name: str, ids: Ids, first: str, wanted: Ids) -> Ids:
    """Find the position in `ids` of each of `wanted`."""
    ids, wanted = np.asarray(ids), np.asarray(wanted)
    distinct, place = np.unique(ids, return_index=True)
    if len(distinct) < len(ids):
        twice = int(ids[np.setdiff1d(np.arange(len(ids)), place)[0]])
        raise InputError(f"{name}: {what} id {twice} occurs twice")
    for here, there, ours, theirs in ((name, first, ids, wanted), (first, name, wanted, ids)):
        extra = np.setdiff1d(ours, theirs)
        if len(extra):
            few = ", ".join(str(each) for each in extra[:3]) + (", ..." if len(extra) > 3 else "")
            raise InputError(
                f"{here} has {len(extra)} {what} ids that {there} lacks ({few}): "
                "score both on the same split of the same manifest"
            )
    return rows_of(ids, wanted)


def shares(weights: Sequence[float] | None, count: int) -> list[float]:
    """Scale weights to add up to 1.

    Args:
        weights: One for each member; None for equal weights.
        count: How many members there are.

    Returns:
        The weights divided by their sum.

    Raises:
        InputError: If their number is not `count`, if one is negative or infinite, or if all are 0.
    """
    weights = [1.0] * count if weights is None else list(weights)
    if len(weights) != count:
        raise InputError(f"expected one weight for each of {count} members, received {len(weights)}")
    total = math.fsum(weights)
    if not (all(0 <= weight < math.inf for weight in weights) and 0 < total < math.inf):
        raise InputError(f"expected finite weights from 0 up, not all 0, received {weights}")
    return [weight / total for weight in weights]

"""Ranks that were counted before, without the scores: all that recalls, median ranks and paired
tests need, and nothing else.
"""

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Direction, Ids
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE, renumbered
from pipeline.foundation.evaluation.retrieval.placements import Placements
from pipeline.foundation.evaluation.retrieval.protocols import Protocol
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.foundation.evaluation.retrieval.similarity import Similarity
from pipeline.foundation.parts.errors import InputError


@dataclass(frozen=True, eq=False)
class RankedPool:
    """What was counted for the queries of one pool, such as a fold.

    The rows of `of_images` and `of_captions` are `greater`, `equal` and `right` of `QueryRanks`;
    `right` is 0 for what is no query.
    """

    images: Ids  # int64 [I'], rows of the whole
    captions: Ids  # int64 [C'], columns of the whole
    of_images: Ids  # int64 [3, I']
    of_captions: Ids  # int64 [3, C']


@dataclass(frozen=True, eq=False)
class KnownRanks:
    """The ranks of each caption's own image, and of each image's best caption, by one protocol."""

    shape: tuple[int, int]  # images and captions
    owner: Ids  # int64 [C], the image of each caption, NO_IMAGE for none
    pools: tuple[RankedPool, ...]  # one for each fold
    rules: Protocol  # the protocol by which they were counted
    name: str  # the file, for messages

    def ranks(self, relevance: Relevance) -> Ranks:
        """The ranks of all images and captions as one pool.

        Args:
            relevance: What is right in it, which must be each caption's own image.

        Returns:
            Both directions' ranks.

        Raises:
            InputError: If they were counted in other pools, or for other right answers.
        """
        images, captions = self.shape
        whole = None
        for pool in self.pools:
            if (len(pool.images), len(pool.captions)) == self.shape:
                whole = pool
        if whole is None:
            raise self._of_other_pool()
        if not relevance.equals(Relevance.of_owner(self.owner, images)):
            raise InputError(
                f"{self.name}: holds the ranks of each caption's own image, which other right "
                "answers do not have; leave out --qrels and --same-text, or give the scores"
            )
        of_images = _query_ranks(whole.of_images, whole.images, images)
        of_captions = _query_ranks(whole.of_captions, whole.captions, captions)
        return Ranks(of_images, of_captions, relevance)

    def select(self, images: Ids, captions: Ids) -> "KnownRanks":
        """Keep the pools that lie within some images and captions, see `PerDirection.select`.

        Raises:
            InputError: If there is none, since ranks among fewer candidates are not known.
        """
        row = renumbered(np.arange(self.shape[0]), images, self.shape[0])
        column = renumbered(np.arange(self.shape[1]), captions, self.shape[1])
        kept = []
        for pool in self.pools:
            rows = row[pool.images]
            columns = column[pool.captions]
            if (rows > NO_IMAGE).all() and (columns > NO_IMAGE).all():
                kept.append(replace(pool, images=rows, captions=columns))
        if not kept:
            raise self._of_other_pool()
        owner = renumbered(self.owner[captions], images, self.shape[0])
        shape = (len(images), len(captions))
        return replace(self, shape=shape, owner=owner, pools=tuple(kept))

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Refuse what needs scores, see `PerDirection.direction`.

        Raises:
            InputError: Always.
        """
        self.refuse("the score of every pair")

    def place(self, positives: Positives, direction: Direction) -> Placements:
        """Refuse what needs more than the best right candidate, see `Placing.place`.

        Raises:
            InputError: Always.
        """
        self.refuse("the rank of every right candidate")

    def refuse(self, needed: str) -> NoReturn:
        """Refuse what is needed beside the ranks.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"{self.name}: is a file of hits, which holds the rank of each query's best right candidate "
            f"alone, and this needs {needed}; give the scores"
        )

    def _of_other_pool(self) -> InputError:
        return InputError(
            f"{self.name}: holds ranks by protocol {self.rules.name}, and ranks among other candidates "
            "do not follow from them; use this protocol alone, or give the scores"
        )


def _query_ranks(counts: Ids, places: Ids, size: int) -> QueryRanks:
    """The ranks of one direction's queries in the order of their rows or columns."""
    ordered = np.zeros((3, size), np.int64)
    ordered[:, places] = counts
    greater, equal, right = ordered
    query = np.flatnonzero(right)
    return QueryRanks(query, greater[query], equal[query], right[query])

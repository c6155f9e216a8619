"""What every metric offers: a number for each query, and how these become one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from pipeline.evaluation.retrieval.placements import Placements
from pipeline.evaluation.retrieval.ranks import Floats, QueryRanks, Ties
from pipeline.evaluation.retrieval.relevance import Relevance

Cutoff = Literal["none", "optional", "needed"]


@dataclass(frozen=True, eq=False)
class Ranked:
    """One direction's queries after ranking."""

    best: QueryRanks  # each query's best right candidate
    drawn_with: np.ndarray  # int64 [Q], the image with which intervals draw each query
    every: Placements | None = None  # all right candidates of the same queries; None where no metric asks for them

    @property
    def placements(self) -> Placements:
        """All right candidates; for metrics with `needs_every`."""
        assert self.every is not None
        return self.every


@dataclass(frozen=True, eq=False)
class Fold:
    """Both directions of one pool, and how ties count."""

    i2t: Ranked
    t2i: Ranked
    images: int
    ties: Ties = "expected"

    @classmethod
    def of(cls, relevance: Relevance, best: tuple[QueryRanks, QueryRanks], ties: Ties,
           every: tuple[Placements, Placements] | None = None) -> Fold:
        """Bring together what was counted of one pool."""
        i2t, t2i = every or (None, None)
        return cls(Ranked(best[0], best[0].query, i2t and i2t.broken(ties)),
                   Ranked(best[1], relevance.drawn_with[best[1].query], t2i and t2i.broken(ties)),
                   relevance.shape[0], ties)


@dataclass(frozen=True)
class Metric(ABC):
    """A metric with its cutoff: nDCG@10.

    A subclass sets the class variables and writes `of_queries`. All but ranks are shares from 0 to `most`, which are
    printed in percent.

    Attributes:
        name: As it is printed, without a cutoff.
        title: What it is.
        paper: Where it is defined.
        cutoff: Whether it has a K.
        needs_every: Whether it asks for all right candidates of a query, or for the best alone.
        less_is_better: Whether the smallest value is the best.
        is_share: Whether it is printed in percent.
        is_median: Whether the queries' median is taken, not their mean.
        summed: None for a number for each direction; else the sum of both directions' is taken, times this.
        most: The largest value.
        bounded: How ties count where their expectation has no closed form; "" where it has.
        k: The cutoff, None for none.
        grade: Candidates of a lower grade are wrong, `nDCG(rel=2)@10`; None: every one with a grade above 0 is right.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    cutoff: ClassVar[Cutoff] = "none"
    needs_every: ClassVar[bool] = False
    less_is_better: ClassVar[bool] = False
    is_share: ClassVar[bool] = True
    is_median: ClassVar[bool] = False
    summed: ClassVar[float | None] = None
    most: ClassVar[float] = 1
    bounded: ClassVar[str] = ""
    k: int | None = None
    grade: float | None = field(default=None)

    def __str__(self) -> str:
        grade = "" if self.grade is None else f"(rel={self.grade:g})"
        return f"{self.name}{grade}" + ("" if self.k is None else f"@{self.k}")

    @property
    def asks_for_every(self) -> bool:
        """Whether all right candidates must be placed."""
        return self.needs_every or self.grade is not None

    @property
    def scale(self) -> float:
        """By what a value is multiplied when it is printed."""
        return 100 if self.is_share else 1

    def values(self, ranked: Ranked, ties: Ties) -> Floats:
        """Compute the value of each query.

        Args:
            ranked: One direction's queries.
            ties: How they count.

        Returns:
            Float64 [Q]; with a `grade`, candidates below it are wrong, and a query without any at it has 0.
        """
        if self.grade is None:
            return self.of_queries(ranked, ties)
        every = ranked.placements.at_least(self.grade)
        return self.of_queries(Ranked(every.best(), ranked.drawn_with, every), ties)

    @abstractmethod
    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        """Compute the value of each query, where every candidate with a grade is right.

        Args:
            ranked: One direction's queries; `ranked.every` has the ties broken already.
            ties: "expected" asks for the exact mean over all orders of tied candidates, the others for the worst or
                the best.

        Returns:
            Float64 [Q].

        Raises:
            InputError: If the queries do not say enough, as a run that does not list a right candidate does not say its
                rank.
        """

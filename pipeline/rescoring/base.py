"""The interface of a rescorer."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from pipeline.rescoring.bank import Bank
from pipeline.retrieval import PerDirection, Similarity

BankSplit: TypeAlias = Literal["train", "test"]


class Rescorer(Protocol):
    """Makes new similarities from a system's. It is built from its options, and draws nothing at random.

    Attributes:
        bank: Where the queries come from by which it knows a hub: "train", or "test" for the queries that are ranked.
            With "test" a query's ranks depend on the other test queries; tables mark such a system, and never in bold.
    """

    bank: BankSplit

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity | PerDirection:
        """Compute the new similarities.

        Args:
            scores: [I, C], of the whole split.
            bank: Further similarities, of the queries that `bank` names.

        Returns:
            [I, C], computed block by block when it is read. `trace` computes it again.
        """
        ...

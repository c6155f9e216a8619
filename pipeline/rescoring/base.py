"""The interface of a rescorer."""

from __future__ import annotations

from typing import Protocol

from pipeline.retrieval import Similarity


class Rescorer(Protocol):
    """Makes new similarities from a system's. It is built from its options, and draws nothing at random."""

    def rescore(self, scores: Similarity) -> Similarity:
        """Compute the new similarities.

        Args:
            scores: [I, C], of the whole split.

        Returns:
            [I, C], computed block by block when it is read. `trace` computes it again.
        """
        ...

"""CSLS corrects hubs: an image or caption that is similar to everything loses what it is similar to on average.

Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.3: with s an entry of the matrix and r the mean
of the k greatest similarities of its row and of its column, CSLS = 2 s - r_row - r_column.
"""

from __future__ import annotations

from pipeline.errors import InputError
from pipeline.rescoring.bank import Bank
from pipeline.rescoring.base import BankSplit
from pipeline.rescoring.corrected import Lowered
from pipeline.rescoring.reduction import mean_of_greatest, of_columns, of_rows
from pipeline.retrieval import Similarity


class CSLS:
    """Cross-domain similarity local scaling.

    The neighbours are those of the whole split, also for protocols that divide it into folds.

    Args:
        neighbours: k, the nearest captions of an image, and images of a caption, whose mean is taken off.

    Raises:
        InputError: If it is below 1.
    """

    bank: BankSplit = "test"

    def __init__(self, neighbours: int = 10) -> None:
        if neighbours < 1:
            raise InputError(f"csls: neighbours must be at least 1, got {neighbours}")
        self.mean = mean_of_greatest(neighbours)

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Take off each row's and each column's mean of its greatest similarities."""
        return Lowered(scores, of_rows(scores, self.mean), of_columns(scores, self.mean), scale=2)

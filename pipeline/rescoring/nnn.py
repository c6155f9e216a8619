"""Nearest neighbour normalisation: a candidate loses what it is similar to its nearest queries of a bank on average.

Chowdhury et al. 2024, "Nearest Neighbor Normalization Improves Multimodal Retrieval" (EMNLP): s - α · mean of the
candidate's k greatest similarities to the bank.
"""

from __future__ import annotations

from pipeline.errors import InputError
from pipeline.rescoring.bank import Bank
from pipeline.rescoring.base import BankSplit
from pipeline.rescoring.corrected import Lowered
from pipeline.rescoring.reduction import mean_of_greatest, of_columns, of_rows
from pipeline.retrieval import Similarity


class NNN:
    """Nearest neighbour normalisation.

    Args:
        bank: The split of the bank's queries, "train" or "test".
        neighbours: k, the bank's queries nearest to a candidate. All where the bank has fewer.
        weight: α.

    Raises:
        InputError: If `neighbours` is below 1 or `weight` is not above 0.
    """

    def __init__(self, bank: BankSplit = "train", neighbours: int = 128, weight: float = 0.75) -> None:
        if neighbours < 1 or not weight > 0:
            raise InputError("nnn: expected neighbours of at least 1 and a weight above 0, got "
                             f"{neighbours} and {weight}")
        self.bank: BankSplit = bank
        self.mean, self.weight = mean_of_greatest(neighbours), weight

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Take off each candidate's mean similarity to its nearest queries of the bank."""
        return Lowered(scores, self.weight * of_rows(bank.captions, self.mean),
                       self.weight * of_columns(bank.images, self.mean))

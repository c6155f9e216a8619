"""The inverted softmax: a similarity is divided by what a bank's queries give the candidate together.

Smith et al. 2017, "Offline bilingual word vectors, orthogonal transformations and the inverted softmax":
exp(β s) / Σ over the bank's queries b of exp(β s_b). Here are its logarithms divided by β, which rank alike and do not
overflow.
"""

from __future__ import annotations

from pipeline.rescoring.bank import Bank
from pipeline.rescoring.base import BankSplit
from pipeline.rescoring.corrected import Lowered
from pipeline.rescoring.reduction import check_beta, log_sum_exp, of_columns, of_rows
from pipeline.retrieval import Similarity


class InvertedSoftmax:
    """Inverted softmax.

    Args:
        bank: The split of the bank's queries, "train" or "test".
        beta: β, the inverse temperature.

    Raises:
        InputError: If β is not above 0.
    """

    def __init__(self, bank: BankSplit = "train", beta: float = 20.0) -> None:
        self.bank: BankSplit = bank
        self.beta = check_beta("inverted-softmax", beta)

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Normalise each candidate over the bank's queries."""
        total = log_sum_exp(self.beta)
        return Lowered(scores, of_rows(bank.captions, total) / self.beta, of_columns(bank.images, total) / self.beta)

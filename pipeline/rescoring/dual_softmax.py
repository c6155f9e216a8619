"""The dual softmax: a similarity is multiplied by the query's share of the candidate, among a bank's queries.

Cheng et al. 2021, "Improving Video-Text Retrieval by Multi-Stream Corpus Alignment and Dual Softmax Loss" (CAMoE),
section 3.4, at inference: s · exp(β s) / Σ over the queries b of exp(β s_b).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from pipeline.rescoring.bank import Bank
from pipeline.rescoring.base import BankSplit
from pipeline.rescoring.corrected import ForDirection
from pipeline.rescoring.reduction import Values, check_beta, log_sum_exp, of_columns, of_rows
from pipeline.retrieval import PerDirection, Similarity
from pipeline.retrieval.similarity import Directions


class DualSoftmax:
    """Dual softmax at inference.

    The paper sums over the test queries. With the bank of train the sum is over its queries and the query itself, so
    that no share is above 1.

    Args:
        bank: The split of the bank's queries, "train" or "test".
        beta: β, the inverse temperature.

    Raises:
        InputError: If β is not above 0.
    """

    def __init__(self, bank: BankSplit = "train", beta: float = 20.0) -> None:
        self.bank: BankSplit = bank
        self.beta = check_beta("dual-softmax", beta)

    def rescore(self, scores: Similarity, bank: Bank) -> PerDirection:
        """Multiply each similarity by the query's share."""
        total = log_sum_exp(self.beta)
        return Directions(self._shared(scores, True, of_columns(bank.images, total)),
                          self._shared(scores, False, of_rows(bank.captions, total)))

    def _shared(self, scores: Similarity, by_image: bool, totals: Values) -> Similarity:
        def correct(cells: Values, query: np.ndarray, candidate: np.ndarray) -> Values:
            above = self.beta * cells - totals[candidate]
            return np.asarray(cells * (np.exp(above) if self.bank == "test" else expit(above)))

        return ForDirection(scores, by_image, correct)

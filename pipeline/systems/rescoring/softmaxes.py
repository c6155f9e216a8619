"""Softmaxes over a bank's queries: a candidate that is similar to many of them counts less.

The new similarities are logarithms divided by β, which rank alike and do not overflow, but for the dual softmax.
"""

import numpy as np
from scipy.special import expit

from pipeline.evaluation.retrieval import PerDirection, Similarity
from pipeline.evaluation.retrieval.similarity import Directions
from pipeline.systems.rescoring.bank import Bank, BankSplit
from pipeline.systems.rescoring.corrected import ForDirection, Lowered
from pipeline.systems.rescoring.reduction import Values, check_beta, log_sum_exp, of_columns, of_rows


class InvertedSoftmax:
    """The inverted softmax: a similarity is divided by what a bank's queries give the candidate together.

    Smith et al. 2017, "Offline bilingual word vectors, orthogonal transformations and the inverted softmax":
    exp(β s) / Σ over the bank's queries b of exp(β s_b).

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


class DualSoftmax:
    """The dual softmax: a similarity is multiplied by the query's share of the candidate, among a bank's queries.

    Cheng et al. 2021, "Improving Video-Text Retrieval by Multi-Stream Corpus Alignment and Dual Softmax Loss" (CAMoE),
    section 3.4, at inference: s · exp(β s) / Σ over the queries b of exp(β s_b). The paper sums over the test queries.
    With the bank of train the sum is over its queries and the query itself, so that no share is above 1.

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


class DBNorm:
    """Dual bank normalisation: the inverted softmax over a bank of queries, times that over the candidates' own kind.

    Wang, Jian and Xue 2023, "Balance Act: Mitigating Hubness in Cross-Modal Retrieval with Query and Gallery Banks"
    (EMNLP), DualIS. A caption's ranking of images is normalised over the bank's captions and over the bank's images:
    the product of exp(β s) / Σ exp(β s_b) over both, each with a β of its own, as in the released code. That code also
    takes the gallery bank's matrix for the test matrix, which does not run; here it is the test matrix. The values here
    are logarithms divided by the sum of both β.

    Args:
        bank: The split of both banks, "train" or "test".
        query_beta: β for the bank of queries.
        gallery_beta: β for the bank of candidates.

    Raises:
        InputError: If a β is not above 0.
    """

    def __init__(self, bank: BankSplit = "train", query_beta: float = 20.0, gallery_beta: float = 3.0) -> None:
        self.bank: BankSplit = bank
        self.query_beta = check_beta("db-norm", query_beta)
        self.gallery_beta = check_beta("db-norm", gallery_beta)

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Normalise each candidate over both banks."""
        queries, gallery = log_sum_exp(self.query_beta), log_sum_exp(self.gallery_beta)
        both = self.query_beta + self.gallery_beta
        rows = of_rows(bank.captions, queries) + of_rows(bank.image_images(), gallery)
        columns = of_columns(bank.images, queries) + of_columns(bank.caption_captions(), gallery)
        return Lowered(scores, rows / both, columns / both)

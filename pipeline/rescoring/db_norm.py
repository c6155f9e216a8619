"""DBNorm: the inverted softmax over a bank of queries, times that over a bank of the candidates' own kind.

Wang, Jian and Xue 2023, "Balance Act: Mitigating Hubness in Cross-Modal Retrieval with Query and Gallery Banks"
(EMNLP). A caption's ranking of images is normalised over the bank's captions and over the bank's images: the product of
exp(β s) / Σ exp(β s_b) over both, each with a β of its own, as in the released code. That code also takes the gallery
bank's matrix for the test matrix, which does not run; here it is the test matrix. The values here are logarithms
divided by the sum of both β.
"""

from __future__ import annotations

from pipeline.rescoring.bank import Bank
from pipeline.rescoring.base import BankSplit
from pipeline.rescoring.corrected import Lowered
from pipeline.rescoring.reduction import check_beta, log_sum_exp, of_columns, of_rows
from pipeline.retrieval import Similarity


class DBNorm:
    """Dual bank normalisation by inverted softmaxes (the paper's DualIS).

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

"""QB-Norm, the dynamic inverted softmax: only queries whose best candidate is a hub of the bank are normalised.

Bogolin et al. 2022, "Cross Modal Retrieval with Querybank Normalisation" (CVPR), equations 3 to 5. A hub of the bank is
a candidate among the k best of any of its queries. Logarithms divided by β stand for the released code's values: each
query is normalised as a whole or not at all, so they rank alike, and they do not overflow.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval import PerDirection, Similarity
from pipeline.evaluation.retrieval.similarity import Directions
from pipeline.parts.errors import InputError
from pipeline.systems.rescoring.bank import Bank, BankSplit
from pipeline.systems.rescoring.corrected import ForDirection
from pipeline.systems.rescoring.reduction import Values, blocks, check_beta, log_sum_exp, of_columns, of_rows

Marks = npt.NDArray[np.bool_]


def best(queries: Values, k: int) -> Marks:
    """Mark the k best candidates of each query."""
    width = queries.shape[1]
    if k >= width:
        return np.ones(queries.shape, bool)
    return np.asarray(queries >= np.partition(queries, width - k, axis=1)[:, width - k][:, None])


def hubs(blocks: Iterable[Values], k: int) -> Marks:
    """Find the candidates that are among the k best of any query."""
    return np.asarray(np.logical_or.reduce([best(block, k).any(0) for block in blocks]))


class QBNorm:
    """Querybank normalisation by the dynamic inverted softmax.

    A query is normalised if any of its best candidates, where several are equally similar, is a hub of the bank.

    Args:
        bank: The split of the bank's queries, "train" or "test".
        beta: β, the inverse temperature.
        k: How many candidates each of the bank's queries makes hubs.

    Raises:
        InputError: If β is not above 0, or k is below 1.
    """

    def __init__(self, bank: BankSplit = "train", beta: float = 20.0, k: int = 1) -> None:
        if k < 1:
            raise InputError(f"qb-norm: k must be at least 1, got {k}")
        self.bank: BankSplit = bank
        self.beta, self.k = check_beta("qb-norm", beta), k

    def rescore(self, scores: Similarity, bank: Bank) -> PerDirection:
        """Normalise the queries whose best candidate is a hub."""
        total = log_sum_exp(self.beta)
        captions = of_columns(bank.images, total) / self.beta, hubs(blocks(bank.images, "i2t"), self.k)
        images = of_rows(bank.captions, total) / self.beta, hubs(blocks(bank.captions, "t2i"), self.k)
        return Directions(_lowered(scores, True, *captions), _lowered(scores, False, *images))


def _lowered(scores: Similarity, by_image: bool, totals: Values, are_hubs: Marks) -> Similarity:
    """Take off the candidates' totals where the query's best candidate is a hub."""
    every = blocks(scores, "i2t" if by_image else "t2i")
    reaches = np.concatenate([(best(queries, 1) & are_hubs).any(1) for queries in every]).astype(np.float64)

    def correct(cells: Values, query: np.ndarray, candidate: np.ndarray) -> Values:
        return np.asarray(cells - reaches[query] * totals[candidate])

    return ForDirection(scores, by_image, correct)

"""Corrections by nearest neighbours: a candidate loses what it is similar to its nearest queries on average."""

from pipeline.evaluation.retrieval import Similarity
from pipeline.parts.errors import InputError
from pipeline.systems.rescoring.bank import Bank, BankSplit
from pipeline.systems.rescoring.corrected import Lowered
from pipeline.systems.rescoring.reduction import mean_of_greatest, of_columns, of_rows


class NNN:
    """Nearest neighbour normalisation.

    Chowdhury et al. 2024, "Nearest Neighbor Normalization Improves Multimodal Retrieval" (EMNLP): s - α · mean of the
    candidate's k greatest similarities to the bank.

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


class CSLS:
    """Cross-domain similarity local scaling: also a query loses what it is similar to on average.

    Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.3: with s an entry of the matrix and r the
    mean of the k greatest similarities of its row and of its column, CSLS = 2 s - r_row - r_column. The neighbours are
    those of the whole split, also for protocols that divide it into folds.

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

"""Hubness corrections by a bank of queries: by nearest neighbours, and by softmaxes over the
queries.

A candidate that is similar to many queries of the bank counts less. For softmaxes except the dual
one, the new similarities are logarithms divided by β: they rank as the softmaxes do, and do not
overflow.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from pipeline.foundation.evaluation.retrieval import (
    Cells,
    Direction,
    Floats,
    Ids,
    Marks,
    PerDirection,
    Scores,
    Similarity,
)
from pipeline.foundation.evaluation.retrieval.similarity import Directions, whole_queries
from pipeline.judge.systems.fusion.combining import CellByCell
from pipeline.judge.systems.rescoring import options as of
from pipeline.judge.systems.rescoring.bank import Bank, BankSplit

BLOCK_BYTES = 64 * 2**20


def blocks(scores: Scores, direction: Direction) -> Iterator[Floats]:
    """Read whole queries, as rows: images for i2t, captions for t2i."""
    for _, cells in whole_queries(scores, direction, BLOCK_BYTES):
        yield np.ascontiguousarray(cells, np.float64)


def of_each(scores: Similarity, direction: Direction, value: Callable[[Floats], Floats]) -> Floats:
    """Compute a value of each query: of rows for i2t, of columns for t2i."""
    return np.concatenate([value(block) for block in blocks(scores, direction)])


def mean_of_greatest(k: int) -> Callable[[Floats], Floats]:
    """Make the mean of each row's k greatest values."""

    def mean(rows: Floats) -> Floats:
        width = rows.shape[1]
        if width > k:
            rows = np.partition(rows, width - k, axis=1)[:, -k:]
        # Sorted, so that equal rows have equal means.
        in_order = np.sort(rows, axis=1)
        return np.asarray(in_order.mean(1))

    return mean


def log_sum_exp(beta: float) -> Callable[[Floats], Floats]:
    """Make the logarithm of each row's sum of exp(β s), which does not overflow."""

    def total(rows: Floats) -> Floats:
        scaled = beta * rows
        greatest = scaled.max(1)
        sums = np.exp(scaled - greatest[:, None]).sum(1)
        return np.asarray(greatest + np.log(sums))

    return total


# From cells in float64, and two int64 arrays that broadcast to their shape, to new cells. The
# arrays are each cell's row and column, or its query and candidate.
Correct = Callable[[Floats, Ids, Ids], Floats]


class Corrected(CellByCell):
    """Similarities [I, C] computed cell by cell from a source's, in float64, and rounded to
    float32.
    """

    def __init__(self, source: Similarity, correct: Correct, copies: int = 4) -> None:
        super().__init__([source])
        self.correct = correct
        self.copies = copies

    def cells(self, parts: Iterator[Cells], images: Ids, captions: Ids) -> Cells:
        part = np.asarray(next(parts), np.float64)
        return self.correct(part, images, captions).astype(np.float32)


def lowered(source: Similarity, of_rows: Floats, of_columns: Floats, scale: float = 1) -> Corrected:
    """Subtract a value of the row [I] and one of the column [C] from a multiple of the similarities
    [I, C].

    An image's ranking of captions does not depend on the row's value, a caption's ranking of images
    not on the column's. So one matrix serves both directions.
    """

    def correct(cells: Floats, rows: Ids, columns: Ids) -> Floats:
        return np.asarray(cells * scale - of_rows[rows] - of_columns[columns])

    return Corrected(source, correct)


def by_query(source: Similarity, by_image: bool, correct: Correct) -> Corrected:
    """Correct for one direction, whose queries are images or captions."""
    if by_image:
        return Corrected(source, correct, copies=6)
    return Corrected(source, lambda cells, rows, columns: correct(cells, columns, rows), copies=6)


class NNN:
    """Nearest neighbour normalisation.

    Chowdhury et al. 2024, "Nearest Neighbor Normalization Improves Multimodal Retrieval" (EMNLP): s
    - α · mean of the candidate's k greatest similarities to the bank.
    """

    def __init__(self, options: of.NNNOptions) -> None:
        self.bank: BankSplit = options.bank
        self.mean = mean_of_greatest(options.neighbours)
        self.weight = options.weight

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Subtract each candidate's mean similarity to its nearest queries of the bank."""
        rows = self.weight * of_each(bank.captions, "i2t", self.mean)
        columns = self.weight * of_each(bank.images, "t2i", self.mean)
        return lowered(scores, rows, columns)


class CSLS:
    """Cross-domain similarity local scaling: subtracts mean similarities to nearest neighbours.

    Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.3: with s an entry of
    the matrix and r the mean of the k greatest similarities of its row and of its column, CSLS = 2
    s - r_row - r_column. The neighbours are those of the whole split, also for protocols that
    divide it into folds.
    """

    bank: BankSplit = "test"

    def __init__(self, options: of.CSLSOptions) -> None:
        self.mean = mean_of_greatest(options.neighbours)

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Subtract the mean of the greatest similarities of each row and of each column."""
        rows = of_each(scores, "i2t", self.mean)
        columns = of_each(scores, "t2i", self.mean)
        return lowered(scores, rows, columns, scale=2)


class _BySoftmax:
    """A softmax over the queries of a bank."""

    def __init__(self, options: of.InvertedSoftmaxOptions) -> None:
        self.bank: BankSplit = options.bank
        self.beta = options.beta


class InvertedSoftmax(_BySoftmax):
    """The inverted softmax: the exponential of a similarity is divided by the candidate's sum over
    a bank's queries.

    Smith et al. 2017, "Offline bilingual word vectors, orthogonal transformations and the inverted
    softmax": exp(β s) / Σ over the bank's queries b of exp(β s_b).
    """

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Normalise each candidate over the bank's queries."""
        total = log_sum_exp(self.beta)
        rows = of_each(bank.captions, "i2t", total)
        columns = of_each(bank.images, "t2i", total)
        return lowered(scores, rows / self.beta, columns / self.beta)


class DualSoftmax(_BySoftmax):
    """The dual softmax: a similarity is multiplied by its softmax over a bank's queries for the
    same candidate.

    Cheng et al. 2021, "Improving Video-Text Retrieval by Multi-Stream Corpus Alignment and Dual
    Softmax Loss" (CAMoE), section 3.4, at inference: s · exp(β s) / Σ over the queries b of exp(β
    s_b). The paper sums over the test queries. With the bank of train the sum is over its queries
    and the query itself, so that no share is above 1.
    """

    def rescore(self, scores: Similarity, bank: Bank) -> PerDirection:
        """Multiply each similarity by its softmax over the bank's queries."""
        total = log_sum_exp(self.beta)
        of_captions = of_each(bank.images, "t2i", total)
        of_images = of_each(bank.captions, "i2t", total)
        return Directions(
            self._shared(scores, True, of_captions), self._shared(scores, False, of_images)
        )

    def _shared(self, scores: Similarity, by_image: bool, totals: Floats) -> Similarity:
        def correct(cells: Floats, query: np.ndarray, candidate: np.ndarray) -> Floats:
            above = self.beta * cells - totals[candidate]
            if self.bank == "test":
                return np.asarray(cells * np.exp(above))
            return np.asarray(cells * np.exp(-np.logaddexp(0, -above)))

        return by_query(scores, by_image, correct)


class DBNorm:
    """Dual bank normalisation: the inverted softmax over a bank of queries, times that over a bank
    of candidates.

    Wang, Jian and Xue 2023, "Balance Act: Mitigating Hubness in Cross-Modal Retrieval with Query
    and Gallery Banks" (EMNLP), DualIS. A caption's ranking of images is normalised over the bank's
    captions and over the bank's images: the product of exp(β s) / Σ exp(β s_b) over both, each with
    a β of its own, as in the released code. That code also takes the gallery bank's matrix for the
    test matrix, which does not run; here it is the test matrix. The values here are logarithms
    divided by the sum of both β.
    """

    def __init__(self, options: of.DBNormOptions) -> None:
        self.bank: BankSplit = options.bank
        self.query_beta = options.query_beta
        self.gallery_beta = options.gallery_beta

    def rescore(self, scores: Similarity, bank: Bank) -> Similarity:
        """Normalise each candidate over both banks."""
        queries = log_sum_exp(self.query_beta)
        gallery = log_sum_exp(self.gallery_beta)
        both = self.query_beta + self.gallery_beta
        rows = of_each(bank.captions, "i2t", queries)
        rows = rows + of_each(bank.image_images(), "i2t", gallery)
        columns = of_each(bank.images, "t2i", queries)
        columns = columns + of_each(bank.caption_captions(), "t2i", gallery)
        return lowered(scores, rows / both, columns / both)


class QBNorm(_BySoftmax):
    """Querybank normalisation: the inverted softmax, only for queries whose best candidate is a hub
    ("dynamic").

    Bogolin et al. 2022, "Cross Modal Retrieval with Querybank Normalisation" (CVPR), equations 3 to
    5. A hub of the bank is a candidate among the k best of any of its queries. Logarithms divided
    by β replace the released code's values: each query is normalised as a whole or not at all, so
    they rank alike, and they do not overflow. If several candidates are the best with equal
    similarity, the query is normalised if any of them is a hub.
    """

    def __init__(self, options: of.QBNormOptions) -> None:
        super().__init__(options)
        self.k = options.k

    def rescore(self, scores: Similarity, bank: Bank) -> PerDirection:
        """Normalise the queries whose best candidate is a hub."""
        total = log_sum_exp(self.beta)
        of_captions = of_each(bank.images, "t2i", total) / self.beta
        hub_captions = hubs(blocks(bank.images, "i2t"), self.k)
        of_images = of_each(bank.captions, "i2t", total) / self.beta
        hub_images = hubs(blocks(bank.captions, "t2i"), self.k)
        return Directions(
            _lowered(scores, True, of_captions, hub_captions),
            _lowered(scores, False, of_images, hub_images),
        )


def _lowered(scores: Similarity, by_image: bool, totals: Floats, are_hubs: Marks) -> Similarity:
    """Subtract the candidates' totals for queries whose best candidate is a hub."""
    direction: Direction = "i2t" if by_image else "t2i"
    reach_hubs = []
    for part in blocks(scores, direction):
        are_best_hubs = best(part, 1) & are_hubs
        reach_hubs.append(are_best_hubs.any(1))
    reaches = np.concatenate(reach_hubs).astype(np.float64)

    def correct(cells: Floats, query: np.ndarray, candidate: np.ndarray) -> Floats:
        return np.asarray(cells - reaches[query] * totals[candidate])

    return by_query(scores, by_image, correct)


def best(queries: Floats, k: int) -> Marks:
    """Mark the k best candidates of each query."""
    width = queries.shape[1]
    if k >= width:
        return np.ones(queries.shape, bool)
    place = width - k
    least = np.partition(queries, place, axis=1)[:, place, None]
    return np.asarray(queries >= least)


def hubs(blocks: Iterable[Floats], k: int) -> Marks:
    """Find the candidates that are among the k best of any query."""
    of_blocks = [best(block, k).any(0) for block in blocks]
    return np.asarray(np.logical_or.reduce(of_blocks))

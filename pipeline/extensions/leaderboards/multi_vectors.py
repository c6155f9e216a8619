"""Late interaction of stored tokens: the score of a candidate is the sum over the query's tokens of
the largest inner product with one of its tokens (MaxSim; Khattab and Zaharia, SIGIR 2020, Eq. 3).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.retrieval.rounding import Precision, rounded
from pipeline.foundation.parts.errors import InputError

Floats = npt.NDArray[np.float32]
# Bytes of a pair's score and places, and of all pairs of a pool.
PAIR = 24
LARGEST = 1 << 32
PRODUCTS = 1 << 25  # inner products of tokens that are kept at a time


class Candidates(NamedTuple):
    """The tokens of n candidates, one after another."""

    tokens: Floats  # [T, D]
    start: npt.NDArray[np.int64]  # [n], the first token of each candidate that has some
    has_tokens: npt.NDArray[np.bool_]  # [n]
    # [n], whether rows of zeros pad a candidate and are compared, too; None for no candidate.
    is_padded: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, items: Sequence[Floats], padded_to: int = 0) -> "Candidates":
        """Put items [tokens, D] together. padded_to: the tokens that each has with its padding, 0
        where this does not count.

        Raises:
            InputError: For values that are not finite, and for tokens of several sizes.
        """
        dimensions = {item.shape[1] for item in items}
        if len(dimensions) != 1:
            raise InputError(
                f"the candidates' vectors have the sizes {sorted(dimensions)}, expected one"
            )
        if not all(np.isfinite(item).all() for item in items):
            raise InputError("a candidate's vector holds NaN or infinity: it cannot be ranked")
        sizes = np.array([len(item) for item in items])
        start = np.cumsum(sizes) - sizes
        is_padded = None
        if padded_to:
            is_padded = sizes < padded_to
        return cls(np.concatenate(items), start[sizes > 0], sizes > 0, is_padded)


def require_kept(queries: int, candidates: int) -> None:
    """Refuse more pairs than are kept in memory."""
    if PAIR * queries * candidates > LARGEST:
        raise InputError(
            f"{queries:,} queries x {candidates:,} candidates are more pairs than are kept; give fewer queries"
        )


def tokens_of(vectors: np.ndarray) -> Floats:
    """The tokens of an item, float32 [tokens, D], without rows of zeros, which pad it.

    Inner products with padding are 0: with it, a page whose tokens all point away from a query
    would score 0 in a batch with longer pages, and less alone.
    """
    if np.iscomplexobj(vectors):
        raise InputError("vectors are complex numbers, expected real ones")
    rows = np.atleast_2d(np.asarray(vectors, np.float32))
    return rows[rows.any(axis=1)]


def maxsim(query: Floats, candidates: Candidates, precision: Precision = "given") -> Floats:
    """The scores of a query's tokens [T, D] with each of n candidates, float32 [n]; the least that
    there is for one without tokens, or 0 if its padding counts.

    precision: to which products and sums are rounded; sums are added up in float32, as torch and
        numpy add values of two bytes.
    """
    if query.shape[1] != candidates.tokens.shape[1]:
        raise InputError(
            f"a query's vectors have the size {query.shape[1]}, the candidates' {candidates.tokens.shape[1]}"
        )
    if not np.isfinite(query).all():
        raise InputError("a query's vector holds NaN or infinity: it cannot be ranked")
    scores = np.full(len(candidates.has_tokens), np.finfo(np.float32).min)
    is_padded = np.zeros(len(scores), bool)
    if candidates.is_padded is not None:
        is_padded = candidates.is_padded
        scores[is_padded] = 0
    if not len(query) or not len(candidates.tokens):
        return scores
    total = np.zeros(len(candidates.start), np.float32)
    together = max(1, PRODUCTS // len(candidates.tokens))
    for first in range(0, len(query), together):
        products = query[first : first + together] @ candidates.tokens.T
        best_of_each = np.maximum.reduceat(products, candidates.start, axis=1)
        best_of_each = rounded(best_of_each, precision)  # as the best of rounded products
        of_padded = is_padded[candidates.has_tokens]
        best_of_each[:, of_padded] = np.maximum(best_of_each[:, of_padded], 0)
        total += best_of_each.sum(axis=0)
    scores[candidates.has_tokens] = rounded(total, precision)
    return scores

"""Welch's test: a difference whose variance is a sum of variances with degrees of freedom of their own."""

from collections.abc import Sequence

import numpy as np

from pipeline.evaluation.retrieval import Floats


def welch(difference: Floats, parts: Floats, freedoms: Sequence[float]) -> tuple[Floats, Floats, Floats]:
    """The standard error, its degrees of freedom and the two-sided p of differences.

    Args:
        difference: [...], the differences.
        parts: [M, ...], the parts of their variance, whose sum is above 0.
        freedoms: [M], the parts' degrees of freedom.

    Source: Satterthwaite, Biometrics Bulletin 1946.
    """
    from scipy.special import stdtr  # takes 0.2 s to import

    whole = parts.sum(0)
    freedom = whole**2 / sum(part**2 / each for part, each in zip(parts, freedoms, strict=True))
    error = np.sqrt(whole)
    return error, freedom, np.asarray(2 * stdtr(freedom, -np.abs(difference) / error))

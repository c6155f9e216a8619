"""Student's t and chi-square, to ten digits or more.

SciPy has both, too; it takes 100 MB, and a quarter of a second to import.
"""

import math
from functools import lru_cache

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats

# From which argument on the series of `_ratio` is exact to the last digits.
LARGE = 40
# Steps that change less than this share are of rounding alone.
ROUNDING = 1e-14
FARTHEST = 1e150  # a t whose square is a number


def chance_beyond(freedom: Floats, t: Floats) -> Floats:
    """Compute the chance that Student's t is as far from 0 as some values, or farther: the p of a
    two-sided test.

    It is the regularised incomplete beta function I(freedom / 2, 1 / 2) of
    freedom / (freedom + t²), or 1 less that of the rest: whose continued fraction is the shorter.

    Args:
        freedom: The degrees of freedom, 1 or more, [n].
        t: The values, [n].

    Returns:
        The chances, float64 [n].
    """
    half = freedom / 2
    square = np.minimum(np.abs(t), FARTHEST) ** 2
    near = square / (freedom + square)
    far = freedom / (freedom + square)
    is_far = far < (half + 1) / (half + 2.5)
    a = np.where(is_far, half, 0.5)
    b = np.where(is_far, 0.5, half)
    x = np.where(is_far, far, near)
    y = np.where(is_far, near, far)
    front = _ratio(half) * np.sqrt(near / np.pi) * np.exp(-half * np.log1p(square / freedom))
    beta = front / _fraction(a, b, x, y)
    return np.where(is_far, beta, 1 - beta)


@lru_cache(maxsize=128)  # each metric of a pool asks for the same
def quantile(freedom: float, share: float) -> float:
    """Find the value below which a share of Student's t is, as `quantiles` does."""
    return float(quantiles(np.array(freedom, np.float64), share))


def quantiles(freedom: Floats, share: float) -> Floats:
    """Find the values below which a share of Student's t is, by Newton's method. The chance beyond
    t is convex, so that steps from 0 never pass the quantile.

    Args:
        freedom: The degrees of freedom, 1 or more, [n].
        share: The share, 0.5 or more and below 1.

    Returns:
        The quantiles, float64 [n].
    """
    t = np.zeros(freedom.shape)
    density_at_0 = _ratio(freedom / 2) / np.sqrt(np.pi * freedom)
    step = np.full(freedom.shape, np.inf)
    while (step > ROUNDING * (1 + t)).any():
        density = density_at_0 * np.exp(-(freedom + 1) / 2 * np.log1p(t**2 / freedom))
        step = (chance_beyond(freedom, t) - 2 * (1 - share)) / (2 * density)
        t = t + step
    return t


@lru_cache(maxsize=128)  # each number of some runs asks for the same
def chi_square(freedom: int, share: float) -> float:
    """Find the value above which a share of chi-square is, 0.99 at most, by bisection."""
    low = 0.0
    high = float(freedom)
    while _above(freedom, high) > share:
        high *= 2
    middle = high / 2
    while low < middle < high:
        if _above(freedom, middle) > share:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return middle


def _above(freedom: int, value: float) -> float:
    """The share of chi-square above a value: a finite sum for whole degrees of freedom."""
    half = value / 2
    share = 0.0
    if freedom % 2:
        share = math.erfc(math.sqrt(half))
    for place in np.arange(freedom % 2 / 2, freedom / 2).tolist():
        share += math.exp(place * math.log(half) - half - math.lgamma(place + 1))
    return share


def _fraction(a: Floats, b: Floats, x: Floats, y: Floats) -> Floats:
    """The continued fraction by which x^a y^b / B(a, b) is divided for I(a, b) of x, by Lentz's
    method; y is 1 - x.

    Source: DiDonato and Morris, ACM Transactions on Mathematical Software 1992, BFRAC.
    """
    found = a * (a * y - b * x + 1) / (a + 1)
    c = found
    d = np.zeros(x.shape)
    change = np.zeros(x.shape)
    m = 0
    while (np.abs(change - 1) > ROUNDING).any():
        m += 1
        above = (a + m - 1) * (a + b + m - 1) * m * (b - m) * (x / (a + 2 * m - 1)) ** 2
        below = m + m * (b - m) * x / (a + 2 * m - 1)
        below = below + (a + m) * (a * y - b * x + 1 + m * (1 + y)) / (a + 2 * m + 1)
        d = 1 / (below + above * d)
        c = below + above / c
        change = c * d
        found = found * change
    return found


def _ratio(a: Floats) -> Floats:
    """Compute gamma(a + 1/2) / gamma(a), by its series for large a."""
    shift = np.ones(a.shape)
    while (a < LARGE).any():
        is_small = a < LARGE
        shift = np.where(is_small, shift * a / (a + 0.5), shift)
        a = np.where(is_small, a + 1, a)
    series = 1 - 1 / (8 * a) + 1 / (128 * a**2) + 5 / (1024 * a**3)
    series = series - 21 / (32768 * a**4) - 399 / (262144 * a**5) + 869 / (4194304 * a**6)
    return np.asarray(shift * np.sqrt(a) * series)

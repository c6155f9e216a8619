"""Student's t and chi-square are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from pipeline.foundation.evaluation.statistics.distributions import (
    chance_beyond,
    chi_square,
    quantile,
    quantiles,
)

FREEDOMS = np.array([1, 1.0001, 1.5, 2, 3, 4.7, 9.3, 30, 49, 120.5, 399, 4999, 123_286.5, 1e7, 1e9])
pytestmark = pytest.mark.specification


def test_chances_beyond_t_are_those_of_scipy() -> None:
    """From 0 to a tail that is no number any more, on both sides of the change of fractions."""
    values = np.array([0, 1e-12, 1e-4, 0.1, 1, 1.7, 1.74, 1.8, -2, 5, 10, -37, 1e3, 1e6, 1e100])
    freedom, t = map(np.ravel, np.meshgrid(FREEDOMS, values))
    expected = 2 * special.stdtr(freedom, -np.abs(t))
    np.testing.assert_allclose(chance_beyond(freedom, t), expected, rtol=1e-10, atol=1e-290)
    assert (chance_beyond(FREEDOMS, np.full(len(FREEDOMS), np.inf)) < 1e-100).all()


@pytest.mark.parametrize("share", [0.5, 0.55, 0.9, 0.975, 0.9995, 1 - 1e-9])
def test_quantiles_of_t_are_those_of_scipy(share: float) -> None:
    expected = special.stdtrit(FREEDOMS, share)
    found = quantiles(FREEDOMS, share)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert quantile(3, share) == pytest.approx(found[FREEDOMS == 3][0], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("share", [1e-6, 0.025, 0.5, 0.975, 0.99])
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 10, 99, 2000, 5001])
def test_quantiles_of_chi_square_are_those_of_scipy(freedom: int, share: float) -> None:
    assert chi_square(freedom, share) == pytest.approx(special.chdtri(freedom, share), rel=1e-10)

"""Quantiles of Student's t are SciPy's."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from pipeline.foundation.evaluation.statistics.wilson import quantile


@pytest.mark.specification
@pytest.mark.parametrize("share", [0.55, 0.9, 0.975, 0.9995])
@pytest.mark.parametrize("freedom", [1, 2, 3, 9, 49, 399, 400, 999, 4999, 123_286, 10**7])
def test_is_that_of_scipy(freedom: int, share: float) -> None:
    assert quantile(freedom, share) == pytest.approx(float(stdtrit(freedom, share)), rel=2e-9)

"""Intervals of ranks, from differences and their corrected p."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.statistics.all_pairs import all_pairs
from pipeline.foundation.evaluation.statistics.rank_intervals import rank_intervals

PISA = (
    ("Japan", 526.9732502, 2.471475318, 1, 6),
    ("Korea", 525.933002, 3.121394315, 1, 7),
    ("Estonia", 523.4145802, 1.743602224, 1, 6),
    ("Netherlands", 519.2309824, 2.632277885, 1, 11),
    ("Poland", 515.6478747, 2.602085176, 1, 12),
    ("Switzerland", 515.3147131, 2.908003898, 1, 13),
    ("Canada", 512.0169429, 2.357475749, 3, 17),
    ("Denmark", 509.3983746, 1.735002337, 4, 18),
    ("Slovenia", 508.8975441, 1.363877596, 4, 18),
    ("Belgium", 508.0703063, 2.262662011, 4, 18),
    ("Finland", 507.3013618, 1.967920411, 4, 18),
    ("Sweden", 502.3877022, 2.654250935, 5, 24),
    ("United Kingdom", 501.7698992, 2.564428111, 6, 24),
    ("Norway", 500.9637885, 2.219044878, 7, 24),
    ("Germany", 500.0437805, 2.647083096, 7, 25),
    ("Ireland", 499.632894, 2.198621128, 8, 25),
    ("Czech Republic", 499.4676508, 2.460661531, 7, 25),
    ("Austria", 498.9423138, 2.970998694, 7, 26),
    ("Latvia", 496.1263306, 1.962766789, 12, 26),
    ("France", 495.4075794, 2.320214487, 12, 26),
    ("Iceland", 495.1873762, 1.953082603, 12, 26),
    ("New Zealand", 494.489676, 1.705942856, 12, 26),
    ("Portugal", 492.4874062, 2.684570081, 12, 31),
    ("Australia", 491.3600252, 1.939833031, 12, 30),
    ("Italy", 486.5898573, 2.780045867, 15, 31),
    ("Slovak Republic", 486.1648542, 2.555595707, 18, 31),
    ("Luxembourg", 483.421485, 1.097632409, 23, 31),
    ("Spain", 481.3926126, 1.462417763, 24, 31),
    ("Lithuania", 481.1911884, 1.953282039, 23, 31),
    ("Hungary", 481.0826364, 2.319596741, 23, 31),
    ("United States", 478.2447174, 3.235444099, 23, 32),
    ("Israel", 463.0345488, 3.498563228, 31, 34),
    ("Turkey", 453.5077774, 2.260406789, 32, 34),
    ("Greece", 451.3703438, 3.091228197, 32, 34),
    ("Chile", 417.4065563, 2.41588757, 35, 36),
    ("Mexico", 408.8014734, 2.493225544, 35, 36),
    ("Colombia", 390.9322732, 2.989559274, 37, 37),
)
"""OECD countries, their mean scores in mathematics of PISA 2018, standard errors, and the best and
the worst rank that the figure "95% simultaneous confidence sets" of R's csranks shows, the package
of Mogstad, Romano, Shaikh and Wilhelm.
"""


@pytest.mark.specification
def test_four_systems_by_hand() -> None:
    """Of 70, 75, 72 and 60 the second is above the first and all are above the last, p below 0.05;
    the third differs from neither of the first two.
    """
    values = np.array([70.0, 75.0, 72.0, 60.0])
    adjusted = np.full((4, 4), 0.01)
    adjusted[2, :2] = 0.05
    adjusted[:2, 2] = 0.05
    np.fill_diagonal(adjusted, 1)
    found = rank_intervals(values[None] - values[:, None], adjusted)
    assert found.best.tolist() == [2, 1, 1, 4]
    assert found.worst.tolist() == [3, 2, 3, 4]
    assert np.argwhere(found.above).tolist() == [[0, 3], [1, 0], [1, 3], [2, 3]]
    strict = rank_intervals(values[None] - values[:, None], adjusted, level=0.01)
    assert (strict.best.tolist(), strict.worst.tolist()) == ([1] * 4, [4] * 4)


def by_formula(
    values: np.ndarray, covariance: np.ndarray, draws: np.ndarray, drops_both: bool = False
) -> np.ndarray:
    """Best and worst ranks [K, 2] of Mogstad and others: ordered pairs are dropped that differ by
    more than the 95 % quantile of the largest standardised difference of normal draws [B, K] over
    the pairs that are left, until none is. drops_both: as tests of two sides do, also in the other
    order.
    """
    variances = covariance.diagonal()
    errors = np.sqrt(variances[:, None] + variances - 2 * covariance)
    np.fill_diagonal(errors, 1)
    clear = (values[:, None] - values) / errors
    left = ~np.eye(len(values), dtype=bool)
    above = np.zeros_like(left)
    while True:
        largest = np.full(len(draws), -np.inf)
        for system in range(len(values)):
            others = left[system]
            if others.any():
                apart = (draws[:, [system]] - draws[:, others]) / errors[system, others]
                largest = np.maximum(largest, apart.max(1))
        dropped = left & (clear > np.quantile(largest, 0.95))
        if not dropped.any():
            return np.stack([1 + above.sum(0), len(values) - above.sum(1)], 1)
        above |= dropped
        left &= ~dropped
        if drops_both:
            left &= ~dropped.T


def by_swaps(parts: np.ndarray) -> np.ndarray:
    """Best and worst ranks [K, 2] of systems with these parts [K, N], as they are printed."""
    tested = all_pairs(parts[:, None], 4000, 0)
    found = rank_intervals(tested.difference[..., 0], tested.adjusted[..., 0])
    return np.stack([found.best, found.worst], 1)


def is_within(ours: np.ndarray, others: np.ndarray) -> bool:
    return bool(((ours[:, 0] >= others[:, 0]) & (ours[:, 1] <= others[:, 1])).all())


def test_countries_have_the_ranks_that_csranks_shows() -> None:
    """By the formula all are equal. By swaps they are within, and at most two ranks narrower: for a
    pair that differs nothing is corrected any more, in neither order.
    """
    published = np.array([(best, worst) for *_, best, worst in PISA])
    values = np.array([score for _, score, *_ in PISA])
    errors = np.array([error for _, _, error, *_ in PISA])
    generator = np.random.default_rng(0)
    draws = errors * generator.standard_normal((20_000, len(PISA)))
    of_formula = (values, np.diag(errors**2), draws)
    np.testing.assert_array_equal(by_formula(*of_formula), published)
    # Images with just these means and standard errors.
    normal = generator.standard_normal((1000, len(PISA)))
    apart, _ = np.linalg.qr(normal - normal.mean(0))
    ours = by_swaps(values[:, None] + errors[:, None] * 1000 * apart.T)
    assert is_within(ours, published)
    assert np.abs(ours - published).max() <= 2
    assert np.sum(ours != by_formula(*of_formula, drops_both=True)) <= 6


def test_boards_of_many_images_have_the_ranks_of_the_formula(rng: np.random.Generator) -> None:
    """Systems with ties, near ones and clear gaps, whose numbers go together by image."""
    true = np.array([[0], [0], [0.05], [0.1], [0.1], [0.3]])
    are_equal = []
    widths = set[int]()
    for _ in range(30):
        common = rng.uniform(0, 1, (6, 3)) @ rng.standard_normal((3, 2000))
        parts = true + common + rng.standard_normal((6, 2000))
        covariance = np.cov(parts) / 2000
        draws = rng.multivariate_normal(np.zeros(6), covariance, 4000)
        of_formula = (parts.mean(1), covariance, draws)
        ours = by_swaps(parts)
        are_equal.append(np.array_equal(ours, by_formula(*of_formula, drops_both=True)))
        assert is_within(ours, by_formula(*of_formula))
        widths.update((ours[:, 1] - ours[:, 0]).tolist())
    assert np.mean(are_equal) > 0.85
    assert widths >= {0, 1, 2, 3}

"""The noise of repeated runs, beside plain NumPy, SciPy's distributions and drawn runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.foundation.evaluation.metrics import RSUM, Metrics, evaluate
from pipeline.foundation.evaluation.metrics.base import Statistic
from pipeline.foundation.evaluation.metrics.standard import measure
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.statistics import noise

IMAGES = 40
OWNER = np.repeat(np.arange(IMAGES), 2)
FIRST = Statistic("i2t", "R@1")


def scores(seed: int) -> np.ndarray:
    """A system's scores in whole numbers, so that ties abound; a seed moves a few of them."""
    right = 4 * (np.arange(IMAGES)[:, None] == OWNER)
    whole = np.random.default_rng(0).integers(0, 5, right.shape) + right
    moves = np.random.default_rng(seed).random(right.shape) < 0.05
    return (whole + moves).astype(float)


@pytest.fixture(scope="module")
def runs() -> list[Metrics]:
    return [evaluate(scores(seed), OWNER) for seed in (1, 2, 3, 4)]


def test_the_spread_is_the_deviation_over_runs_with_its_interval_by_chi_square(
    runs: list[Metrics],
) -> None:
    for count in (2, 4):
        values = np.array([run.rsum for run in runs[:count]])
        spread = noise.spreads(runs[:count])[RSUM]
        deviation = np.sqrt(((values - values.mean()) ** 2).sum() / (count - 1))
        low, high = spread.interval or (0, 0)
        assert spread.deviation == pytest.approx(deviation)
        assert spread.gap == pytest.approx(values.max() - values.min())
        # The chance of a sample deviation as small, or as large, at the ends of the interval.
        squares = (count - 1) * deviation**2
        assert stats.chi2.sf(squares / low**2, count - 1) == pytest.approx(0.025)
        assert stats.chi2.cdf(squares / high**2, count - 1) == pytest.approx(0.025)
        of_two = stats.t.ppf(0.975, count - 1) * deviation * np.sqrt(2)
        assert spread.of_two == pytest.approx(of_two)
    assert noise.factors(1)[1] == pytest.approx(32, abs=0.2)  # two runs show a floor


def test_a_rank_moves_where_its_expectation_over_ties_does(runs: list[Metrics]) -> None:
    ranks = []
    for seed in (1, 2, 3):
        of_captions = []
        for caption, column in enumerate(scores(seed).T):
            right = column[OWNER[caption]]
            of_captions.append((column > right).sum() + ((column == right).sum() + 1) / 2)
        ranks.append(of_captions)
    first, second, third = np.array(ranks)
    shares = [
        100 * np.mean(one != other)
        for one, other in ((first, second), (first, third), (second, third))
    ]
    moved = noise.moved(runs[:3])["t2i"]
    assert moved.queries == 2 * IMAGES
    assert moved.between_two == pytest.approx(np.mean(shares))
    assert moved.most == pytest.approx(max(shares))
    assert moved.in_any == pytest.approx(100 * np.mean((first != second) | (first != third)))
    assert 0 < moved.between_two < moved.most < moved.in_any < 100
    assert noise.moved([runs[0], runs[0]])["i2t"].in_any == 0


def drawn(chances: np.ndarray) -> Metrics:
    """A run in which each image's query and its one caption hit where a chance is above a half."""
    misses = (chances < 0.5).astype(np.int64)
    each = np.arange(len(misses))
    ranked = QueryRanks(each, 20 * misses, 0 * each, 1 + 0 * each)
    relevance = as_relevance(each, (len(each), len(each)))
    return measure([Ranks(ranked, ranked, relevance)])


def test_by_image_is_the_residual_of_images_and_runs(rng: np.random.Generator) -> None:
    hits = (rng.random((3, 50)) < 0.6).astype(float)
    spread = noise.spreads([drawn(of_run) for of_run in hits])[FIRST]
    percent = 100 * hits
    residual = percent - percent.mean(0) - percent.mean(1)[:, None] + percent.mean()
    mean_square = (residual**2).sum() / (2 * 49)
    assert spread.by_image == pytest.approx(np.sqrt(mean_square / 50))


def test_equal_numbers_of_runs_whose_ranks_differ_are_no_proof_of_no_noise() -> None:
    hits = np.zeros((2, 50))
    hits[0, :10] = 1
    hits[1, 5:15] = 1
    spread = noise.spreads([drawn(of_run) for of_run in hits])[FIRST]
    assert (spread.deviation, spread.interval) == (0, None)
    # Ten of fifty queries differ: the mean square of their parts is 100² · 10 / (2 · 49).
    by_image = np.sqrt(100**2 * 10 / (2 * 49) / 50)
    assert spread.by_image == pytest.approx(by_image)
    assert spread.of_two == pytest.approx(stats.t.ppf(0.975, 49) * by_image * np.sqrt(2))
    same = noise.spreads([drawn(hits[0]), drawn(hits[0])])[FIRST]
    assert (same.deviation, same.by_image, same.of_two) == (0, 0, 0)


def test_the_limit_of_two_systems_is_students_or_welchs(runs: list[Metrics]) -> None:
    def values(of_runs: list[Metrics]) -> np.ndarray:
        return np.array([run.rsum for run in of_runs])

    assert noise.limits(runs[:1], runs[1:2]) == {}
    one_sided = noise.limits(runs[:3], runs[3:])[RSUM]
    error = values(runs[:3]).std(ddof=1) * np.sqrt(1 / 3 + 1)
    assert one_sided.limit == pytest.approx(stats.t.ppf(0.975, 2) * error)
    assert noise.limits(runs[3:], runs[:3])[RSUM] == one_sided
    # SciPy's test of two samples gives p = 0.05 exactly at the limit.
    both = noise.limits(runs[:2], runs[2:])[RSUM]
    apart = values(runs[:2]) - values(runs[:2]).mean() + both.limit
    test = stats.ttest_ind(apart, values(runs[2:]) - values(runs[2:]).mean(), equal_var=False)
    assert test.pvalue == pytest.approx(0.05)


@pytest.mark.parametrize(("repeats", "common"), [(2, 0.1), (3, 0.1), (5, 0.1), (5, 0.0)])
def test_of_equal_systems_at_least_95_in_100_are_said_to_be_less_than_the_noise(
    repeats: int, common: float
) -> None:
    """Images have their own difficulty; a run moves all images alike, and each by itself."""
    generator = np.random.default_rng(repeats)
    less = 0
    for _ in range(100):
        difficulty = generator.normal(0.5, 0.5, 200)
        systems = []
        for _ in range(repeats + 1):
            moves = common * generator.normal() + 0.1 * generator.normal(size=200)
            systems.append(drawn(difficulty + moves))
        limit = noise.limits(systems[1:], systems[:1])[FIRST].limit
        difference = systems[0][FIRST] - np.mean([run[FIRST] for run in systems[1:]])
        less += bool(abs(difference) < limit)
    # 89 of 100 or fewer come by chance in less than 1 of 80 cases.
    assert less >= 90

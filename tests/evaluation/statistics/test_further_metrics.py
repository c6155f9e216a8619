"""Systems compared by further metrics, such as nDCG@10, beside recalls."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import Metrics, Statistic, evaluate, parse_all
from pipeline.foundation.evaluation.metrics.base import at
from pipeline.foundation.evaluation.metrics.standard import with_further
from pipeline.foundation.evaluation.statistics import compare, contrast, deviations, pack
from pipeline.foundation.parts.errors import InputError

IMAGES = 9
OWNER = np.repeat(np.arange(IMAGES), 2)
NDCG = Statistic("i2t", "nDCG@4")
MRR = Statistic("t2i", "MRR")


def measured(scores: np.ndarray, *metrics: str, folds: str = "all") -> Metrics:
    ranked = evaluate(scores, OWNER, folds)
    return with_further(ranked, parse_all(metrics), scores, OWNER, folds)


def drawn(noise: float, seed: int) -> np.ndarray:
    right = np.arange(IMAGES)[:, None] == OWNER
    noises = np.random.default_rng(seed).normal(size=right.shape)
    return np.asarray(right + noise * noises)


def ndcg(scores: np.ndarray) -> np.ndarray:
    """Of each image, whose two captions are right."""
    order = np.argsort(-scores, axis=1)[:, :4]
    found = OWNER[order] == np.arange(IMAGES)[:, None]
    discounts = 1 / np.log2([2, 3, 4, 5])
    return np.asarray(found @ discounts / discounts[:2].sum())


def reciprocal(scores: np.ndarray) -> np.ndarray:
    """The mean of each image's captions."""
    own = scores[OWNER, np.arange(len(OWNER))]
    ranks = 1 + (scores > own).sum(0)
    return np.asarray((1 / ranks).reshape(IMAGES, 2).mean(1))


@pytest.mark.specification
def test_difference_and_p_are_those_of_all_swaps_of_images() -> None:
    before, after = drawn(0.8, 0), drawn(0.4, 1)
    tested = compare(
        measured(before, "nDCG@4", "MRR"), measured(after, "nDCG@4", "MRR"), samples=20_000
    )
    assert len(tested) == 7 + 4
    for name, of_images in ((NDCG, ndcg), (MRR, reciprocal)):
        apart = 100 * (of_images(after) - of_images(before))
        found = tested[name]
        assert found.difference.value == pytest.approx(apart.mean())
        swapped = np.abs(np.array([*product([1, -1], repeat=IMAGES)]) @ apart) / IMAGES
        assert found.p == pytest.approx(np.mean(swapped >= swapped[0] - 1e-9), abs=0.01)
        assert found.difference.low <= apart.mean() <= found.difference.high


def test_they_are_corrected_together_with_the_recalls() -> None:
    """And RSUM, which comes last, is the sum of recalls alone, as before."""
    before = drawn(0.8, 1)
    # Some images differ by nDCG alone.
    scores = (before, before + 0.3 * np.random.default_rng(51).normal(size=before.shape))
    pairs = []
    for metrics in ((), ("nDCG@4",)):
        pairs.append(tuple([measured(each, *metrics)] for each in scores))
    ((alone,),) = contrast.together([[pairs[0]]], 2000, 0)
    ((both,),) = contrast.together([[pairs[1]]], 2000, 0)
    assert contrast.compared(both)[-1] == Statistic("", "RSUM")
    assert NDCG in contrast.compared(both)
    assert at(both, NDCG)["a"] == pytest.approx(100 * ndcg(scores[0]).mean())
    assert both["RSUM"] == alone["RSUM"]
    for name in contrast.compared(alone)[:-1]:
        row = at(both, name)
        for key in ("p", "interval"):
            assert row[key] == at(alone, name)[key], name
        assert row["adjusted"] >= at(alone, name)["adjusted"] - 0.02
    assert at(both, NDCG)["adjusted_by"] == "maxT"


def test_seeds_have_a_spread_by_them_and_stored_hits_do_not_hold_them() -> None:
    runs = [measured(drawn(0.6, seed), "nDCG@4") for seed in range(4)]
    of_seeds = [100 * ndcg(drawn(0.6, seed)).mean() for seed in range(4)]
    assert deviations(runs)[NDCG] == pytest.approx(np.std(of_seeds, ddof=1))
    ((found,),) = contrast.together([[(runs[:2], runs[2:])]], 20, 0)
    assert at(found, NDCG)["spread"]["a"] == pytest.approx(np.std(of_seeds[:2], ddof=1))
    ids = np.arange(2 * IMAGES)
    plain = [measured(drawn(0.6, seed)) for seed in range(4)]
    for with_it, without in zip(runs, plain, strict=True):
        assert pack(with_it, ids[:IMAGES], ids) == pack(without, ids[:IMAGES], ids)


@pytest.mark.parametrize("name", ["mR", "MedR", "RSUM", "MeanR"])
def test_what_is_no_mean_of_shares_of_one_direction_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="leave it out"):
        measured(drawn(0.5, 0), name)

"""What is said of compared systems: their letters, and the number that would suffice."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS, evaluate
from pipeline.foundation.evaluation.metrics.base import at
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.evaluation.statistics import Interval, families
from pipeline.foundation.evaluation.statistics.contrast import (
    in_letters,
    in_ranks,
    sufficient,
    together,
)
from pipeline.foundation.evaluation.statistics.power import OverSeeds
from pipeline.foundation.evaluation.statistics.significance import Comparison
from pipeline.foundation.parts.errors import InputError


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"images": 3401}, "3,500 images"),
        ({"images": 3400}, "3,400 images"),
        ({"images": 98_001}, "99,000 images"),
        ({"images": 99_001}, "100,000 images"),
        ({"seeds": 9, "images": 5}, "9 seeds"),
        ({"seeds": None, "images": 41}, "41 images"),
        ({"seeds": None, "images": None}, "no number"),
    ],
)
def test_what_would_suffice_is_rounded_up_to_two_digits(
    needs: dict[str, int | None], said: str
) -> None:
    assert sufficient(needs) == said


def test_letters_and_ranks_begin_with_the_largest_sum_wherever_its_system_stands() -> None:
    sums = [400.0, 500.0, 490.0, 450.0]
    alike = {(1, 2), (0, 3)}
    contrasts = []
    for one, other in combinations(range(4), 2):
        corrected = 0.5 if (one, other) in alike else 0.01
        difference = sums[other] - sums[one]
        row = {"a": sums[one], "b": sums[other], "difference": difference, "adjusted": corrected}
        contrasts.append({RSUM.metric: row})
    assert in_letters(contrasts) == ["b", "a", "a", "b"]
    assert in_ranks(contrasts) == [(3, 4), (1, 2), (1, 2), (3, 4)]


class Evidence(OverSeeds):
    """Needs more images the smaller the level is."""

    def __init__(self) -> None:
        pass

    def needs(self, level: float) -> dict[str, int | None]:
        return {"images": round(1 / level)}


def test_sums_are_corrected_among_sums_recalls_among_recalls_and_verdicts_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Holm by hand: of n tests in order of p, the i-th p is multiplied by n + 1 - i, and is no
    smaller than those before it. Of two sums, 0.03 becomes 0.06.
    """
    chances = [[0.001, 0.2, 0.0045, 0.3, 0.0042, 0.9, 0.03], [0.6, 0.0046, 0.7, 0.02, 0.4, 1, 0.2]]
    differences = [[1, 1, -1, 1, 1, 1, -2], [1, 1, 1, 1, 1, 1, 2]]
    pending = iter(zip(chances, differences, strict=True))

    def compared(*_: object, **__: object) -> dict[object, Comparison]:
        tests = zip(STATISTICS, *next(pending), strict=True)
        return {
            name: Comparison(Interval(float(gap), -9, 9, 0.95), p, 0.001, Evidence())
            for name, p, gap in tests
        }

    monkeypatch.setattr(families, "compare_hits", compared)
    runs = [evaluate(np.eye(2), np.arange(2))]
    ((first,), (second,)) = together([[(runs, runs)], [(runs, runs)]], 1000, 0)
    found = [first, second]
    recalls = sorted(p for of_pair in chances for p in of_pair[:-1])
    for family, count in ((recalls, 12), ([0.03, 0.2], 2)):
        largest = 0.0
        for before, p in enumerate(family):
            factor = count - before
            largest = max(largest, min(1.0, factor * p))
            for of_pair, chances_of_pair, gaps in zip(found, chances, differences, strict=True):
                for name, own, gap in zip(STATISTICS, chances_of_pair, gaps, strict=True):
                    if own != p or (name == RSUM) != (count == 2):
                        continue
                    row = at(of_pair, name)
                    assert row["adjusted"] == pytest.approx(largest), (name, p)
                    if largest < 0.05:
                        assert row["verdict"] == ("higher" if gap > 0 else "lower")
                        assert row["needs"] is None
                    else:
                        assert row["verdict"].startswith("cannot tell; "), (name, p)
                        assert row["needs"] == {"images": round(factor / 0.05)}, (name, p)
    assert [each["RSUM"]["adjusted"] for each in found] == pytest.approx([0.06, 0.2])
    verdicts = [at(found[0], name)["verdict"] for name in STATISTICS[:3]]
    assert verdicts[0] == "higher"
    assert verdicts[2] == "lower"


def test_systems_of_one_pool_were_measured_alike() -> None:
    runs = [[evaluate(np.eye(4), np.arange(4), rules)] for rules in ("all", Protocol("2", folds=2))]
    with pytest.raises(InputError, match="measure both alike"):
        together([[(runs[0], runs[0]), (runs[0], runs[1])]], 20, 0)


def test_each_side_has_its_own_seeds_means_and_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OverSeeds, "needs", Evidence.needs)
    generator = np.random.default_rng(0)
    owner = np.arange(12)
    runs = [evaluate(generator.random((12, 12)), owner) for _ in range(5)]
    ((found,),) = together([[(runs[:2], runs[2:])]], 20, 0)
    assert found["seeds"] == {"a": 2, "b": 3}
    assert found["over"] == ["images", "seeds"]
    for side, of_side in (("a", runs[:2]), ("b", runs[2:])):
        sums = [run.rsum for run in of_side]
        assert found["RSUM"][side] == pytest.approx(np.mean(sums))
        assert found["RSUM"]["spread"][side] == pytest.approx(np.std(sums, ddof=1))
    assert found["RSUM"]["difference"] == pytest.approx(found["RSUM"]["b"] - found["RSUM"]["a"])

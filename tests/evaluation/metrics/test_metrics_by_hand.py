"""The definitions of metrics, on matrices that can be checked by hand, and the fast path against
them.
"""

from __future__ import annotations

import metric_definitions as definitions
import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import METRICS, evaluate
from pipeline.foundation.evaluation.retrieval import consecutive_captions

# Two images, six captions: a, b, c are right for the first image, d, e, f for the second.
#                    a    b    c    d    e    f
# Order b a f d e c
SCORES = np.array(
    [
        [0.9, 0.1, 0.2, 0.8, 0.7, 0.3],  # order a d e f c b
        [0.5, 0.6, 0.0, 0.3, 0.2, 0.4],
    ]
)
RIGHT = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=bool)


@pytest.mark.specification
def test_a_matrix_checked_by_hand() -> None:
    # The first image finds a first, the second f third. Captions: a c find their image; b, d, e the
    # other; f its own.
    assert definitions.summary(SCORES, RIGHT) == pytest.approx(
        {
            "i2t R@1": 50,
            "i2t R@5": 100,
            "i2t R@10": 100,
            "i2t MedR": 2,
            "i2t MeanR": 2,
            "t2i R@1": 50,
            "t2i R@5": 100,
            "t2i R@10": 100,
            "t2i MedR": 1.5,
            "t2i MeanR": 1.5,
            "RSUM": 500,
            "mR": 500 / 6,
        }
    )


@pytest.mark.specification
@pytest.mark.parametrize(
    ("name", "k", "value"),
    [
        # Grades in ranked order 0 2 0 1: right candidates at places 2 and 4.
        ("R", 1, 0),
        ("R", 2, 1),
        ("Recall", 2, 1 / 2),
        ("Recall", 4, 1),
        ("P", 4, 2 / 4),
        ("MRR", None, 1 / 2),
        ("MRR", 1, 0),
        ("AP", None, (1 / 2 + 2 / 4) / 2),
        ("AP", 2, 1 / 4),
        ("mAP@R", None, 1 / 4),
        ("Rprec", None, 1 / 2),
        ("MeanR", None, 2),
        ("nDCG", None, (2 / np.log2(3) + 1 / np.log2(5)) / (2 + 1 / np.log2(3))),
        ("nDCG", 1, 0),
    ],
)
def test_a_query_checked_by_hand(name: str, k: int | None, value: float) -> None:
    assert definitions.DEFINITIONS[name](np.array([0, 2, 0, 1]), k) == pytest.approx(value)


@pytest.mark.specification
def test_tied_candidates_stand_in_every_order() -> None:
    assert definitions.orders(np.array([1, 3, 1])) == [[1, 0, 2], [1, 2, 0]]


def test_every_metric_has_a_definition() -> None:
    assert {*METRICS} == {*definitions.DEFINITIONS, "MedR", "mean_recall", "RSUM", "mR"}


def test_the_fast_path_measures_what_is_defined(rng: np.random.Generator) -> None:
    scores = rng.permutation(30 * 150).reshape(30, 150) + 2000.0 * np.eye(30).repeat(5, 1)
    owner = consecutive_captions(scores.shape)
    fast, defined = (
        evaluate(scores, owner),
        definitions.summary(scores, owner == np.arange(30)[:, None]),
    )
    assert 100 < fast.rsum < 599
    assert fast.rsum == pytest.approx(defined["RSUM"])
    for way in ("i2t", "t2i"):
        for name in ("R@1", "R@5", "R@10", "MedR", "MeanR"):
            assert fast[way, name] == pytest.approx(defined[f"{way} {name}"])

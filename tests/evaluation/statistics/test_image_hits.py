"""The hits of each image as results keep them, and tests of every two systems by them."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import pytest
from sorting import noisy_pairs

from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Protocol,
    Relevance,
    consecutive_captions,
)
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.evaluation.statistics import (
    ImageHits,
    pack,
)
from pipeline.foundation.evaluation.statistics.image_hits import gather
from pipeline.foundation.parts.errors import InputError


def system(noise: float, seed: int, images: int = 100, folds: int = 1) -> Metrics:
    return evaluate(
        Embeddings(*noisy_pairs(images, 5, noise, seed)),
        consecutive_captions((images, 5 * images)),
        Protocol("all", folds=folds),
    )


def packed(metrics: Metrics, first: int = 0, first_caption: int = 0) -> dict[str, Any]:
    kept = pack(
        metrics,
        np.arange(first, first + metrics.images).astype(str),
        np.arange(first_caption, first_caption + metrics.captions),
    )
    return dict(json.loads(json.dumps(kept)))


@pytest.mark.parametrize("folds", [1, 4])
def test_what_is_kept_is_what_was_measured(folds: int) -> None:
    metrics = system(1.5, 0, folds=folds)
    hits = ImageHits(packed(metrics))
    for kept, own in zip(hits.folds, gather(metrics), strict=True):
        np.testing.assert_array_equal(kept.hits, own.hits)
        np.testing.assert_array_equal(kept.queries, own.queries)
    assert hits.statistics[-1] == pytest.approx(metrics.rsum)


def test_images_that_one_direction_asks_about_are_kept_with_their_hits() -> None:
    """The third image has no right caption, its own caption asks for it; the second is asked about
    by no caption.
    """
    i2t = Positives.of_pairs(np.array([0, 1]), np.array([0, 1]), 3)
    t2i = Positives.of_pairs(np.array([0, 2]), np.array([0, 2]), 3)
    truth = Relevance.of_directions(i2t, t2i, np.arange(3))
    metrics = evaluate(np.array([[1.0, 0, 0], [2, 0, 0], [0, 0, 1]]), truth)
    hits = ImageHits(packed(metrics))
    assert hits.folds[0].queries.tolist() == [[1, 1], [1, 0], [0, 1]]
    assert metrics.directions == ["i2t", "t2i"]
    assert hits.statistics == pytest.approx([metrics[name] for name in STATISTICS])
    assert (metrics["i2t", "R@1"], metrics["t2i", "R@1"]) == (50, 50)


def test_fractions_of_ties_are_kept_exactly() -> None:
    scores = np.random.default_rng(0).integers(0, 4, (40, 120)) + np.eye(40).repeat(3, 1)
    metrics = evaluate(scores, consecutive_captions((40, 120), 3))
    assert (gather(metrics)[0].hits % 1 > 0).any()
    np.testing.assert_array_equal(ImageHits(packed(metrics)).folds[0].hits, gather(metrics)[0].hits)


def test_the_digest_tells_other_images_captions_answers_and_rules() -> None:
    scores, owner = np.eye(4), np.arange(4)
    found = [
        packed(evaluate(scores, owner)),
        packed(evaluate(scores, owner), first=1),
        packed(evaluate(scores, owner), first_caption=1),
        packed(evaluate(scores, np.array([0, 1, 3, 2]))),
        packed(evaluate(scores, owner, ties="optimistic")),
    ]
    assert len({each["queries"] for each in found}) == 5
    own = Positives.of_pairs(owner, owner, 4)
    others = Positives.of_pairs(owner, owner[::-1].copy(), 4)
    truths = [Relevance.of_directions(*ways, owner) for ways in ((own, own), (others, own))]
    truths.append(Relevance.of_directions(own, others, owner))
    assert len({packed(evaluate(scores, truth))["queries"] for truth in truths}) == 3
    assert found[0]["queries"] == packed(evaluate(1 - scores, owner))["queries"]
    assert ImageHits(found[0]).equals(ImageHits(packed(evaluate(scores, owner))))
    assert not ImageHits(found[0]).equals(ImageHits(packed(evaluate(1 - scores, owner))))
    # As many hits, of other images.
    one, other = (
        ImageHits(packed(evaluate(np.diag(np.arange(4) != missed) * 2.0 - 1, owner)))
        for missed in (0, 1)
    )
    assert one.statistics.tolist() == other.statistics.tolist()
    assert not one.equals(other)


@pytest.mark.parametrize(
    "damage",
    [
        {"codes": "no base64!"},
        {"codes": base64.b64encode(zlib.compress(bytes(10**6))).decode()},
        {"images": [3]},
        {"images": None},
        {"images": [10**30]},
        {"values": [0.0]},
        {"values": ["x"]},
        {"codes": ""},
    ],
)
def test_what_cannot_be_read_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="run `pipeline evaluate` again"):
        assert ImageHits(packed(system(1.5, 0)) | damage).folds

"""Corrections of hubs by a bank, against their definitions, on matrices small enough to compute at
once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.evaluation.retrieval.similarity import Directions
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems import rescoring
from pipeline.judge.systems.rescoring import corrections
from pipeline.judge.systems.rescoring.bank import Bank, of_test

IMAGES, CAPTIONS, BANK_IMAGES, BANK_CAPTIONS, BETA = 7, 20, 11, 13, 5.0


class Data:
    """Random similarities: `scores` [I, C], and those of a bank."""

    def __init__(self, rng: np.random.Generator) -> None:
        def draw(*shape: int) -> np.ndarray:
            return rng.uniform(-1, 1, shape).astype(np.float32)

        self.scores = draw(IMAGES, CAPTIONS)
        self.captions, self.images = draw(IMAGES, BANK_CAPTIONS), draw(BANK_IMAGES, CAPTIONS)
        self.image_images, self.caption_captions = (
            draw(IMAGES, BANK_IMAGES),
            draw(BANK_CAPTIONS, CAPTIONS),
        )

    @property
    def bank(self) -> Bank:
        def source(values: np.ndarray) -> Any:
            return as_similarity(values)

        return Bank(
            source(self.captions),
            source(self.images),
            lambda: source(self.image_images),
            lambda: source(self.caption_captions),
        )


@pytest.fixture
def data(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Data:
    monkeypatch.setattr(corrections, "BLOCK_BYTES", 3 * 8 * CAPTIONS)  # several blocks
    return Data(rng)


def both(data: Data, name: str, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """The new scores by which images rank captions [I, C] and captions rank images [I, C]."""
    found = rescoring.build(name, **options).rescore(as_similarity(data.scores), data.bank)  # type: ignore[arg-type]
    sources = (
        [found.both["i2t"], found.both["t2i"]] if isinstance(found, Directions) else [found, found]
    )
    blocks = [np.asarray(each.block(slice(0, IMAGES), slice(0, CAPTIONS))) for each in sources]  # type: ignore[union-attr]
    rows, columns = np.array([6, 2]), np.array([19, 0])
    for source, block in zip(sources, blocks, strict=True):
        np.testing.assert_allclose(source.pairs(rows, columns), block[rows, columns])  # type: ignore[union-attr]
    return blocks[0], blocks[1]


def same_order(found: np.ndarray, defined: np.ndarray) -> None:
    """The same ranking of the candidates of each query, which are in the last axis."""
    np.testing.assert_array_equal(found.argsort(-1), defined.argsort(-1))


def shares(bank: np.ndarray, scores: np.ndarray, beta: float) -> np.ndarray:
    """exp(β s) / Σ_b exp(β s_b) with the bank's queries [B, N] and the ranked queries [Q, N]."""
    return np.asarray(np.exp(beta * scores) / np.exp(beta * bank).sum(0))


@pytest.mark.specification
def test_inverted_softmax(data: Data) -> None:
    by_image, by_caption = both(data, "inverted-softmax", beta=BETA)
    same_order(by_image, shares(data.images, data.scores, BETA))
    same_order(by_caption.T, shares(data.captions.T, data.scores.T, BETA))


@pytest.mark.specification
def test_nearest_neighbour_normalisation(data: Data) -> None:
    by_image, by_caption = both(data, "nnn", neighbours=4, weight=0.5)
    same_order(by_image, data.scores - 0.5 * np.sort(data.images, 0)[-4:].mean(0))
    same_order(by_caption.T, data.scores.T - 0.5 * np.sort(data.captions, 1)[:, -4:].mean(1))


@pytest.mark.specification
def test_dual_softmax(data: Data) -> None:
    by_image, by_caption = both(data, "dual-softmax", beta=BETA)
    for found, scores, bank in (
        (by_image, data.scores, data.images),
        (by_caption.T, data.scores.T, data.captions.T),
    ):
        own = np.exp(BETA * scores)
        np.testing.assert_allclose(
            found, scores * own / (own + np.exp(BETA * bank).sum(0)), rtol=1e-5
        )


def test_dual_softmax_of_the_queries_that_are_ranked(data: Data) -> None:
    scores = as_similarity(data.scores)
    test = of_test(scores, lambda: ([], []))  # type: ignore[arg-type]
    found = rescoring.build("dual-softmax", bank="test", beta=BETA).rescore(scores, test)  # type: ignore[arg-type]
    assert isinstance(found, Directions)
    for name, axis in (("i2t", 0), ("t2i", 1)):
        block = found.both[name].block(slice(0, IMAGES), slice(0, CAPTIONS))  # type: ignore[index]
        own = np.exp(BETA * data.scores)
        np.testing.assert_allclose(
            block, data.scores * own / own.sum(axis, keepdims=True), rtol=1e-5
        )


@pytest.mark.specification
def test_db_norm(data: Data) -> None:
    by_image, by_caption = both(data, "db-norm", query_beta=BETA, gallery_beta=2.0)
    same_order(
        by_image,
        shares(data.images, data.scores, BETA) * shares(data.caption_captions, data.scores, 2.0),
    )
    same_order(
        by_caption.T,
        shares(data.captions.T, data.scores.T, BETA)
        * shares(data.image_images.T, data.scores.T, 2.0),
    )


@pytest.mark.specification
def test_qb_norm_takes_the_k_best_of_each_query_of_the_bank_for_hubs(data: Data) -> None:
    """Item 0 of either side is the best of the whole bank, item 1 the second."""
    data.captions[[0, 1]] += [[4], [2]]
    data.images[:, [0, 1]] += [4, 2]
    data.scores[3, 1] = data.scores[1, 5] = 2  # image 3 and caption 5 have item 1 as their best
    for k in (1, 2):
        by_image, by_caption = both(data, "qb-norm", beta=BETA, k=k)
        assert np.array_equal(by_image[3], data.scores[3]) == (k == 1)
        assert np.array_equal(by_caption[:, 5], data.scores[:, 5]) == (k == 1)


@pytest.mark.parametrize(("k", "decimals"), [(1, 7), (2, 7), (1, 1)])
def test_qb_norm_changes_the_queries_whose_best_is_a_hub_of_the_bank(
    data: Data, k: int, decimals: int
) -> None:
    data.scores = data.scores.round(decimals)  # with one, several candidates are a query's best
    found = both(data, "qb-norm", beta=BETA, k=k)
    changed = []
    for new, scores, bank in (
        (found[0], data.scores, data.images),
        (found[1].T, data.scores.T, data.captions.T),
    ):
        hubs = set((-bank).argsort(1)[:, :k].ravel().tolist())
        normalised = shares(bank, scores, BETA)
        for query, row in enumerate(scores):
            active = not hubs.isdisjoint(np.flatnonzero(row == row.max()).tolist())
            same_order(new[query], normalised[query] if active else row)
            changed.append(active)
    assert any(changed)
    assert k > 1 or not all(changed)


def test_a_hub_that_all_queries_prefer_is_found_by_each(data: Data) -> None:
    scores = np.full((3, 3), 0.1, np.float32) + np.diag([0.4, 0.4, 0.4]).astype(np.float32)
    scores[1] += 0.5  # caption 0 to 2 are nearest to image 1
    test = of_test(as_similarity(scores), lambda: ([], []))  # type: ignore[arg-type]
    for name in ("inverted-softmax", "qb-norm", "dual-softmax", "nnn", "csls"):
        options: dict[str, Any] = {} if name == "csls" else {"bank": "test"}
        found = rescoring.build(name, **options).rescore(as_similarity(scores), test)  # type: ignore[arg-type]
        assert evaluate(found, np.arange(3))["t2i", "R@1"] == 100, name
    assert evaluate(as_similarity(scores), np.arange(3))["t2i", "R@1"] == pytest.approx(100 / 3)


def test_large_beta_does_not_overflow(data: Data) -> None:
    for name in ("inverted-softmax", "qb-norm", "dual-softmax"):
        assert all(np.isfinite(each).all() for each in both(data, name, beta=1000.0))


def test_folds_keep_the_corrections_of_the_whole_split(data: Data) -> None:
    found = rescoring.build("qb-norm", beta=BETA).rescore(as_similarity(data.scores), data.bank)  # type: ignore[arg-type]
    assert isinstance(found, Directions)
    rows, columns = np.array([5, 1]), np.array([3, 8, 0])
    fold = found.select(rows, columns).direction("t2i", 1 << 20).block(slice(0, 2), slice(0, 3))
    whole = found.direction("t2i", 1 << 20).block(slice(0, IMAGES), slice(0, CAPTIONS))
    np.testing.assert_array_equal(fold, whole[np.ix_(rows, columns)])


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nnn", {"neighbours": 0}, "neighbours: .* greater"),
        ("nnn", {"weight": 0.0}, "weight: .* greater than 0"),
        ("inverted-softmax", {"beta": 0.0}, "beta: .* greater than 0"),
        ("qb-norm", {"k": 0}, "k: .* greater"),
        ("db-norm", {"gallery_beta": -1.0}, "beta: .* greater than 0"),
        ("nnn", {"bank": "val"}, "bank: .*'train' or 'test'"),
    ],
)
def test_refuses(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rescoring.build(name, **options)


@pytest.mark.parametrize(
    ("name", "defaults", "others"),
    [
        ("nnn", {"neighbours": 128, "weight": 0.75}, {"neighbours": 127, "weight": 0.5}),
        ("csls", {"neighbours": 10}, {"neighbours": 9}),
        ("inverted-softmax", {"beta": 20.0}, {"beta": 3.0}),
        ("dual-softmax", {"beta": 20.0}, {"beta": 3.0}),
        ("qb-norm", {"beta": 20.0, "k": 1}, {"beta": 3.0, "k": 2}),
        (
            "db-norm",
            {"query_beta": 20.0, "gallery_beta": 3.0},
            {"query_beta": 3.0, "gallery_beta": 20.0},
        ),
    ],
)
def test_without_options_those_of_docs_evaluation_are_taken(
    name: str, defaults: dict[str, Any], others: dict[str, Any], rng: np.random.Generator
) -> None:
    """Each option, changed, changes the scores; the bank has more queries than neighbours."""
    queries = 200 if name == "nnn" else 6
    scores, images, captions = (
        as_similarity(rng.uniform(-1, 1, shape))
        for shape in ((20, 20), (queries, 20), (20, queries))
    )
    bank = Bank(scores, scores, lambda: captions, lambda: images)  # type: ignore[arg-type, return-value]
    if name != "csls":
        bank = bank._replace(images=images, captions=captions)  # type: ignore[arg-type]

    def new(**options: Any) -> np.ndarray:
        found = rescoring.build(name, **options).rescore(scores, bank)  # type: ignore[arg-type]
        of_images = found.both["i2t"] if isinstance(found, Directions) else found
        return np.asarray(of_images.block(slice(0, 20), slice(0, 20)))  # type: ignore[union-attr]

    np.testing.assert_array_equal(new(), new(**defaults))
    for option, value in others.items():
        assert not np.array_equal(new(), new(**{option: value})), option


@pytest.mark.parametrize("k", [1, 40, 199, 200, 300])
def test_copies_of_a_row_have_the_same_mean_in_whatever_order_its_values_come(
    k: int, rng: np.random.Generator
) -> None:
    """They would rank apart by a rounding."""
    row = rng.normal(size=200) * 10.0 ** rng.integers(-8, 8, 200)
    copies = np.stack([rng.permutation(row) for _ in range(20)])
    means = corrections.mean_of_greatest(k)(copies)
    assert np.unique(means).tolist() == [pytest.approx(np.sort(row)[-k:].mean(), rel=1e-12)]

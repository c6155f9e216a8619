"""ECCV Caption and CxC: the package as oracle, on some of its own ids; ids that do not fit;
ties.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.evaluation.judgements import coco_pairs
from pipeline.foundation.evaluation.judgements.coco_pairs import eccv_caption, pairs_of_package
from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.system import System

WAYS = ("i2t", "t2i")


@pytest.fixture(scope="module")
def truth() -> Any:
    """The package with the pairs of 60 of its images and their captions alone; half of them have
    queries of ECCV's.
    """
    whole = pairs_of_package()
    asked = sorted(whole.eccv_gts["i2t"])[:30]
    images = [*asked, *sorted(set(whole.coco_gts["i2t"]) - set(asked))[:30]]
    captions = [caption for image in images for caption in whole.coco_gts["i2t"][image]]
    few = copy.copy(whole)
    for name in ("coco_gts", "cxc_gts", "eccv_gts"):
        pairs = getattr(whole, name)
        kept = {
            way: _only(pairs[way], *ids)
            for way, ids in zip(WAYS, ((images, captions), (captions, images)), strict=True)
        }
        setattr(few, name, kept)
    return few


def _only(
    pairs: dict[int, list[int]], queries: list[int], candidates: list[int]
) -> dict[int, list[int]]:
    kept = {
        query: [each for each in pairs.get(query, []) if each in set(candidates)]
        for query in queries
    }
    return {query: items for query, items in kept.items() if items}


@pytest.fixture
def pool(truth: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Scores, image ids, caption ids and caption_image, shuffled, with two images and seven
    captions more.
    """
    image_ids = rng.permutation([*truth.coco_gts["i2t"], 1, 2])
    place = {int(image): row for row, image in enumerate(image_ids)}
    owner = {
        caption: images[0] for caption, images in truth.coco_gts["t2i"].items()
    } | dict.fromkeys(range(-7, 0), 1)
    caption_ids = rng.permutation(list(owner))
    caption_image = np.array([place[owner[int(caption)]] for caption in caption_ids])
    scores = (
        rng.permutation(len(image_ids) * len(caption_ids))
        .reshape(len(image_ids), -1)
        .astype(np.float32)
    )
    return scores, image_ids, caption_ids, caption_image


def measure(monkeypatch: pytest.MonkeyPatch, truth: Any, *pool: np.ndarray) -> dict[str, Any]:
    scores, image_ids, caption_ids, caption_image = pool
    monkeypatch.setattr(
        coco_pairs, "eccv_caption", lambda collection: eccv_caption(collection, truth)
    )
    settings = Evaluate(resamples=10, seed=0, block_megabytes=0.05)
    found = System.of("a", as_similarity(scores), caption_image, image_ids, caption_ids)
    extended: dict[str, Any] = measured.extend(found, "eccv_caption", settings)["extended"]
    return extended


@pytest.mark.slow
@pytest.mark.specification
def test_the_package_is_the_oracle(
    truth: Any, pool: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, image_ids, caption_ids, _ = pool
    rows = np.isin(image_ids, list(truth.coco_gts["i2t"]))
    columns = np.isin(caption_ids, list(truth.coco_gts["t2i"]))
    known, images, captions = scores[rows][:, columns], image_ids[rows], caption_ids[columns]
    whole = {
        "i2t": {
            int(image): captions[np.argsort(-row)].tolist()
            for image, row in zip(images, known, strict=True)
        },
        "t2i": {
            int(caption): images[np.argsort(-row)].tolist()
            for caption, row in zip(captions, known.T, strict=True)
        },
    }
    expected = truth.eccv_metrics(whole, "all")
    for k in (1, 5, 10):
        expected |= {f"cxc_r{k}": truth.cxc_recalls(whole, "all", K=k)}
        expected |= {f"eccv_r{k}": truth.eccv_recalls(whole, "all", K=k)}
    found = measure(monkeypatch, truth, *pool)
    assert len(truth.eccv_gts["i2t"]) == 30
    names = {
        ("eccv", "mAP@R"): "eccv_map_at_r",
        ("eccv", "Rprec"): "eccv_rprecision",
        **{(judged, f"R@{k}"): f"{judged}_r{k}" for judged in ("eccv", "cxc") for k in (1, 5, 10)},
    }
    assert {
        (judged, metric) for judged, numbers in found.items() for metric in numbers["t2i"]
    } == set(names)
    for (judged, metric), theirs in names.items():
        for way in WAYS:
            value, (low, high) = found[judged][way][metric], found[judged]["interval"][way][metric]
            assert value == pytest.approx(100 * expected[theirs][way], abs=1e-10)
            assert 0 <= low <= value <= high <= 100


def test_a_caption_keeps_its_own_image_where_others_are_left_out(
    truth: Any, pool: tuple[np.ndarray, ...]
) -> None:
    _, image_ids, caption_ids, caption_image = pool
    rows, columns, relevance = eccv_caption(
        Collection(image_ids, caption_ids, caption_image), truth
    )
    owner = relevance["eccv"].owner
    np.testing.assert_array_equal(image_ids[rows][owner], image_ids[caption_image][columns])


def test_right_pairs_on_top_score_100(
    truth: Any, pool: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, image_ids, caption_ids, caption_image = pool
    place = {
        way: {int(each): at for at, each in enumerate(ids)}
        for way, ids in zip(WAYS, (image_ids, caption_ids), strict=True)
    }
    scores = scores / scores.size
    for pairs in (truth.eccv_gts, truth.cxc_gts):
        for image, captions in pairs["i2t"].items():
            scores[place["i2t"][image], [place["t2i"][caption] for caption in captions]] += 1
    scores[:, [place["t2i"][caption] for caption in range(-7, 0)]] = (
        3  # above all, and out of the pool
    )
    found = measure(monkeypatch, truth, scores, image_ids, caption_ids, caption_image)
    assert found["eccv"]["i2t"]["R@1"] == found["cxc"]["i2t"]["R@1"] == 100
    assert found["eccv"]["i2t"]["mAP@R"] > 90  # CxC has a few pairs that ECCV has not


def test_ties_count_by_their_expectation(
    truth: Any, pool: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measure(monkeypatch, truth, np.zeros_like(pool[0]), *pool[1:])
    chance = 100 * np.mean([len(set(items)) / 300 for items in truth.eccv_gts["i2t"].values()])
    assert found["eccv"]["i2t"]["R@1"] == pytest.approx(chance)
    assert found["eccv"]["i2t"]["Rprec"] == pytest.approx(chance)


def test_ids_that_are_not_cocos_own_are_refused(truth: Any, pool: tuple[np.ndarray, ...]) -> None:
    _, image_ids, caption_ids, caption_image = pool
    with pytest.raises(InputError, match="60 of the 60 images of ECCV Caption are not here"):
        eccv_caption(Collection(-image_ids - 10, caption_ids, caption_image), truth)
    with pytest.raises(InputError, match="300 of the 300 captions"):
        eccv_caption(Collection(image_ids, caption_ids + 10**9, caption_image), truth)
    with pytest.raises(InputError, match="annotations with COCO's own ids"):
        eccv_caption(Collection(image_ids, caption_ids, np.roll(caption_image, 1)), truth)

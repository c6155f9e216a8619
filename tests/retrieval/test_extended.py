"""ECCV Caption and CxC: the package as oracle, on some of its own ids; ids that do not fit; ties."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.retrieval import as_similarity, fuse
from pipeline.retrieval.extended import _truth, eccv_caption
from pipeline.retrieval.fusion import Member
from pipeline.retrieval.top import top

WAYS = ("i2t", "t2i")


@pytest.fixture(scope="module")
def truth() -> Any:
    """The package with the pairs of 60 of its images and their captions alone; half of them have queries of ECCV's."""
    whole = _truth()
    asked = sorted(whole.eccv_gts["i2t"])[:30]
    images = [*asked, *sorted(set(whole.coco_gts["i2t"]) - set(asked))[:30]]
    captions = [caption for image in images for caption in whole.coco_gts["i2t"][image]]
    few = copy.copy(whole)
    for name in ("coco_gts", "cxc_gts", "eccv_gts"):
        pairs = getattr(whole, name)
        kept = {way: _only(pairs[way], *ids) for way, ids in zip(WAYS, ((images, captions), (captions, images)),
                                                                strict=True)}
        setattr(few, name, kept)
    return few


def _only(pairs: dict[int, list[int]], queries: list[int], candidates: list[int]) -> dict[int, list[int]]:
    kept = {query: [each for each in pairs.get(query, []) if each in set(candidates)] for query in queries}
    return {query: items for query, items in kept.items() if items}


@pytest.fixture
def pool(truth: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Scores, image ids, caption ids and caption_image, shuffled, with two images and seven captions more."""
    image_ids = rng.permutation([*truth.coco_gts["i2t"], 1, 2])
    place = {int(image): row for row, image in enumerate(image_ids)}
    owner = {caption: images[0] for caption, images in truth.coco_gts["t2i"].items()} | dict.fromkeys(range(-7, 0), 1)
    caption_ids = rng.permutation(list(owner))
    caption_image = np.array([place[owner[int(caption)]] for caption in caption_ids])
    scores = rng.permutation(len(image_ids) * len(caption_ids)).reshape(len(image_ids), -1).astype(np.float32)
    return scores, image_ids, caption_ids, caption_image


def test_the_package_is_the_oracle(truth: Any, pool: tuple[np.ndarray, ...]) -> None:
    scores, image_ids, caption_ids, _ = pool
    rows = np.isin(image_ids, list(truth.coco_gts["i2t"]))
    columns = np.isin(caption_ids, list(truth.coco_gts["t2i"]))
    known, images, captions = scores[rows][:, columns], image_ids[rows], caption_ids[columns]
    whole = {"i2t": {int(image): captions[np.argsort(-row)].tolist() for image, row in zip(images, known, strict=True)},
             "t2i": {int(caption): images[np.argsort(-row)].tolist()
                     for caption, row in zip(captions, known.T, strict=True)}}
    expected = truth.compute_all_metrics(whole["i2t"], whole["t2i"], ("cxc_recalls", "eccv_map_at_r", "eccv_rprecision",
                                                                      "eccv_r1"))
    measured = eccv_caption(as_similarity(scores), *pool[1:], block_megabytes=0.05, truth=truth)
    assert len(truth.eccv_gts["i2t"]) == 30
    for ours, theirs in ((("eccv", "mAP@R"), "eccv_map_at_r"), (("eccv", "R-Precision"), "eccv_rprecision"),
                         (("eccv", "R@1"), "eccv_r1"), (("cxc", "R@1"), "cxc_r1"), (("cxc", "R@10"), "cxc_r10")):
        for way in WAYS:
            assert measured[ours[0]][ours[1]][way] == pytest.approx(100 * expected[theirs][way])
    assert measured["both"]["tied queries"] == {"i2t": 0, "t2i": 0}


def test_right_pairs_on_top_score_100(truth: Any, pool: tuple[np.ndarray, ...]) -> None:
    scores, image_ids, caption_ids, caption_image = pool
    place = {way: {int(each): at for at, each in enumerate(ids)} for way, ids in zip(WAYS, (image_ids, caption_ids),
                                                                                    strict=True)}
    scores = scores / scores.size
    for pairs in (truth.eccv_gts, truth.cxc_gts):
        for image, captions in pairs["i2t"].items():
            scores[place["i2t"][image], [place["t2i"][caption] for caption in captions]] += 1
    scores[:, [place["t2i"][caption] for caption in range(-7, 0)]] = 3  # above all, and out of the pool
    measured = eccv_caption(as_similarity(scores), image_ids, caption_ids, caption_image, truth=truth)
    assert measured["eccv"]["R@1"]["i2t"] == measured["cxc"]["R@1"]["i2t"] == 100
    assert measured["eccv"]["mAP@R"]["i2t"] > 90  # CxC has a few pairs that ECCV has not
    assert measured["eccv"]["mAP@R"]["i2t"] == measured["eccv"]["R-Precision"]["i2t"] == pytest.approx(100, abs=10)


def test_ties_are_broken_at_random_and_counted(truth: Any, pool: tuple[np.ndarray, ...]) -> None:
    flat = as_similarity(np.zeros_like(pool[0]))
    runs = [eccv_caption(flat, *pool[1:], seed=seed, block_megabytes=1e-3, truth=truth) for seed in range(40)]
    chance = 100 * np.mean([len(set(items)) / 300 for items in truth.eccv_gts["i2t"].values()])
    assert np.mean([run["eccv"]["R@1"]["i2t"] for run in runs]) == pytest.approx(chance, rel=0.5)
    assert runs[0]["both"]["tied queries"] == {"i2t": 60, "t2i": 300}
    assert eccv_caption(flat, *pool[1:], seed=3, block_megabytes=1e-3, truth=truth) == runs[3]


def test_ids_that_are_not_cocos_own_are_refused(truth: Any, pool: tuple[np.ndarray, ...]) -> None:
    scores, image_ids, caption_ids, caption_image = pool
    source = as_similarity(scores)
    with pytest.raises(InputError, match="60 of the 60 images of ECCV Caption are not here"):
        eccv_caption(source, -image_ids - 10, caption_ids, caption_image, truth=truth)
    with pytest.raises(InputError, match="300 of the 300 captions"):
        eccv_caption(source, image_ids, caption_ids + 10**9, caption_image, truth=truth)
    with pytest.raises(InputError, match="these are not COCO's own ids"):
        eccv_caption(source, image_ids, caption_ids, np.roll(caption_image, 1), truth=truth)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("megabytes", [64, 1e-3])
def test_top_agrees_with_sorting(way: Any, megabytes: float, rng: np.random.Generator) -> None:
    scores = rng.permutation(30 * 70).reshape(30, 70).astype(np.float32)
    ranked = np.argsort(-scores, axis=1) if way == "i2t" else np.argsort(-scores.T, axis=1)
    told: list[int] = []
    found = top(as_similarity(scores), way, 7, rng, megabytes, told.append)
    assert np.array_equal(found.places, ranked[:, :7])
    assert not found.tied.any()
    assert told[-1] == len(ranked)
    everything = top(as_similarity(scores), way, ranked.shape[1], rng, megabytes)
    assert np.array_equal(everything.places, ranked)
    member = Member("a", scores, np.arange(30), np.arange(70))
    assert np.array_equal(top(fuse([member], "zscore"), way, 7, rng, megabytes).places, ranked[:, :7])

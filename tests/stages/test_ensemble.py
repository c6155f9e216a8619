"""`pipeline ensemble`: the papers' means, ensembles of one's own, images that a member lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored import score
from sorting import measure

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval.similarity import of_direction
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.fusion.methods import FUSIONS
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.layout import DIRECTIONS
from pipeline.judge.systems.scores.made import Fusion
from pipeline.judge.systems.scores.sources import Matrices
from pipeline.judge.systems.scores.system import System

pytestmark = pytest.mark.slow

REGION, GRID, PATCH = (f"vse2ad-{feature}-bigru-s0" for feature in ("region", "grid", "patch"))


def opened(name: str) -> System:
    return System.open(Path("similarities", "sample", f"{name}.zarr"))


@pytest.mark.specification
def test_the_papers_ensembles_are_means(pipeline: Any) -> None:
    for feature in ("region", "grid"):
        score(feature)
    assert pipeline("ensemble", "RG")[0] == 0
    fused, region, grid = (opened(name) for name in ("vse2ad-RG-bigru-s0", REGION, GRID))
    np.testing.assert_allclose(
        fused.similarity[:], (region.similarity[:] + grid.similarity[:]) / 2, rtol=1e-6
    )
    assert fused.made_from.fusion == Fusion(
        method="mean",
        features=["region", "grid"],
        weights=[0.5, 0.5],
        members=[REGION, GRID],
    )
    assert [*fused.store.record.made_from.values()] == [region.reference, grid.reference]
    assert fused.made_from.heads == [REGION, GRID]
    assert (fused.made_from.name, fused.made_from.seed) == ("RG", 0)


def test_an_ensemble_is_left_as_it_is_until_a_member_changes(pipeline: Any) -> None:
    for feature in ("region", "grid"):
        score(feature)
    run = ("ensemble", "-S", "run.features=[region, grid]")
    assert "nothing to do" not in pipeline(*run)[1]
    assert pipeline(*run)[1].count("nothing to do") == 2
    score("grid", content=b"trained again")
    again = pipeline(*run)[1].splitlines()
    assert [("nothing to do" in line) for line in again] == [True, False]
    assert not Path("similarities", "sample", "vse2ad-RGP-bigru-s0.zarr").exists()


def rescaled(matrix: np.ndarray, fusion: str) -> np.ndarray:
    """Scores [queries, candidates] as a fusion averages them, one query at a time."""
    if fusion == "zscore":
        return np.stack([(row - row.mean()) / row.std() for row in matrix])
    if fusion == "rank":
        return np.stack(
            [
                1
                / (
                    60
                    + 1
                    + np.array(
                        [(row > score).sum() + ((row == score).sum() - 1) / 2 for score in row]
                    )
                )
                for row in matrix
            ]
        )
    return matrix


def test_an_ensemble_of_ones_own_is_measured_like_its_fusion(pipeline: Any) -> None:
    paths = [score("region"), score("grid", seed=3), score("patch")]
    members = ("--member", REGION, "--member", str(paths[1]), "--member", PATCH)
    weights = ("--weight", "2", "--weight", "1", "--weight", "1")
    matrices = [System.open(path).similarity[:].astype(np.float64) for path in paths]
    for fusion in ("mean", "zscore", "rank"):
        code, _, err = pipeline("ensemble", fusion, *members, "--fusion", fusion, *weights)
        assert code == 0, err
        by_image = [rescaled(matrix, fusion) for matrix in matrices]
        by_caption = [rescaled(matrix.T, fusion).T for matrix in matrices]
        mine = opened(fusion)
        measured = evaluate(mine.scores, mine.caption_image).as_dict()
        for direction, scores in (("i2t", by_image), ("t2i", by_caption)):
            mean = np.average(scores, axis=0, weights=[2, 1, 1])
            expected = measure(mean, mine.caption_image, "expected")[direction]
            assert {key: measured[direction][key] for key in expected} == pytest.approx(
                expected, abs=1e-9
            ), fusion
        assert (mine.made_from.seed, mine.made_from.recipe) == (None, "vse2ad")  # the seeds differ
        assert mine.made_from.fusion.weights == [0.5, 0.25, 0.25]


def test_images_that_a_member_lacks_are_refused_or_left_out_and_recorded(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    score("region", without=(3,))
    score("grid", without=(0, 11))
    assert "image ids that" in refused("ensemble", "RG")
    code, out, _ = pipeline("ensemble", "RG", "--keep-common")
    assert (code, "3 images left out" in out) == (0, True)
    fused, region, grid = (opened(name) for name in ("vse2ad-RG-bigru-s0", REGION, GRID))
    assert fused.made_from.left_out == [10, 40, 120]
    assert fused.image_ids.tolist() == [20, 30, *range(50, 120, 10)]
    assert fused.caption_ids[fused.caption_image == 2].tolist() == [
        120,
        121,
        122,
        123,
        124,
    ]  # of image 50
    at = [np.flatnonzero(store.image_ids == 50)[0] for store in (region, grid)]
    places = [np.flatnonzero(store.caption_ids == 121)[0] for store in (region, grid)]
    cells = [
        store.similarity[row, column]
        for store, row, column in zip((region, grid), at, places, strict=True)
    ]
    assert fused.similarity[2, np.flatnonzero(fused.caption_ids == 121)[0]] == pytest.approx(
        np.mean(cells)
    )


def test_what_cannot_be_fused_is_refused(pipeline: Any, refused: Callable[..., str]) -> None:
    score("region")
    score("grid", manifest="n" * 64)
    both = ("--member", REGION, "--member", GRID)
    assert "its manifest is" in refused("ensemble", "RG")
    assert "is the papers' mean" in refused("ensemble", "RG", "--fusion", "rank")
    assert "needs two or more --member" in refused("ensemble", "mine", "--member", REGION)
    twice = f"similarities/sample/{REGION}.zarr"
    assert f"{twice}: is named twice" in refused(
        "ensemble", "mine", "--member", REGION, "--member", twice
    )
    assert "neither a file nor a system of" in refused(
        "ensemble", "mine", "--member", REGION, "--member", "nothing"
    )
    assert "--seed is for ensembles such as RG" in refused("ensemble", "mine", *both, "--seed", "1")
    assert "another system has that name" in refused("ensemble", REGION, *both)
    assert "an ensemble's name consists of" in refused("ensemble", "../mine", *both)
    score("grid")
    assert "one weight for each of 2 members" in refused("ensemble", "mine", *both, "--weight", "1")
    assert pipeline("ensemble", "mine", *both, "--fusion", "rank")[0] == 0
    assert "cannot be fused again" in refused(
        "ensemble", "more", "--member", "mine", "--member", GRID
    )


@pytest.fixture
def plain(pipeline: Any, scenes: Manifest, rng: np.random.Generator) -> tuple[str, ...]:
    """Two systems' matrices of val and test beside their manifest: the first is better, and the
    second is noise.
    """
    scenes.save(Path("m.parquet"))
    for split in map(scenes.split, ("val", "test")):
        own = np.zeros((len(split.image_ids), len(split.caption_ids)), np.float32)
        own[split.caption_image, np.arange(len(split.caption_ids))] = 1.5
        for name, signal in (("good", 1.0), ("noise", 0.0)):
            np.save(
                f"{name}_{split.name}.npy",
                signal * own + rng.standard_normal(own.shape).astype(np.float32),
            )
    return "--member", "good_test.npy", "--member", "noise_test.npy", "--manifest", "m.parquet"


def test_plain_matrices_of_a_manifest_are_fused_and_compared(
    pipeline: Any, plain: tuple[str, ...], scenes: Manifest
) -> None:
    split = scenes.split("test")
    members = [
        System.of(name, np.load(f"{name}_test.npy"), None, split.image_ids, split.caption_ids)
        for name in ("good", "noise")
    ]
    for fusion in FUSIONS:
        code, _, err = pipeline("ensemble", fusion, *plain, "--fusion", fusion)
        assert code == 0, err
        fused = opened(fusion)
        assert fused.made_from.fusion.members == ["good_test", "noise_test"]
        assert (fused.made_from.dataset, fused.made_from.split) == (scenes.dataset, "test")
        expected = evaluate(fuse(members, fusion).scores, split.caption_image)
        found = evaluate(fused.scores, fused.caption_image)
        assert found.rsum == pytest.approx(expected.rsum), fusion
    given = ("good_test.npy", "--manifest", "m.parquet")
    code, _, err = pipeline("compare", "similarities/sample/zscore.zarr", *given)
    assert code == 0, err


def test_weights_are_chosen_on_val(
    pipeline: Any, refused: Callable[..., str], plain: tuple[str, ...]
) -> None:
    on = ("--tune-on", "good_val.npy", "--tune-on", "noise_val.npy")
    code, out, err = pipeline("ensemble", "tuned", *plain, *on)
    assert code == 0, err
    for split in ("test", "val"):
        files = f"good_{split}.npy, noise_{split}.npy"
        assert f"{files}: images and captions in the manifest's order (assumed)" in err
    assert "on val, the best of 21" in out
    fusion = opened("tuned").made_from.fusion
    assert fusion is not None
    assert fusion.weights[0] > 0.6
    assert fusion.tuned["on"] == ["good_val", "noise_val"]
    pipeline("ensemble", "even", *plain)
    tuned, even = (
        evaluate(opened(name).scores, opened(name).caption_image).rsum for name in ("tuned", "even")
    )
    assert tuned > even
    assert pipeline("ensemble", "alike", *plain, *on[:2], *on[:2])[0] == 0
    assert opened("alike").made_from.fusion.weights == [0.5, 0.5]
    assert "give one" in refused("ensemble", "ours", *plain, *on, "--weight", "1", "--weight", "2")
    assert "expected scores of val for each of 2 members" in refused(
        "ensemble", "ours", *plain, *on[:2]
    )
    assert "is a member itself" in refused(
        "ensemble", "ours", *plain, *on[:2], "--tune-on", "noise_test.npy"
    )
    assert "name the --manifest" in refused("ensemble", "ours", *plain[:4])
    assert "gone/a.npy: no such file" in refused(
        "ensemble", "ours", *plain, "--member", "gone/a.npy"
    )
    score("region")
    score("grid")
    assert "give scores of val" in refused(
        "ensemble",
        "ours",
        "--member",
        REGION,
        "--member",
        GRID,
        *("--tune-on", f"similarities/sample/{REGION}.zarr") * 2,
    )


@pytest.fixture
def reranked(pipeline: Any) -> str:
    """A reranked system over region and grid, and a third head of patches."""
    score("region", noise=2.0)
    score("grid", noise=1.5)
    score("patch", noise=1.5)
    assert (
        pipeline("rerank", "--retriever", REGION, "--with", GRID, "--k", "4", "--name", "rr")[0]
        == 0
    )
    return "rr"


def test_a_reranked_system_is_fused_by_rank_in_each_direction(
    pipeline: Any, refused: Callable[..., str], reranked: str
) -> None:
    both = ("--member", PATCH, "--member", reranked)
    code, _, err = pipeline(
        "ensemble", "mine", *both, "--fusion", "rank", "--weight", "1", "--weight", "3"
    )
    assert code == 0, err
    mine, member, patch = opened("mine"), opened(reranked), opened(PATCH).similarity[:]
    measured = evaluate(mine.scores, mine.caption_image).as_dict()
    every = slice(None)
    for direction in ("i2t", "t2i"):
        scores = member.scores.direction(direction, 1 << 20).block(every, every)  # type: ignore[union-attr]
        by_query = [
            rescaled(matrix if direction == "i2t" else matrix.T, "rank")
            for matrix in (patch, scores)
        ]
        fused = np.average(by_query, axis=0, weights=[1, 3])
        expected = measure(
            fused if direction == "i2t" else fused.T, mine.caption_image, "expected"
        )[direction]
        assert {key: measured[direction][key] for key in expected} == pytest.approx(
            expected, abs=1e-9
        )
    assert [*mine.store.record.made_from.values()] == [opened(PATCH).reference, member.reference]
    assert mine.made_from.heads == [PATCH, REGION, GRID]
    assert mine.made_from.steps == []
    for fusion in ("mean", "zscore", "combsum", "combmnz"):
        assert "is reranked, and has an order of each query's candidates" in refused(
            "ensemble", "other", *both, "--fusion", fusion
        )


def test_reranked_members_are_measured_by_their_own_protocol(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    for feature in ("region", "grid", "patch"):
        score(feature, noise=1.5)
    rerank = ("rerank", "--retriever", REGION, "--with", GRID, "--k", "3")
    assert pipeline(*rerank, "--folds", "3", "--name", "by3")[0] == 0
    assert pipeline(*rerank, "--folds", "2", "--name", "by2")[0] == 0
    rank = ("--member", PATCH, "--fusion", "rank")
    assert "by the protocols 3fold and 2fold" in refused(
        "ensemble", "m", *rank, "--member", "by3", "--member", "by2"
    )
    code, _, err = pipeline("ensemble", "mine", *rank, "--member", "by3")
    assert code == 0, err
    mine, member, patch = opened("mine"), opened("by3"), opened(PATCH)
    assert mine.protocol == member.protocol
    for images, captions in retrieval.Protocol("3fold", folds=3).parts(
        mine.caption_image, len(mine.image_ids)
    ):
        fold = [retrieval.select(store.scores, images, captions) for store in (mine, member)]
        own = patch.similarity[:][np.ix_(images, captions)]
        scores = fold[1].direction("t2i", 1 << 20).block(slice(None), slice(None))  # type: ignore[union-attr]
        expected = (rescaled(scores.T, "rank") + rescaled(own.T, "rank")).T / 2
        found = fold[0].direction("t2i", 1 << 20).block(slice(None), slice(None))  # type: ignore[union-attr]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert "not by the requested one" in refused(
        "evaluate", "--system", "similarities/sample/mine.zarr", "--protocol", "all"
    )


def test_corrected_systems_are_fused_in_each_direction(pipeline: Any) -> None:
    for feature in ("region", "grid"):
        score(feature, noise=1.5)
    code, _, err = pipeline("rescore", REGION, "--by", "qb-norm", "--bank", "test")
    assert code == 0, err
    corrected = opened(next(Path("similarities/sample").glob(f"{REGION}+*.zarr")).stem)
    assert isinstance(corrected.kind, Matrices)
    assert corrected.kind.how is not None
    assert corrected.kind.how.method == DIRECTIONS
    members = ("--member", corrected.path.stem, "--member", GRID)
    grid, every = opened(GRID), slice(None)
    for fusion in FUSIONS:
        code, _, err = pipeline("ensemble", fusion, *members, "--fusion", fusion)
        assert code == 0, err
        mine = opened(fusion)
        for direction in ("i2t", "t2i"):
            own = corrected.scores.direction(direction, 1 << 20).block(every, every)  # type: ignore[union-attr]
            parts = [
                System.of(name, scores, None, mine.image_ids, mine.caption_ids)
                for name, scores in (("a", own), ("b", grid.similarity[:]))
            ]
            expected, found = (
                of_direction(scores, direction).block(every, every)
                for scores in (fuse(parts, fusion).scores, mine.scores)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=fusion)
        assert mine.made_from.steps == [{"name": "ensemble", "bank": "test"}]

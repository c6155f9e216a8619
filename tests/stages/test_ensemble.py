"""`pipeline ensemble`: the papers' means, ensembles of one's own, images that a member lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieval.sorting import measure
from scored import score

from pipeline import retrieval
from pipeline.scores.similarity_store import SimilarityStore

REGION, GRID, PATCH = (f"vse2ad-{feature}-bigru-s0" for feature in ("region", "grid", "patch"))


def opened(name: str) -> SimilarityStore:
    return SimilarityStore.open(Path("similarities", "sample", f"{name}.zarr"))


def test_the_papers_ensembles_are_means(pipeline: Any) -> None:
    for feature in ("region", "grid"):
        score(feature)
    assert pipeline("ensemble", "RG")[0] == 0
    fused, region, grid = (opened(name) for name in ("vse2ad-RG-bigru-s0", REGION, GRID))
    np.testing.assert_allclose(fused.similarity[:], (region.similarity[:] + grid.similarity[:]) / 2, rtol=1e-6)
    assert fused.made_from["fusion"] == {"method": "mean", "weights": [0.5, 0.5], "members": [REGION, GRID],
                                         "seals": [region.seal, grid.seal]}
    assert [member["head"] for member in fused.made_from["members"]] == [REGION, GRID]
    assert (fused.made_from["ensemble"], fused.made_from["seed"]) == ("RG", 0)


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
        return np.stack([1 / (60 + 1 + np.array([(row > score).sum() + ((row == score).sum() - 1) / 2
                                                 for score in row])) for row in matrix])
    return matrix


@pytest.mark.parametrize("fusion", ["mean", "zscore", "rank"])
def test_an_ensemble_of_ones_own_is_measured_like_its_fusion(pipeline: Any, fusion: str) -> None:
    paths = [score("region"), score("grid", seed=3), score("patch")]
    members = ("--member", REGION, "--member", str(paths[1]), "--member", PATCH)
    code, _, err = pipeline("ensemble", "mine", *members, "--fusion", fusion,
                            *("--weight", "2", "--weight", "1", "--weight", "1"))
    assert code == 0, err
    matrices = [SimilarityStore.open(path).similarity[:].astype(np.float64) for path in paths]
    by_image = np.average([rescaled(matrix, fusion) for matrix in matrices], axis=0, weights=[2, 1, 1])
    by_caption = np.average([rescaled(matrix.T, fusion).T for matrix in matrices], axis=0, weights=[2, 1, 1])
    mine = opened("mine")
    measured = retrieval.evaluate(mine.scores, mine.caption_image).as_dict()
    for direction, scores in (("i2t", by_image), ("t2i", by_caption)):
        expected = measure(scores, mine.caption_image, "expected")[direction]
        assert {key: measured[direction][key] for key in expected} == pytest.approx(expected, abs=1e-9)
    assert (mine.made_from["seed"], mine.made_from["recipe"]) == (None, "vse2ad")  # the seeds differ
    assert mine.made_from["fusion"]["weights"] == [0.5, 0.25, 0.25]


def test_images_that_a_member_lacks_are_refused_or_left_out_and_recorded(pipeline: Any, refused: Callable[..., str]
                                                                       ) -> None:
    score("region", without=(3,))
    score("grid", without=(0, 11))
    assert "image ids that" in refused("ensemble", "RG")
    code, out, _ = pipeline("ensemble", "RG", "--keep-common")
    assert (code, "3 images left out" in out) == (0, True)
    fused, region, grid = (opened(name) for name in ("vse2ad-RG-bigru-s0", REGION, GRID))
    assert fused.made_from["left_out"] == [10, 40, 120]
    assert fused.image_ids.tolist() == [20, 30, *range(50, 120, 10)]
    assert fused.caption_ids[fused.caption_image == 2].tolist() == [120, 121, 122, 123, 124]  # of image 50
    at = [np.flatnonzero(store.image_ids == 50)[0] for store in (region, grid)]
    places = [np.flatnonzero(store.caption_ids == 121)[0] for store in (region, grid)]
    cells = [store.similarity[row, column] for store, row, column in zip((region, grid), at, places, strict=True)]
    assert fused.similarity[2, np.flatnonzero(fused.caption_ids == 121)[0]] == pytest.approx(np.mean(cells))


def test_what_cannot_be_fused_is_refused(pipeline: Any, refused: Callable[..., str]) -> None:
    score("region")
    score("grid", manifest="n" * 64)
    both = ("--member", REGION, "--member", GRID)
    assert "its manifest is" in refused("ensemble", "RG")
    assert "is the papers' mean" in refused("ensemble", "RG", "--fusion", "rank")
    assert "needs two members" in refused("ensemble", "mine", "--member", REGION)
    assert "no similarity store there" in refused("ensemble", "mine", "--member", REGION, "--member", "nothing")
    assert "--seed goes with ensembles such as RG" in refused("ensemble", "mine", *both, "--seed", "1")
    assert "is a system of that name" in refused("ensemble", REGION, *both)
    assert "an ensemble's name is of" in refused("ensemble", "../mine", *both)
    score("grid")
    assert "one weight for each of 2 members" in refused("ensemble", "mine", *both, "--weight", "1")
    assert pipeline("ensemble", "mine", *both, "--fusion", "rank")[0] == 0
    assert "cannot be fused again" in refused("ensemble", "more", "--member", "mine", "--member", GRID)

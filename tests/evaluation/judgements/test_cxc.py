"""CxC from its own files: four tasks against sorting, and files that are not what they should
be.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.evaluation.judgements import coco_pairs
from pipeline.foundation.evaluation.judgements.coco_pairs import cxc
from pipeline.foundation.evaluation.retrieval import Direction, Embeddings, Lists
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.foundation.evaluation.statistics.wilson import of_mean_share
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.system import System

IMAGES, CAPTIONS = np.arange(100, 112), np.arange(500, 560)


def image(number: int) -> str:
    return f"COCO_val2014_{number:012d}.jpg"


def caption(number: int) -> str:
    return f"COCO_val2014:sentid:{number}"


@pytest.fixture
def files(tmp_path: Path, rng: np.random.Generator) -> tuple[Path, dict[str, np.ndarray]]:
    """The three files, and which pairs are right: i2t [I, C], i2i [I, I], t2t [C, C]."""
    right = {
        "i2t": np.zeros((12, 60), bool),
        "i2i": np.zeros((12, 12), bool),
        "t2t": np.zeros((60, 60), bool),
    }
    for name, task, first, second in (
        ("sits", "i2t", caption, image),
        ("sis", "i2i", image, image),
        ("sts", "t2t", caption, caption),
    ):
        one, other = (CAPTIONS if kind is caption else IMAGES for kind in (first, second))
        lines, seen = ["first,second,agg_score,sampling_method"], set()
        for _ in range(150):
            a, b = int(rng.integers(len(one))), int(rng.integers(len(other)))
            if (a, b) in seen or (task != "i2t" and (a == b or (b, a) in seen)):
                continue
            seen.add((a, b))
            rating = float(rng.choice([1.5, 2.99, 3.0, 4.6]))
            lines.append(f"{first(one[a])},{second(other[b])},{rating},sampled")
            if rating >= 3:
                right[task][(b, a) if task == "i2t" else (a, b)] = True
        (tmp_path / f"{name}_test.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    right["i2i"], right["t2t"] = (right[task] | right[task].T for task in ("i2i", "t2t"))
    return tmp_path, right


def recall(scores: np.ndarray, right: np.ndarray, k: int) -> float:
    asking = right.any(1)
    best = np.argsort(-scores, axis=1)[:, :k]
    return float(100 * np.take_along_axis(right, best, 1).any(1)[asking].mean())


@pytest.mark.specification
def test_the_four_tasks_agree_with_sorting(
    files: tuple[Path, dict[str, np.ndarray]], rng: np.random.Generator
) -> None:
    folder, right = files
    images, captions = rng.standard_normal((12, 6)), rng.standard_normal((60, 6))
    pool = System.of("a", Embeddings(images, captions), np.arange(60) // 5, IMAGES, CAPTIONS)
    settings = Evaluate(resamples=10, seed=0, block_megabytes=0.001, cxc=str(folder))
    found = measured.extend(pool, "cxc", settings)["extended"]["cxc"]
    cross = images @ captions.T
    within = {
        task: side @ side.T - 1e9 * np.eye(len(side))
        for task, side in (("i2i", images), ("t2t", captions))
    }
    for k in (1, 5, 10):
        assert found["i2t"][f"R@{k}"] == pytest.approx(recall(cross, right["i2t"], k))
        assert found["t2i"][f"R@{k}"] == pytest.approx(recall(cross.T, right["i2t"].T, k))
        for task, scores in within.items():
            assert found[task][f"R@{k}"] == pytest.approx(recall(scores, right[task], k))
            low, high = found["interval"][task][f"R@{k}"]
            assert low <= found[task][f"R@{k}"] <= high
    assert json.loads(json.dumps(found)) == found


def test_lists_of_one_direction_are_measured_in_it_alone(
    files: tuple[Path, dict[str, np.ndarray]], rng: np.random.Generator
) -> None:
    folder, right = files
    scores = rng.random((12, 60))
    rows, columns = map(np.ravel, np.indices((12, 60)))
    settings = Evaluate(resamples=10, seed=0, block_megabytes=1, cxc=str(folder))
    sides: tuple[tuple[Direction, Listed, np.ndarray, np.ndarray], ...] = (
        ("i2t", Listed(rows, columns, scores.ravel()), scores, right["i2t"]),
        ("t2i", Listed(columns, rows, scores.ravel()), scores.T, right["i2t"].T),
    )
    for way, listed, of_queries, of_right in sides:
        lists = Lists((12, 60), {way: listed}, "lists.trec")
        pool = System.of("a", lists, np.arange(60) // 5, IMAGES, CAPTIONS)
        found = measured.extend(pool, "cxc", settings)["extended"]["cxc"]
        assert set(found) == {way, "interval"}
        for k in (1, 5, 10):
            assert found[way][f"R@{k}"] == pytest.approx(recall(of_queries, of_right, k)), k


def test_captions_of_an_image_are_drawn_together_where_captions_rank_captions(
    files: tuple[Path, dict[str, np.ndarray]], rng: np.random.Generator
) -> None:
    folder, right = files
    captions = rng.standard_normal((60, 6))
    pool = System.of(
        "a",
        Embeddings(rng.standard_normal((12, 6)), captions),
        np.arange(60) // 5,
        IMAGES,
        CAPTIONS,
    )
    settings = Evaluate(resamples=10, seed=0, block_megabytes=0.001, cxc=str(folder))
    found = measured.extend(pool, "cxc", settings)["extended"]["cxc"]
    asking = right["t2t"].any(1)
    best = np.argsort(-(captions @ captions.T - 1e9 * np.eye(60)), axis=1)[:, :5]
    hit = np.take_along_axis(right["t2t"], best, 1).any(1)[asking]
    image = np.arange(60)[asking] // 5
    asked = np.bincount(image)
    apart = (np.bincount(image, hit) - hit.mean() * asked)[asked > 0] / asked[asked > 0].mean()
    expected = 100 * np.array(of_mean_share(hit.mean(), apart, 0.95))
    assert found["interval"]["t2t"]["R@5"] == pytest.approx(expected)


def test_nothing_is_right_for_itself_and_a_pair_is_right_both_ways() -> None:
    found = coco_pairs._both_ways(np.array([0, 2]), np.array([0, 1]), 3)
    assert (found.query.tolist(), found.candidate.tolist()) == ([1, 2], [2, 1])


def test_files_that_are_none_of_cxc_are_refused(files: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = files
    collection = Collection(IMAGES, CAPTIONS, np.arange(60) // 5)
    good = (folder / "sis_test.csv").read_text(encoding="utf-8")
    for text, said in (
        ("a,b,c\n1,2,3\n", "line 2 does not begin with ids of a COCO image and image"),
        (f"a,b\n{image(100)},{image(101)}\n", "is no file of CxC"),
        (f"a,b\n{image(100)},{image(101)},high\n", "could not convert string to float"),
        (f"a,b\n{image(100)},{image(99)},4\n", "the pool lacks 1 of 1 image ids, such as 99"),
        ("a,b\n", "has no pair with a rating of 3 or more"),
    ):
        (folder / "sis_test.csv").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="sis_test.csv.*" + said):
            cxc(folder, collection)
    (folder / "sis_test.csv").write_text(good, encoding="utf-8")
    (folder / "sts_test.csv").unlink()
    with pytest.raises(InputError, match=r"cannot read .*sts_test.csv"):
        cxc(folder, collection)
    two = np.arange(2)
    with pytest.raises(InputError, match=r"name their folder with -S evaluate\.cxc=FOLDER"):
        measured.extend(
            System.of("a", Embeddings(np.eye(2), np.eye(2)), two, two, two),
            "cxc",
            Evaluate(resamples=1, seed=0, block_megabytes=1),
        )

"""The referee on numpy arrays says what the commands say."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pipeline
from pipeline.foundation.evaluation import metrics
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.evaluation.statistics import contrast
from pipeline.foundation.parts.errors import InputError


def vectors(noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 40 images and their 200 captions, float32 [40, 16] and [200, 16]."""
    images = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    drawn = np.random.default_rng(seed).normal(size=(200, 16)).astype(np.float32)
    return images, np.repeat(images, 5, axis=0) + noise * drawn


@pytest.mark.specification
def test_vectors_and_their_products_have_the_same_numbers() -> None:
    images, captions = vectors(1.0)
    numbers = pipeline.evaluate(images @ captions.T)
    assert pipeline.evaluate((images, captions))["RSUM"] == pytest.approx(numbers["RSUM"])
    assert 0 < numbers["RSUM"] < 600
    assert "image → caption" in str(numbers)
    json.dumps(numbers)


def test_lengths_of_vectors_count_unless_they_are_normalised() -> None:
    images, captions = vectors(1.0)
    longer = images * np.linspace(0.2, 5, len(images))[:, None].astype(np.float32)
    assert (
        pipeline.evaluate((longer, captions))["t2i"] != pipeline.evaluate((images, captions))["t2i"]
    )
    assert pipeline.evaluate((longer, captions), normalise=True) == pipeline.evaluate(
        (images, captions), normalise=True
    )


def test_two_systems_are_compared_and_seeds_are_seeds() -> None:
    good, bad = (
        np.matmul(*(side.T if at else side for at, side in enumerate(vectors(noise))))
        for noise in (0.5, 4)
    )
    found = pipeline.compare(bad, good)
    assert found["RSUM"]["difference"] > 0
    assert found["RSUM"]["p"] < 0.05
    assert found["over"] == ["images"]
    seeds = [
        [np.matmul(vectors(noise, seed)[0], vectors(noise, seed)[1].T) for seed in (1, 2)]
        for noise in (4, 0.5)
    ]
    assert pipeline.compare(*seeds)["over"] == ["images", "seeds"]


def test_ties_count_and_pools_are_cut_as_asked() -> None:
    """Two images with a caption each, equally similar to both; alone in its fold each is found."""
    tied = np.zeros((2, 2))
    for ties, recall in (("optimistic", 100), ("expected", 50), ("pessimistic", 0)):
        judged = pipeline.evaluate(tied, 1, ties=ties)  # type: ignore[arg-type]
        assert (judged["ties"], judged["t2i"]["R@1"], judged["i2t"]["R@1"]) == (
            ties,
            recall,
            recall,
        )
        contrast = pipeline.compare(tied, np.eye(2), 1, ties=ties)  # type: ignore[arg-type]
        assert contrast["RSUM"]["difference"] == 2 * (100 - recall), ties
        found = pipeline.explain(tied, "t2i_R@1=42.0", 1, ties=ties, most=1)  # type: ignore[arg-type]
        assert found.references[0].numbers == (recall,), ties
    mistaken = 1 - np.eye(2)
    halves = Protocol("halves", folds=2)
    assert pipeline.evaluate(mistaken, 1)["RSUM"] == 400
    assert pipeline.evaluate(mistaken, 1, protocol=halves)["RSUM"] == 600
    assert pipeline.compare(mistaken, tied, 1, protocol=halves)["RSUM"]["difference"] == 0
    found = pipeline.explain(mistaken, "t2i_R@1=42.0", 1, protocol=halves, most=1)
    assert found.references[0].numbers == (100,)


def test_likely_mistakes_are_noted_as_the_commands_note_them() -> None:
    scores = np.matmul(*(side.T if at else side for at, side in enumerate(vectors(0.5))))
    assert pipeline.evaluate(scores)["notes"] == pipeline.compare(scores, scores + 0)["notes"] == []
    (note,) = pipeline.evaluate(scores[::-1])["notes"]
    assert "if the images are in reverse order" in note
    assert f"note: {note}" in str(pipeline.evaluate(scores[::-1]))
    assert note in pipeline.compare(scores, scores[::-1])["notes"]


def test_two_good_systems_in_other_orders_are_noted() -> None:
    """The second one's images are in reverse order with their captions: each alone is right."""
    scores = np.matmul(*(side.T if at else side for at, side in enumerate(vectors(2.0))))
    other = np.matmul(*(side.T if at else side for at, side in enumerate(vectors(2.0, seed=1))))
    backward = other[::-1, np.arange(200).reshape(40, 5)[::-1].ravel()]
    assert pipeline.compare(scores, other, samples=20)["notes"] == []
    for first, second in ((scores, backward), ([scores, backward], other)):
        found = pipeline.compare(first, second, samples=20)
        (note,) = found["notes"]
        assert "does not agree with the first system, but does if its images" in note
        assert f"note: {note}" in str(found)


def test_a_test_draws_as_often_and_by_the_seed_that_it_is_asked_for() -> None:
    """As `contrast` on the numbers of both."""
    first, second = (
        np.matmul(*(side.T if at else side for at, side in enumerate(vectors(3.0, seed))))
        for seed in (0, 1)
    )
    owner = np.arange(200) // 5
    measured = [[metrics.evaluate(scores, owner)] for scores in (first, second)]
    found = {}
    for samples, seed in ((50, 1), (50, 2), (300, 2)):
        ((expected,),) = contrast.together([[(measured[0], measured[1])]], samples, seed)
        judged = pipeline.compare(first, second, samples=samples, seed=seed)
        assert judged["RSUM"] == expected["RSUM"]
        found[samples, seed] = judged["RSUM"]["p"]
    assert len({*found.values()}) == 3


def test_systems_are_equal_within_a_margin_that_is_asked_for() -> None:
    scores = np.eye(20).repeat(5, axis=1)
    judged = pipeline.compare(scores, 2 * scores, margin=30)
    assert judged["RSUM"]["margin"]["verdict"] == "equal within 180"
    assert "equal within 30" in str(judged)
    assert "margin" not in pipeline.compare(scores, 2 * scores)["RSUM"]
    with pytest.raises(InputError, match="a margin above 0"):
        pipeline.compare(scores, 2 * scores, margin=0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="captions"):
        pipeline.evaluate(np.zeros((4, 7)))
    with pytest.raises(InputError, match=r"vectors are given as one pair, \(images, captions\)"):
        pipeline.evaluate(*vectors(1.0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"NaN|nan"):
        pipeline.evaluate(np.full((4, 20), np.nan))
    with pytest.raises(InputError, match="the matrix is transposed, save one row an image"):
        pipeline.evaluate(np.zeros((20, 4)))
    for judged in (pipeline.evaluate, lambda scores: pipeline.explain(scores, "R@1=50.0")):
        with pytest.raises(InputError, match=r"s\.pt: from Python give arrays"):
            judged("s.pt")


@pytest.mark.slow
def test_published_numbers_are_text_or_a_dict() -> None:
    scores = np.matmul(vectors(1)[0], vectors(1)[1].T)
    found = [
        pipeline.explain(scores, each, most=1)
        for each in ("i2t_R@1=50.0,RSUM=400.0", {"i2t_R@1": 50.0, "RSUM": 400.0})
    ]
    assert str(found[0]) == str(found[1])


@pytest.mark.slow
def test_nothing_imports_torch(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.matmul(vectors(1)[0], vectors(1)[1].T))
    code = (
        "import sys, pipeline; a = 'a.npy'; pipeline.evaluate(a); pipeline.compare(a, a); "
        "pipeline.explain(a, 'i2t_R@1=50.0', most=1); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize("published", [91.8, None, ["R@1=3"]])
def test_published_numbers_that_name_no_metric_are_refused(published: object) -> None:
    with pytest.raises(InputError, match="expected text such as"):
        pipeline.explain(np.eye(20).repeat(5, 1), published)  # type: ignore[arg-type]

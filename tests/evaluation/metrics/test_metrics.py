"""Metrics against other libraries, and against every order of tied candidates; names, intervals,
folds.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from metric_definitions import DEFINITIONS, orders
from scipy import stats

from benchmarks import agreement
from pipeline.foundation.evaluation.metrics import METRICS, evaluate, parse, parse_all
from pipeline.foundation.evaluation.metrics.base import (
    Fold,
    Metric,
    as_dict,
    by_image,
    fold_of,
    joined,
    of_median,
    with_intervals,
)
from pipeline.foundation.evaluation.metrics.kinds import NDCG
from pipeline.foundation.evaluation.metrics.spelt import spelt
from pipeline.foundation.evaluation.metrics.standard import folds_of, of_pool
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Protocol,
    Relevance,
    as_similarity,
    consecutive_captions,
    rank,
)
from pipeline.foundation.evaluation.retrieval.placements import NEVER, place
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks, Ties
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.evaluation.statistics import image_hits, interval
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System

EVERY = (
    *(name + "@3" * (METRICS[name].cutoff == "needed") for name in DEFINITIONS),
    "R@1",
    "Recall@2",
    "MRR@2",
    "nDCG@3",
    "AP@3",
    "AP(rel=2)",
    "R(rel=3)@2",
)


@pytest.mark.specification
@pytest.mark.slow
# The last computes in float32
@pytest.mark.parametrize(
    ("library", "apart"),
    [
        ("ir_measures", 1e-12),
        pytest.param("ranx", 1e-12, marks=pytest.mark.ranx),
        ("eccv_caption", 1e-12),
        ("torchmetrics", 1e-5),
    ],
)
def test_agrees_with_other_libraries(library: str, apart: float) -> None:
    for seed in (0, 1):
        found = agreement.differences(agreement.draw(12, 60, seed), [library])
        compared = {name: libraries[library] for name, libraries in found.items() if libraries}
        assert len(compared) >= 5
        assert compared == pytest.approx(dict.fromkeys(compared, 0), abs=apart)


@cache
def by_definition(name: str, grades: tuple[int, ...]) -> float:
    """A metric of one query, from the grades of its candidates in their order."""
    metric = parse(name)
    kept = np.array(grades) * (np.array(grades) >= (metric.grade or 0))
    return DEFINITIONS[metric.name](kept, metric.k) if kept.any() else 0.0


def placed(scores: np.ndarray, grades: np.ndarray, ties: Ties) -> Fold:
    """scores, grades: [Q, n], a query a row; every query has a right candidate, and so has every
    candidate.
    """
    image, caption = np.nonzero(grades)
    relevance = Relevance.of_pairs(
        image, caption, scores.shape, grades[image, caption].astype(float)
    )
    ranks = rank(scores, relevance)
    return fold_of(as_similarity(scores), ranks, [parse("AP")], ties, block_megabytes=1e-4)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    grades = generator.integers(0, 4, (4, 5)) * (generator.random((4, 5)) < 0.5)
    grades[np.arange(4), generator.permutation(5)[:4]] = 3
    grades[:, grades.max(0) == 0] = 1
    return generator.integers(0, generator.choice([1, 2, 4]), (4, 5)).astype(np.float32), grades


@pytest.mark.parametrize("ties", ["expected", "pessimistic", "optimistic"])
@pytest.mark.parametrize("name", EVERY)
def test_ties_are_every_order_of_the_tied(name: str, ties: Ties) -> None:
    gather = (
        {"expected": np.mean, "pessimistic": max, "optimistic": min}
        if parse(name).less_is_better
        else {"expected": np.mean, "pessimistic": min, "optimistic": max}
    )
    for seed in range(12):
        scores, grades = drawn(seed)
        found = parse(name).values(placed(scores, grades, ties).i2t, ties)
        for query in range(4):
            values = [
                by_definition(name, tuple(grades[query][order].tolist()))
                for order in orders(scores[query])
            ]
            assert found[query] == pytest.approx(gather[ties](values), abs=1e-12), (
                f"matrix {seed}, query {query}"
            )


def test_the_range_over_ties_is_of_every_order_of_the_tied() -> None:
    scores, grades = drawn(3)
    image, caption = np.nonzero(grades)
    grade = grades[image, caption].astype(float)
    relevance = Relevance.of_pairs(image, caption, scores.shape, grade)
    metrics = evaluate(scores, relevance)
    names = ("R@1", "MRR", "AP", "AP_min@2", "nDCG@3", "nDCG_exp@3", "Recall@2")
    settings = Evaluate(resamples=20, seed=0, block_megabytes=32)
    numbers = of_pool(
        parse_all(names), as_similarity(scores), relevance, metrics, "all", settings, lambda _: None
    )
    for way, rows, right in (("i2t", scores, grades), ("t2i", scores.T, grades.T)):
        for name in names:
            bounds = []
            for row, of_query in zip(rows, right, strict=True):
                values = [
                    by_definition(name, tuple(of_query[order].tolist())) for order in orders(row)
                ]
                bounds.append((min(values), max(values)))
            low, high = 100 * np.mean(bounds, axis=0)
            assert high - low > 1, name
            assert numbers["over_ties"][way][name] == pytest.approx([low, high]), name
        recall = metrics.over_ties["over_ties"][way]["R@1"]
        assert recall == numbers["over_ties"][way]["R@1"]
    # Where no candidates are tied, and where ties are broken, there is no range.
    apart = scores + np.arange(20).reshape(4, 5) / 100
    assert evaluate(apart, relevance).over_ties == {}
    assert evaluate(scores, relevance, ties="optimistic").over_ties == {}


@pytest.mark.specification
def test_a_constant_matrix_scores_at_chance() -> None:
    relevance = Relevance.of_owner(consecutive_captions((40, 200)), 40)
    fold = fold_of(
        as_similarity(np.zeros((40, 200))),
        rank(np.zeros((40, 200)), relevance),
        [parse("AP")],
        "expected",
    )
    numbers = with_intervals([parse("Recall@10"), parse("Rprec"), parse("P@7")], [fold])
    found = [numbers["i2t", name].value for name in ("Recall@10", "Rprec", "P@7")]
    assert found == pytest.approx([5.0, 2.5, 2.5])
    assert numbers["t2i", "Recall@10"].value == pytest.approx(25.0)


@pytest.mark.parametrize("kind", ["matrix", "embeddings", "zscore", "rank"])
def test_sources_of_any_kind_are_placed_alike(kind: str, rng: np.random.Generator) -> None:
    images, captions = (rng.standard_normal((size, 8)).astype(np.float32) for size in (15, 60))
    images[3], captions[[7, 9]] = images[5], captions[11]  # equal vectors tie
    scores = (images.astype(np.float64) @ captions.T.astype(np.float64)).round(6)
    image, caption = np.nonzero(rng.random(scores.shape) < 0.2)
    relevance = Relevance.of_pairs(image, caption, scores.shape)
    member = System.of("a", scores, None, np.arange(15), np.arange(60))
    source = {
        "matrix": lambda: as_similarity(scores),
        "embeddings": lambda: Embeddings(images, captions),
    }.get(kind, lambda: fuse([member], kind).scores)()
    for way in ("i2t", "t2i"):
        found = place(source, relevance, way, block_megabytes=1e-3)  # type: ignore[arg-type]
        reported: list[int] = []
        expected = place(as_similarity(scores), relevance, way, 32, reported.append)  # type: ignore[arg-type]
        for name in ("query", "start", "above", "tied"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert reported[-1] == (15 if way == "i2t" else 60)
        best = rank(source, relevance)
        for name in ("query", "greater", "equal", "right"):
            np.testing.assert_array_equal(
                getattr(found.best(), name), getattr(getattr(best, way), name)
            )
    both: list[int] = []
    fold_of(source, rank(source, relevance), [parse("AP")], "expected", 1e-3, both.append)
    assert both == sorted(both)
    assert both[-1] == 15 + 60


def test_recalls_by_name_are_those_of_always_with_the_same_intervals(
    rng: np.random.Generator,
) -> None:
    owner = np.repeat(np.arange(30), 5)
    owner = owner[(owner < 20) | (owner > 25)]  # six images of the last fold ask nothing
    metrics = evaluate(
        rng.random((30, 120)) + (np.arange(30)[:, None] == owner) * 0.3,
        owner,
        Protocol("thirds", folds=3),
    )
    folds = [Fold.of(each, "expected") for each in metrics.ranks]
    named = as_dict(
        with_intervals(parse_all(["R@5", "RSUM", "mR", "mean_recall", "MedR", "MeanR"]), folds)
    )
    always = interval(metrics)
    for way in ("i2t", "t2i"):
        assert named["interval"][way]["R@5"] == pytest.approx(always[way]["R@5"])
        assert named[way]["mean_recall"] == pytest.approx(
            sum(metrics[way, f"R@{k}"] for k in (1, 5, 10)) / 3
        )
        for name in ("R@5", "MedR", "MeanR"):
            assert named[way][name] == metrics[way, name]
            low, high = named["interval"][way][name]
            assert 1 <= low <= named[way][name] <= high
    assert named["RSUM"] == metrics.rsum
    assert named["interval"]["RSUM"] == pytest.approx(always["RSUM"])
    assert named["mR"] == metrics.rsum / 6
    sixth = [end / 6 for end in always["RSUM"]]
    assert named["interval"]["mR"] == pytest.approx(sixth)


def test_folds_are_counted_together(rng: np.random.Generator) -> None:
    """Sizes and tied queries are sums over folds, by direction, and progress goes on from fold to
    fold, through all images.
    """
    owner = np.array([0, 0, 1, 2, 3, 3, 3, 4, 5, 5])
    scores = rng.integers(0, 3, (6, 10)).astype(np.float64)
    finished: list[int] = []
    rules = Protocol("halves", folds=2)
    measured = evaluate(scores, owner, rules, progress=finished.append)
    tied = {"i2t": 0, "t2i": 0}
    for images in ([0, 1, 2], [3, 4, 5]):
        captions = np.flatnonzero(np.isin(owner, images))
        for image in images:
            right = scores[image, owner == image].max()
            wrong = scores[image, captions[owner[captions] != image]]
            tied["i2t"] += int((wrong == right).any())
        for caption in captions:
            others = [image for image in images if image != owner[caption]]
            right = scores[owner[caption], caption]
            tied["t2i"] += int((scores[others, caption] == right).any())
    assert 0 < tied["i2t"] < 6
    assert 0 < tied["t2i"] < 10
    assert tied["i2t"] != tied["t2i"]
    written = measured.as_dict()
    assert written["tied"] == tied
    assert written["queries"] == {"i2t": 6, "t2i": 10}
    assert (written["images"], written["captions"]) == (6, 10)
    placing: list[int] = []
    of_pool(
        [parse("AP")],
        as_similarity(scores),
        owner,
        measured,
        rules,
        Evaluate(resamples=20, seed=0, block_megabytes=1e-6),
        placing.append,
    )
    for reported in (finished, placing):
        assert reported == sorted(reported)
        assert reported[-1] == 6


def test_a_mean_rank_is_known_if_every_query_has_a_right_candidate_listed() -> None:
    one = QueryRanks(np.arange(2), np.array([0, 3]), np.zeros(2, int), np.ones(2, int))
    unlisted = QueryRanks(np.arange(2), np.array([0, NEVER]), np.zeros(2, int), np.ones(2, int))
    none = QueryRanks(*(np.zeros(0, int) for _ in range(4)))
    for queries, is_known in ((one, (True, True)), (unlisted, (True, False)), (none, (False,) * 2)):
        ranks = Ranks(queries, queries, Relevance.of_owner(np.arange(2), 2))
        fold = Fold.of(ranks, "expected")
        known = tuple(fold.tells(parse(name), "i2t") for name in ("R@1", "MeanR"))
        assert known == is_known


def test_names_of_recalls_say_their_direction_as_papers_and_tools_write_it() -> None:
    """v2t: of clips; TR and IR: text and image retrieval; txt and img: of LAVIS."""
    for name, metric, direction in (
        ("i2t R@1", "R@1", "i2t"),
        ("t2v_R5", "R@5", "t2i"),
        ("v2t/recall@10", "R@10", "i2t"),
        ("TR@1", "R@1", "i2t"),
        ("IR R@5", "R@5", "t2i"),
        ("txt_r1", "R@1", "i2t"),
        ("img_r10", "R@10", "t2i"),
        ("val_txt_r5", "R@5", "i2t"),
        ("test/image_to_text.R1", "R@1", "i2t"),
        ("text_to_video-R@1", "R@1", "t2i"),
        ("video_to_text R@1", "R@1", "i2t"),
        ("text_retrieval R@1", "R@1", "i2t"),
        ("image_retrieval R@1", "R@1", "t2i"),
        ("Recall_10", "R@10", ""),
        ("t2i MedR", "MedR", "t2i"),
    ):
        found = spelt(name)
        assert found is not None, name
        assert (found.metric, found.direction) == (metric, direction), name
    assert spelt("1") is None


def test_of_an_even_number_of_queries_the_median_lies_between_the_middle_two() -> None:
    scores = np.array([[3.0, 1.0], [2.0, 0.0]])  # captions find their images in places 1 and 2
    metrics = evaluate(scores, np.arange(2))
    folds = [Fold.of(each, "expected") for each in metrics.ranks]
    assert (
        metrics["t2i", "MedR"] == with_intervals([parse("MedR")], folds)["t2i", "MedR"].value == 1.5
    )
    for queries in ([1.0, 4.0], [1.0, 4.0, 9.0]):
        # Of one image every test set is the same.
        of_one_image = [np.array(queries)], [np.zeros(len(queries), np.int64)]
        assert of_median(*of_one_image, 3, 0) == (np.median(queries), np.median(queries))


@pytest.mark.parametrize("captions", [1, 5])
def test_the_interval_of_a_mean_rank_is_students_of_the_means_of_images(captions: int) -> None:
    generator = np.random.default_rng(3)
    scores = generator.random((7, 7 * captions))
    ranks = rank(scores, np.repeat(np.arange(7), captions))
    found = with_intervals([parse("MeanR")], [Fold.of(ranks, "expected")])["t2i", "MeanR"]
    of_images = ranks.t2i.ranks().reshape(7, captions).mean(1)
    expected = stats.t.interval(0.95, 6, of_images.mean(), stats.sem(of_images))
    assert (max(1, expected[0]), expected[1]) == pytest.approx((found.low, found.high), rel=1e-8)


def test_the_interval_of_a_median_does_not_depend_on_the_order_of_images_or_folds(
    rng: np.random.Generator,
) -> None:
    """Test sets are drawn of the same images, whatever places they have."""
    folds = [
        (rng.integers(1, 60, 200).astype(np.float64), np.sort(rng.integers(0, 50, 200)))
        for _ in range(3)
    ]
    moved = []
    for values, owner in folds[::-1]:
        order, place = rng.permutation(200), rng.permutation(50)
        moved.append((values[order], place[owner][order]))
    found = of_median(*zip(*folds, strict=True), 20, 0)
    assert of_median(*zip(*moved, strict=True), 20, 0) == found
    assert of_median(*zip(*folds, strict=True), 20, 1) != found


def test_the_interval_of_a_median_is_that_of_drawn_images_with_all_their_captions(
    rng: np.random.Generator,
) -> None:
    """Captions of one image have one rank here: five of each tell no more than one."""
    ranks = 1000 * rng.random(30)
    low, high = of_median([ranks.repeat(5)], [np.arange(30).repeat(5)], 4000, 0)
    drawn = np.median(ranks[rng.integers(0, 30, (4000, 30))], axis=1)
    expected = np.percentile(drawn, [2.5, 97.5])
    assert (low, high) == pytest.approx(expected, abs=0.12 * np.ptp(expected))


def test_the_interval_of_a_pools_median_is_drawn_with_the_seed_of_the_settings() -> None:
    scores, owner = np.random.default_rng(0).random((20, 60)), np.repeat(np.arange(20), 3)
    measured = evaluate(scores, owner)
    ranks = measured.ranks[0].t2i.ranks()
    for seed in (1, 2, 3):
        settings = Evaluate(resamples=20, seed=seed, block_megabytes=32)
        found = of_pool(
            [parse("MedR")], as_similarity(scores), owner, measured, "all", settings, lambda _: None
        )
        assert tuple(found["interval"]["t2i"]["MedR"]) == of_median([ranks], [owner], 20, seed)


@pytest.mark.slow
def test_the_interval_of_a_median_holds_it_about_as_often_as_it_says() -> None:
    def ranked(seed: int) -> Fold:
        generator = np.random.default_rng(seed)
        scores = generator.standard_normal((60, 300)) + 1.5 * np.eye(60).repeat(5, 1)
        ranks = rank(scores, np.repeat(np.arange(60), 5))
        return Fold.of(ranks, "expected")

    whole = np.mean([np.median(ranked(seed).t2i.best.ranks()) for seed in range(1000, 1200)])
    found = [
        with_intervals([parse("MedR")], [ranked(seed)], 200)["t2i", "MedR"] for seed in range(60)
    ]
    held = sum(each.low <= whole <= each.high for each in found)
    assert 52 <= held <= 60
    assert np.mean([each.high - each.low for each in found]) < whole


@pytest.mark.specification
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nDGC@10", "unknown metric 'nDGC@10', with a cutoff as in nDCG@10; did you mean nDCG?"),
        ("R", "R needs a cutoff from 1 up: R@10"),
        ("R@0", "needs a cutoff"),
        ("RSUM@5", "RSUM has no cutoff"),
        ("", "unknown metric ''"),
        ("R@5@5", "unknown metric"),
        ("R@1e9", "R@1e9: expected a whole number from 1 up after @, as in R@10"),
        ("R@-1", "expected a whole number from 1 up"),
        ("nDCG@1.5", "as in nDCG@10"),
        ("R@", "expected a whole number from 1 up"),
        ("AP(rel=x)", "unknown metric"),
        ("mAP@10@R", "unknown metric"),
    ],
)
def test_names_that_are_none_are_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        parse(name)


def test_names_of_others_are_understood_and_each_is_measured_once() -> None:
    assert [
        str(each) for each in parse_all(["Success@5", "r@5", "RR", "mrr", "MAP", "map@r", "NDCG@7"])
    ] == ["R@5", "MRR", "AP", "mAP@R", "nDCG@7"]


def test_a_grade_is_written_as_it_was_given_and_a_grade_of_0_is_none() -> None:
    for name, written in {
        "ndcg(rel=1.5)@10": "nDCG(rel=1.5)@10",
        "R(rel=2.0)@5": "R(rel=2)@5",
        "AP(rel=0)": "AP",
        "AP(REL=0.25)": "AP(rel=0.25)",
    }.items():
        assert str(parse(name)) == written
        assert parse(name) == parse(written)


def test_numbers_of_both_are_joined_and_the_first_has_precedence() -> None:
    first = {"i2t": {"R@1": 1.0}, "RSUM": 2.0, "interval": {"i2t": {"R@1": [0, 3]}}}
    second = {"i2t": {"R@1": 9.0, "AP": 4.0}, "t2i": {"AP": 5.0}, "RSUM": 9.0}
    second["interval"] = {"i2t": {"AP": [1, 8]}, "RSUM": [0, 9]}
    assert joined(first, second) == {
        "i2t": {"R@1": 1.0, "AP": 4.0},
        "t2i": {"AP": 5.0},
        "RSUM": 2.0,
        "interval": {"i2t": {"R@1": [0, 3], "AP": [1, 8]}, "RSUM": [0, 9]},
    }


def test_names_may_have_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        METRICS._places, "F1", "pipeline.foundation.evaluation.metrics.kinds:Precision"
    )  # type: ignore[attr-defined]
    assert parse("f1@10").k == 10


PAGE = Path(__file__).parents[3] / "docs/evaluation.md"
# Metrics that are made of others, and have tests of their own.
OF_OTHERS = {"MedR", "RSUM", "mR", "mean_recall"}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_says_what_it_is(name: str) -> None:
    kind: type[Metric] = METRICS[name]
    assert kind.name == name
    assert "Source: " in (kind.__doc__ or ""), "end its docstring in `Source: …`"
    assert name in DEFINITIONS or name in OF_OTHERS, (
        "write its definition into metric_definitions.py"
    )
    rows = re.findall(rf"^\\| .*`{name}[`@K]", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows, "add a row to docs/evaluation.md"
    assert str(parse(name + ("@10" if kind.cutoff == "needed" else ""))).startswith(name)


def test_a_k_beyond_all_candidates_is_taken() -> None:
    fold = placed(*drawn(3), "expected")
    for name in ("Recall@1000", "R@1000"):
        assert parse(name).values(fold.i2t, "expected").tolist() == [1.0] * 4
    # Discounts are of the candidates that there are: of so many places they would fill the memory.
    assert NDCG(k=10**15).values(fold.i2t, "expected") == pytest.approx(
        parse("nDCG").values(fold.i2t, "expected")
    )


def test_grades_of_one_scale_have_one_gain(rng: np.random.Generator) -> None:
    """The gain is divided by the ideal one, however small grades are."""
    scores, grades = rng.random((4, 5)), drawn(3)[1]
    image, caption = np.nonzero(grades)
    gains = []
    for scale in (1.0, 0.01):
        of_pairs = scale * grades[image, caption]
        relevance = Relevance.of_pairs(image, caption, scores.shape, of_pairs)
        fold = fold_of(as_similarity(scores), rank(scores, relevance), [parse("AP")], "expected")
        gains.append(parse("nDCG@3").values(fold.i2t, "expected"))
    assert gains[0].max() > 0
    assert gains[1] == pytest.approx(gains[0])


def test_queries_without_a_candidate_of_the_grade_count_zero() -> None:
    positives = Positives.of_pairs(np.array([0, 1]), np.array([1, 0]), 2, np.array([1.0, 2.0]))
    relevance = Relevance.of_directions(positives, positives)
    fold = fold_of(as_similarity(np.eye(2)), rank(np.eye(2), relevance), [parse("AP")], "expected")
    for name in ("AP(rel=2)", "R(rel=2)@2", "Rprec(rel=2)", "MRR(rel=2)", "nDCG(rel=2)@1"):
        assert parse(name).values(fold.i2t, "expected")[0] == 0
    assert parse("R(rel=2)@2").values(fold.i2t, "expected")[1] == 1


def test_the_parts_of_images_are_together_the_metric_with_its_interval(
    rng: np.random.Generator,
) -> None:
    # Images have 1 to 4 captions, and one of the second fold has none.
    owner = np.repeat(np.arange(10), [1, 2, 3, 4, 1, 2, 3, 0, 4, 1])
    scores = rng.integers(0, 3, (10, len(owner))).astype(float)
    rules = Protocol("2fold", folds=2)
    measured = evaluate(scores, owner, rules)
    for name in ("RSUM", "mR", "nDCG@3", "MeanR"):
        (metric,) = parse_all([name])
        folds = folds_of([metric], as_similarity(scores), owner, measured, rules, 32)
        numbers = with_intervals([metric], folds)
        both = by_image(metric, [folds], ["i2t", "t2i"])
        assert both.parts.mean() == pytest.approx(both.interval.value), name
        assert both.interval.value == pytest.approx(
            sum(each.value for each in numbers.values()) / len(numbers)
        )
        for (way, _), known in numbers.items():
            of_way = by_image(metric, [folds], [way] if way else ["i2t", "t2i"])
            assert of_way.parts.mean() == pytest.approx(known.value), name
            ends = (of_way.interval.low, of_way.interval.high)
            assert ends == pytest.approx((known.low, known.high)), name
    (rsum,) = parse_all(["RSUM"])
    hits = image_hits.parts(image_hits.gather(measured))
    folds = folds_of([rsum], as_similarity(scores), owner, measured, rules, 32)
    both = by_image(rsum, [folds, folds], ["i2t", "t2i"])
    assert both.parts == pytest.approx(hits[:, -1])
    alone = by_image(rsum, [folds], ["t2i"])
    assert alone.parts == pytest.approx(hits[:, 3:6].sum(1))
    assert 0 <= alone.interval.low < alone.interval.value < alone.interval.high <= 300
    with pytest.raises(InputError, match="choose RSUM"):
        by_image(parse_all(["mR"])[0], [folds], ["t2i"])

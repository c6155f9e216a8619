"""The card of a result: what it shows, and that text from data cannot leave its place."""

import re
from dataclasses import replace

import invented
import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Protocol
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.made import Made
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance import results
from pipeline.run.report.page import card, duplicates

WIDE = {"region": "pyramid36-small", "grid": "grid8-small"}
SETTINGS = Evaluate(resamples=10, seed=0, block_megabytes=1)


def page(
    scores: object,
    items: card.Items | None = None,
    rules: str | Protocol = "all",
    leaks: tuple[str, ...] | None = (),
    made_from: Made | None = None,
) -> str:
    """The card of a pool of consecutive captions, five an image."""
    images = scores.shape[0]  # type: ignore[attr-defined]
    pool = System.of("ours", scores, np.repeat(np.arange(images), 5))
    if made_from:
        pool = replace(pool, made_from=made_from)
    found = measured.measure(pool, rules, "expected", SETTINGS)
    part, metrics = found.ranked[0]
    origin = card.Origin(
        "pipeline evaluate ours.npy --card card.html",
        {"date": "2026-01-02"},
        {"ours.npy": "abc"},
        leaks,
    )
    return card.write(
        part,
        metrics,
        {**found.numbers, "left_out": {"unreadable": 3}},
        SETTINGS,
        items or card.Items(),
        origin,
    )


def test_a_system_goes_by_its_method_and_others_by_their_file() -> None:
    (entry,) = results.parsed(
        invented.system("sample", "all", ensemble="RG", features=WIDE)
    ).values()
    assert "<h1>ours</h1>" in page(good())
    text = page(good(), made_from=entry.made)
    assert "<h1>VSE+2AD, Region+Grid, BiGRU, seed 0</h1>" in text


def good(images: int = 12) -> np.ndarray:
    """Scores in which all but the captions of image 3 are right."""
    scores = np.kron(np.eye(images), np.ones((1, 5))) + np.linspace(0, 0.1, images * 5)
    scores[3, 15:20] = -1
    return scores


def plain(html: str) -> str:
    """The text of a page, blanks joined."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<body>")[2]))


@pytest.mark.specification
def test_it_has_numbers_ranks_worst_queries_and_its_origin() -> None:
    text = plain(page(good()))
    assert "12 images and 60 captions" in text
    assert "caption 15" in text
    for part in (
        "R@1",
        "Never",
        "pipeline evaluate ours.npy --card card.html",
        "abc",
        "2026-01-02",
        "unreadable: 3",
    ):
        assert part in text
    shares = [
        float(share) for share in re.findall(r"([\d.]+) % ", text.partition("answer ranks")[2])
    ]
    assert pytest.approx(shares[0], abs=0.05) == 100 * 11 / 12


def test_bars_of_both_directions_have_one_scale() -> None:
    drawn = re.findall(
        r'<td>([\d.]+)\s%</td>\s*<td><svg[^>]*><rect class="bar" width="([\d.]+)"', page(good())
    )
    assert len(drawn) >= 4
    assert all(float(width) == pytest.approx(1.5 * float(share), abs=0.2) for share, width in drawn)


def test_equal_candidates_are_named_and_others_are_not() -> None:
    scores = good()
    scores[:, 7] = scores[:, 8]
    groups = duplicates.with_equal_scores(System.of("x", scores).scores)
    assert [group.tolist() for group in groups["caption"]] == [[7, 8]]
    assert groups["image"] == []
    assert "2 captions have exactly the scores of another one" in plain(page(scores))


def test_all_equal_candidates_are_counted_and_the_largest_groups_shown() -> None:
    scores = good()
    scores[:, 1::5] = scores[:, ::5]
    scores[:, 57] = scores[:, 55]
    html = page(scores)
    assert "25 captions have exactly the scores of another one" in plain(html)
    assert plain(html).count("caption 0 caption 1") == 1  # of twelve groups ten
    assert plain(html).index("caption 55 caption 56 caption 57") < plain(html).index(
        "caption 0 caption 1"
    )


def test_equal_candidates_stand_side_by_side_each_in_a_box_of_its_own() -> None:
    scores = good()
    scores[3] = scores[7]
    section = page(scores).partition('id="equal-title"')[2].partition("</section>")[0]
    (group,) = re.findall(r'<li class="alike">(.*?)</li>', section, re.DOTALL)
    boxes = re.findall(r"<div>(.*?)</div>", group, re.DOTALL)
    assert [re.sub("<.*?>", "", box).strip() for box in boxes] == ["image 3", "image 7"]
    assert re.sub(r"<div>.*?</div>", "", group, flags=re.DOTALL).strip() == ""


def test_sums_with_ties_in_the_worst_and_in_the_best_order() -> None:
    scores = np.round(good())
    scores[5, 25:30] = 0  # as all wrong ones
    worst, best = (
        f"{evaluate(scores, np.repeat(np.arange(12), 5), ties=ties).rsum:.1f}"
        for ties in ("pessimistic", "optimistic")
    )
    assert float(worst) < float(best)
    said = f"RSUM is {worst} with ties in the worst order and {best} in the best"
    assert said in plain(page(scores))


def test_equal_candidates_are_named_where_fillers_hide_what_differs() -> None:
    """Sums of large fillers round away in what the scores of two candidates differ."""
    scores = np.full((30, 150), -1e15)
    for caption in range(150):
        scores[caption // 5, caption] = caption // 2
    groups = duplicates.with_equal_scores(System.of("x", scores).scores)
    assert groups["image"] == []
    assert sorted(group.tolist() for group in groups["caption"]) == [
        [caption, caption + 1] for caption in range(0, 150, 2) if caption % 5 < 4
    ]


def test_near_vectors_are_counted_once() -> None:
    images = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    images[4] = images[9] * 2
    count, closest = duplicates.nearly_equal(images, 5)
    assert (count, closest[0][:2]) == (1, (4, 9))
    assert closest[0].cosine == pytest.approx(1)
    text = plain(page(Embeddings(images, np.repeat(images, 5, 0))))
    assert "cosine of 0.99 or more: 1." in text


def test_near_vectors_of_a_large_pool_are_those_of_all_its_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Vectors are compared three rows at a time; each pair counts once, by its rows in the pool."""
    monkeypatch.setattr(duplicates, "CELLS", 90)
    images = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    images[9] = images[28] = images[4]
    images[21] = images[20] * 2
    count, closest = duplicates.nearly_equal(images, 9)
    assert sorted(pair[:2] for pair in closest) == [(4, 9), (4, 28), (9, 28), (20, 21)]
    assert count == 4


def test_folds_show_queries_of_the_whole_pool() -> None:
    text = plain(page(good(), rules=Protocol("3fold", folds=3)))
    assert "caption 15" in text
    assert "image 3" in text


@pytest.mark.slow
def test_splits_that_nothing_compares_have_no_section() -> None:
    assert "Across splits" not in plain(page(good(), leaks=None))
    assert "Across splits Not known" in plain(page(good(), leaks=()))
    assert "Across splits No image occurs twice." in plain(
        page(good(), leaks=("no image occurs twice",))
    )


@pytest.mark.specification
def test_text_from_data_is_escaped_and_nothing_is_loaded() -> None:
    captions = ["<script>alert(1)</script>"] * 60
    html = page(good(), card.Items(captions), leaks=("<b>x</b>",))
    assert "<script" not in html
    assert "<b>x" not in html
    assert "script-src &#39;none&#39;" in html
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", html)

"""Which images' candidates the page keeps: half where systems differ, a quarter that they miss."""

from __future__ import annotations

import hashlib

import numpy as np

from pipeline.judge.systems.scores.system import System
from pipeline.run.report.examples import Gallery, digest_order, examples
from pipeline.run.report.page.explorer import kept_images

FILES = [f"{number}.png" for number in range(10)]
ORDER = digest_order(FILES, np.arange(10))
OWNERS = np.repeat(np.arange(10), 2), np.arange(10)
SAME = np.ones(20), np.ones(10)
TOP = 100


def changed(*ranks: tuple[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of captions, where those of some are not 1; and of images."""
    captions = np.ones(20)
    for caption, rank in ranks:
        captions[caption] = rank
    return captions, np.ones(10)


def kept(
    *systems: tuple[np.ndarray, np.ndarray], count: int, default: tuple[int, int] = (0, 1)
) -> list[int]:
    return kept_images(
        FILES, OWNERS, [np.array(way) for way in zip(*systems, strict=True)], default, count, TOP
    ).tolist()


def test_a_quarter_is_by_digest_and_half_by_gain() -> None:
    last = ORDER[-1]
    assert kept(SAME, changed((2 * last + 1, 9.0)), count=4) == [ORDER[0], last, *ORDER[1:3]]


def test_a_quarter_are_queries_that_most_systems_miss_the_worst_first() -> None:
    """Those that one system alone misses, and by much, come after those that both miss."""
    a, b, c = ORDER[-3:]
    one, other = (
        changed((2 * a, 400.0), (2 * b, 101.0), (2 * c, 110.0)),
        changed((2 * b, 102.0), (2 * c, 120.0)),
    )
    assert kept(one, other, count=4)[1:2] == [c]
    assert kept(one, other, count=10)[3:5] == [c, b]


def test_gain_and_drop_are_taken_in_turn_the_largest_first() -> None:
    a, b, c, d = ORDER[-4:]
    one, other = changed((2 * a, 50.0), (2 * b, 40.0)), changed((2 * c, 9.0), (2 * d, 8.0))
    assert kept(one, other, count=8)[2:6] == [a, c, b, d]


def test_a_gain_is_of_the_reciprocal_rank() -> None:
    """From 2 to 1 is more than from 45 to 37."""
    *_, a, b = ORDER
    one, other = changed((2 * a, 45.0), (2 * b, 2.0)), changed((2 * a, 37.0))
    assert kept(one, other, count=4)[1] == b


def test_the_systems_compared_at_first_come_before_others() -> None:
    *_, a, b, c = ORDER
    systems = changed((2 * a, 9.0)), changed((2 * b, 8.0)), changed((2 * c, 99.0))
    assert kept(*systems, count=2, default=(0, 1))[1:] == [a]
    assert kept(*systems, count=2, default=(1, 2))[1:] == [b]


def test_fewer_images_than_asked_for_and_one_system() -> None:
    assert kept(SAME, count=99, default=(0, 0)) == ORDER
    assert kept(SAME, SAME, count=1) == ORDER[:1]


def test_examples_are_found_first_or_missed_in_the_order_of_the_digests_of_their_texts() -> None:
    """A query that is tied for the first place is neither found first nor missed."""
    count = 12
    scores = np.tile(-np.arange(count, dtype=np.float32), (count, 1))
    for row in range(4):
        scores[row, row] = 1  # found first; the caption too, of all images
    scores[4, 4] = scores[4, 0]  # tied with the best
    numbers = np.arange(count)
    texts = [f"a picture of {number}" for number in range(count)]
    pool = System.of("a", scores, numbers, numbers, numbers)
    gallery = Gallery(pool, texts, [text[::-1] for text in texts], lambda row: None)  # type: ignore[arg-type, return-value]
    first, missed = examples(gallery, "i2t", 3, 2)

    def by_digest(rows: range) -> list[int]:
        return sorted(rows, key=lambda row: hashlib.sha256(texts[row][::-1].encode()).digest())

    assert [each.query for each in first] == by_digest(range(4))[:3]
    assert [each.query for each in missed] == by_digest(range(5, count))[:3]
    assert {each.rank for each in first} == {1.0}
    for each in missed:
        assert each.rank == each.query + 1
        assert each.shown == (0, 1)
        assert each.best == each.query

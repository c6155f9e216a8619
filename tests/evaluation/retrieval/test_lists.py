"""Lists of each query's best candidates against the whole matrix that they were taken from."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from pipeline.foundation.evaluation.retrieval import Direction, Relevance, rank
from pipeline.foundation.evaluation.retrieval.lists import Listed, Lists
from pipeline.foundation.evaluation.retrieval.placements import NEVER
from pipeline.foundation.evaluation.retrieval.ranks import Ties
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.parts.errors import InputError


def test_lists_of_some_images_and_captions_are_those_of_their_part_of_the_matrix(
    rng: np.random.Generator,
) -> None:
    """What is listed and not chosen is no candidate, whichever side is cut."""
    scores = rng.integers(0, 6, (7, 14)).astype(np.float64)
    image, caption = np.indices(scores.shape).reshape(2, -1)
    every = scores.reshape(-1)
    lists = Lists(
        scores.shape,
        {"i2t": Listed(image, caption, every), "t2i": Listed(caption, image, every)},
        "run",
    )
    relevance = Relevance.of_owner(np.repeat(np.arange(7), 2), 7)
    all_rows, all_columns = np.arange(7), np.arange(14)
    for rows, columns in (
        (np.array([5, 0, 3]), all_columns),
        (all_rows, np.array([13, 2, 3, 4, 9])),
        (np.array([1, 4, 6]), np.array([12, 3, 8, 9])),
    ):
        part = relevance.select(rows, columns)
        expected = rank(scores[np.ix_(rows, columns)], part)
        found = rank(lists.select(rows, columns), part)
        for way in get_args(Direction):
            for count in ("query", "greater", "equal", "right"):
                np.testing.assert_array_equal(
                    getattr(getattr(found, way), count),
                    getattr(getattr(expected, way), count),
                    f"{way} {count} of {rows} and {columns}",
                )


def test_however_ties_are_broken_what_is_not_listed_is_never_found() -> None:
    none_right = Listed(np.array([0]), np.array([3]), np.array([0.5]))
    lists = Lists((1, 4), {"i2t": none_right}, "run")
    right = Positives.of_pairs(np.array([0, 0, 0]), np.array([0, 1, 2]), 1)
    placed = lists.place(right, "i2t")
    for ties in get_args(Ties):
        assert placed.broken(ties).above.tolist() == [NEVER] * 3, ties


def test_what_asks_for_nothing_does_not_lack_in_a_list() -> None:
    of_first = Listed(np.array([0]), np.array([1]), np.array([0.5]))
    lists = Lists((4, 3), {"i2t": of_first}, "run")
    right = Positives.of_pairs(np.array([0, 1, 1]), np.array([0, 1, 2]), 4)
    assert lists.unlisted(right, "i2t") == 1
    assert lists.unlisted(right, "t2i") == 0


def test_lists_whose_queries_of_one_part_have_no_right_answer_say_so() -> None:
    """Captions 2 and 3 are listed, and caption 4 alone is judged: the ids may be right all the
    same.
    """
    caption = np.arange(4)
    lists = Lists((2, 5), {"t2i": Listed(caption, caption // 2, np.ones(4))}, "lists.trec")
    judged = Positives.of_pairs(np.array([2]), np.array([0]), 3)
    with pytest.raises(InputError) as refused:
        lists.select(np.array([1]), np.array([2, 3, 4])).place(judged, "t2i")
    assert "1 image and 3 captions it has 2 lists" in str(refused.value)
    assert "a fold's or a language's" in str(refused.value)

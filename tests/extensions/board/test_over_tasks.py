"""Places over tasks, by hand."""

from __future__ import annotations

import pytest

from pipeline.extensions.board import command, over_tasks, tables


def test_ranks_places_and_what_holds_without_one_unit_are_those_by_hand() -> None:
    # Three systems on four tasks, the last two of which are translations of one question.
    values = {
        "a": [70.0, 60.0, 50.0],
        "b": [40.0, 45.0, 40.0],  # the first and the third tie
        "en": [30.0, 20.0, 10.0],
        "de": [10.0, 30.0, 20.0],
    }
    ranks = {task: over_tasks.ranks_of(of_task) for task, of_task in values.items()}
    assert ranks["b"].tolist() == [2.5, 1.0, 2.5]
    units = {"a": "a", "b": "b", "en": "words", "de": "words"}
    # Units' ranks: a 1 2 3, b 2.5 1 2.5, words (1+3)/2 (2+1)/2 (3+2)/2 = 2 1.5 2.5.
    placed = over_tasks.place(ranks, units, [7, 8, 9], "mean-rank")
    assert placed.units == ["a", "b", "words"]
    assert placed.systems == [8, 7, 9]
    assert placed.scores.mean_rank == pytest.approx([4.5 / 3, 5.5 / 3, 8 / 3])
    assert placed.scores.borda == pytest.approx([4.5, 3.5, 1.0])
    # 8 beats 7 on b and words and loses a; 7 beats 9 on a and words and ties b.
    assert placed.scores.wins == pytest.approx([2, 1, 0])
    assert placed.places == [1, 2, 3]
    # Without b: 8 has 3.5, 7 has 3, 9 has 5.5. Without words 8 has 3, 7 has 3.5. Without a 8 has
    # 2.5, 7 has 4.5, 9 has 5.
    assert placed.ends == [(1, 2), (1, 2), (3, 3)]
    assert placed.others == [over_tasks.LeftOut("b", [7, 8, 9], [1, 2, 3])]
    assert placed.stable == [(8, 9), (7, 9)]


def test_a_system_that_beats_each_other_one_on_most_units_wins_without_the_best_mean_rank() -> None:
    ranks = {
        "a": over_tasks.ranks_of([4, 3, 2, 1]),
        "b": over_tasks.ranks_of([4, 3, 2, 1]),
        "c": over_tasks.ranks_of([1, 4, 3, 2]),
    }
    units = {task: task for task in ranks}
    by_ranks = over_tasks.place(ranks, units, [0, 1, 2, 3], "mean-rank")
    assert by_ranks.systems[0] == 1  # 2, 2, 1, against 1, 1, 4
    assert over_tasks.place(ranks, units, [0, 1, 2, 3], "borda").systems == by_ranks.systems
    assert over_tasks.place(ranks, units, [0, 1, 2, 3], "wins").systems[0] == 0


def test_without_a_unit_systems_may_share_a_place() -> None:
    ranks = {
        "a": over_tasks.ranks_of([3, 2, 1]),
        "b": over_tasks.ranks_of([3, 2, 1]),
        "c": over_tasks.ranks_of([1, 3, 2]),
    }
    placed = over_tasks.place(ranks, {task: task for task in ranks}, [4, 5, 6], "mean-rank")
    # 4 and 5 have 5 in sum, 6 has 8; without a they have 4, 3, 5, as without b; without c 2, 4, 6.
    assert (placed.systems, placed.places) == ([4, 5, 6], [1, 1, 3])
    assert placed.others == [
        over_tasks.LeftOut("a", [5, 4, 6], [1, 2, 3]),
        over_tasks.LeftOut("b", [5, 4, 6], [1, 2, 3]),
    ]


def test_equal_systems_share_the_first_place_and_less_may_be_better() -> None:
    ranks = {task: over_tasks.ranks_of([5.0, 5.0, 5.0]) for task in "ab"}
    placed = over_tasks.place(ranks, {"a": "a", "b": "b"}, [0, 1, 2], "wins")
    assert placed.places == [1, 1, 1]
    assert placed.scores.wins.tolist() == [1, 1, 1]
    assert placed.stable == []
    assert over_tasks.ranks_of([3.0, 1.0], less_is_better=True).tolist() == [2, 1]


def test_every_rule_can_be_asked_for_and_is_said_in_words() -> None:
    assert tuple(over_tasks.RULES) == command.RULES
    assert [words for words, _ in over_tasks.RULES.values()] == list(tables.RULES)

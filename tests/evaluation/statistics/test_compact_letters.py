"""Compact letters: right for every pattern of decisions, and none too many."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from pipeline.foundation.evaluation.statistics import letters


def check(values: list[float], differ: set[tuple[int, int]]) -> None:
    many = len(values) > 26
    shown = [set(each.split(",") if many else each) for each in letters(values, differ)]
    assert all(shown)
    for a, b in combinations(range(len(values)), 2):
        assert bool(shown[a] & shown[b]) == ((a, b) not in differ)
    used = sorted(set().union(*shown), key=lambda letter: (len(letter), letter))
    for letter in used:  # without any one of them, a system or a pair would lack a letter
        rest = [each - {letter} for each in shown]
        pairs = product([place for place, each in enumerate(shown) if letter in each], repeat=2)
        assert any(not rest[a] & rest[b] for a, b in pairs)
    assert used[0] == "a"
    assert "a" in shown[int(np.argmax(values))]


@pytest.mark.specification
def test_every_pattern_of_five_systems() -> None:
    pairs = [*combinations(range(5), 2)]
    for decisions in product((False, True), repeat=len(pairs)):
        check(
            [3.0, 5.0, 1.0, 4.0, 2.0],
            {pair for pair, reported in zip(pairs, decisions, strict=True) if reported},
        )


@pytest.mark.parametrize(("systems", "share"), [(9, 0.5), (12, 0.2), (12, 0.8), (30, 1.0)])
def test_patterns_of_more_systems(systems: int, share: float, rng: np.random.Generator) -> None:
    for _ in range(5):
        check(
            rng.permutation(systems).astype(float).tolist(),
            {pair for pair in combinations(range(systems), 2) if rng.random() < share},
        )


def test_letters_follow_the_order_of_the_values() -> None:
    assert letters([1.0, 2.0, 3.0], set()) == ["a", "a", "a"]
    assert letters([1.0, 2.0, 3.0], {(0, 2)}) == ["b", "ab", "a"]
    assert letters([1.0, 2.0, 3.0], {(0, 1), (0, 2), (1, 2)}) == ["c", "b", "a"]
    assert letters([0.0] * 28, set(combinations(range(28), 2)))[-1] == "ab"
    # Of more than 26 letters those of one system have commas between: "ab" is one letter.
    differ = set(combinations(range(29), 2)) - {(26, 27), (27, 28)}
    assert letters([*range(29, 0, -1)], differ)[25:] == ["z", "aa", "aa,ab", "ab"]
